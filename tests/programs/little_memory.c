/* After MPI_Init there is only so much more address space, in KiB; ever more call sites, and more promoted buffers, follow. */
#include "check.h"
#include "places.h"
#include <sys/resource.h>
#include <unistd.h>

enum { LONGEST = 60000, ROUNDS = 4, BUFFERS = 8 };

static void swap(int place, unsigned char *data, unsigned char *in, int length, int other) {
    switch (place) {
        PLACES_1000(MPI_Sendrecv(data, length, MPI_BYTE, other, 1, in, length, MPI_BYTE, other, 1, MPI_COMM_WORLD,
                                 MPI_STATUS_IGNORE))
    }
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    check_init(&argc, &argv);
    CHECK(check_size == 2);
    unsigned char *out[BUFFERS], *in = check_allocate(LONGEST);
    for (int i = 0; i < BUFFERS; i++) out[i] = check_allocate(LONGEST);
    int other = 1 - check_rank;
    for (int round = 0; round < ROUNDS; round++) {
        if (round == 1) {
            unsigned long pages = 0;
            FILE *file = fopen("/proc/self/statm", "r");
            CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1);
            fclose(file);
            rlim_t bytes = (rlim_t)pages * 4096 + (rlim_t)atol(argv[1]) * 1024;
            CHECK(setrlimit(RLIMIT_AS, &(struct rlimit){bytes, RLIM_INFINITY}) == 0);
        }
        for (int i = 0; i < 2000; i++) {
            /* Of a new size at its place each: a call site each. The first round teaches the MPI library what it needs. */
            int length = i % 8 == 7 ? LONGEST - 13 * (i / 64) : (round == 0 ? 0 : round) * 4000 + i;
            unsigned char *data = out[i % BUFFERS];
            check_fill(data, 64, (uint64_t)i);
            swap(i % PLACES, data, in, length, other);
            check_equal(in, length < 64 ? (size_t)length : 64, (uint64_t)i);
        }
    }
    return check_finish();
}
