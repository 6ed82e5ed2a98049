/* Loops of exchanges between pairs of ranks; the arguments say which are run, in their order. Every exchange has a
 * call site of its own. "apart" has odd ranks go another way than even ones, "where" prints an address, "many" has more
 * signatures than are followed, "leave" ends the program without another call. */
#include "check.h"
#include "places.h"
#include <string.h>

enum { LENGTH = 20000, ROUNDS = 200 };

static unsigned char *out, *in;
static uint64_t exchanges;

enum { BEGIN, ONE_FIRST, ONE_SECOND, OTHER_FIRST, OTHER_SECOND, OTHER_THIRD, ENTRY, UPPER, LOWER, MORE, SITES };
static uint64_t calls[SITES];

static void before(void) { check_fill(out, 64, exchanges + (uint64_t)check_rank); }

static void after(int status) {
    CHECK(status == MPI_SUCCESS);
    check_equal(in, 64, exchanges + (uint64_t)(check_rank ^ 1));
    exchanges++;
}

/* From 2000 places, of each of 19 powers of two and the three lengths after it: 152000 signatures. */
static void many(void) {
    for (int place = 0; place < 2 * PLACES; place++)
        for (int power = 2; power < 21; power++)
            for (int more = 0; more < 4; more++) {
                int length = (1 << power) + more;
                switch (place) {
                    PLACES_1000(MPI_Send(out, length, MPI_BYTE, MPI_PROC_NULL, 2, MPI_COMM_WORLD))
                    PLACES_1000(MPI_Send(out, length, MPI_BYTE, MPI_PROC_NULL, 2, MPI_COMM_WORLD))
                }
            }
}

/* One function for each, which no optimisation doubles, or makes one with another. */
#define EXCHANGE(name, number)                                                                     \
    __attribute__((noinline)) static void name(void) {                                             \
        before();                                                                                  \
        calls[number]++;                                                                           \
        after(MPI_Sendrecv(out, LENGTH, MPI_BYTE, check_rank ^ 1, 1, in, LENGTH, MPI_BYTE,         \
                           check_rank ^ 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));                 \
    }
EXCHANGE(begin, BEGIN)
EXCHANGE(one_first, ONE_FIRST)
EXCHANGE(one_second, ONE_SECOND)
EXCHANGE(other_first, OTHER_FIRST)
EXCHANGE(other_second, OTHER_SECOND)
EXCHANGE(other_third, OTHER_THIRD)
EXCHANGE(entry, ENTRY)
EXCHANGE(upper, UPPER)
EXCHANGE(lower, LOWER)
EXCHANGE(more, MORE)

static void one(int rounds) {
    for (int round = 0; round < rounds; round++) {
        one_first();
        one_second();
    }
}

static void other(int rounds) {
    for (int round = 0; round < rounds * 2 / 3; round++) {
        other_first();
        other_second();
        other_third();
    }
}

/* A loop of two exchanges that is entered at either: two times out of three at the upper one. */
static void irreducible(int rounds) {
    for (int round = 0; round < rounds; round++) {
        int left = 4;
        entry();
        if (round % 3 == 2) goto lower;
    upper:
        upper();
        if (--left == 0) continue;
    lower:
        lower();
        if (--left > 0) goto upper;
    }
}

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    CHECK(check_size % 2 == 0);
    out = check_allocate(LENGTH);
    in = check_allocate(LENGTH);
    check_fill(out, LENGTH, 1);
    for (int i = 1; i < argc; i++) {
        const char *way = argv[i];
        if (strcmp(way, "where") == 0) {
            if (check_rank == 0) printf("address: %p\n", (void *)&exchanges);
        } else if (strcmp(way, "begin") == 0) {
            begin();
        } else if (strcmp(way, "one") == 0) {
            one(ROUNDS);
        } else if (strcmp(way, "other") == 0) {
            other(ROUNDS);
        } else if (strcmp(way, "apart") == 0) {
            if (check_rank % 2 == 0)
                one(ROUNDS / 2 * 3);
            else
                other(ROUNDS / 2 * 3);
        } else if (strcmp(way, "irreducible") == 0) {
            irreducible(ROUNDS);
        } else if (strcmp(way, "more") == 0) {
            for (int round = 0; round < ROUNDS; round++) more();
        } else if (strcmp(way, "many") == 0) {
            many();
        } else {
            CHECK(strcmp(way, "leave") == 0);
            return MPI_Finalize();
        }
    }
    check_finish();
    return 0;
}
