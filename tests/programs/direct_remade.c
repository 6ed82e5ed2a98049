/* Memory of messages that is made anew for each, because malloc gives freed memory back to the kernel: "fresh" allocates buffers for each
   message, "reduce" leaves that to the MPI library, where it does, and "same" uses the same buffers again and again. Rank 0 tells how
   many page faults both had in the latter half of the messages. */
#include "check.h"
#include <sys/resource.h>

enum { BYTES = 3 << 20, BLOCK = 12 << 20, SAME_BYTES = 256 << 10, SAME = 24, MESSAGES = 60, TAG = 5 };

static long faults(void) {
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_minflt;
}

static void exchange(const unsigned char *out, unsigned char *in, int bytes, int i) {
    MPI_Sendrecv(out, bytes, MPI_BYTE, 1 - check_rank, TAG, in, bytes, MPI_BYTE, 1 - check_rank, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    check_equal(in, (size_t)bytes, (uint64_t)(2 * i + 1 - check_rank));
}

/* Room for the MPI library's own memory below the buffers: if it lay above them, they could not be given back. */
static void make_holes(void) {
    enum { HOLES = 256 };
    static void *holes[HOLES][2];
    for (int k = 0; k < HOLES; k++)
        for (int half = 0; half < 2; half++) CHECK((holes[k][half] = malloc(k % 2 == 0 ? 1000 : 100000)) != NULL);
    for (int k = 0; k < HOLES; k++) free(holes[k][0]);
}

static void fresh(int i) {
    if (i == 0) make_holes();
    /* Three are more than twice the longest one, which malloc learns to keep by itself. */
    unsigned char *out = malloc(BLOCK), *between = malloc(BLOCK), *in = malloc(BLOCK);
    CHECK(out != NULL && between != NULL && in != NULL);
    check_fill(out, BYTES, (uint64_t)(2 * i + check_rank));
    exchange(out, in, BYTES, i);
    free(out);
    free(between);
    free(in);
}

static void same(int i) {
    static unsigned char *out, *in[SAME];
    if (i == 0) {
        CHECK((out = aligned_alloc(4096, SAME_BYTES)) != NULL);
        for (int k = 0; k < SAME; k++) CHECK((in[k] = aligned_alloc(4096, SAME_BYTES)) != NULL);
    }
    check_fill(out, SAME_BYTES, (uint64_t)(2 * i + check_rank));
    exchange(out, in[i % SAME], SAME_BYTES, i);
}

static void reduce(int i) {
    enum { NUMBERS = BYTES / sizeof(int) };
    static int out[NUMBERS], sum[NUMBERS];
    for (int k = 0; k < NUMBERS; k += 997) out[k] = (check_rank + 1) * (i + k);
    MPI_Reduce(out, sum, NUMBERS, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    for (int k = 0; check_rank == 0 && k < NUMBERS; k += 997) CHECK(sum[k] == 3 * (i + k));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    CHECK(argc == 2);
    void (*send)(int) = strcmp(argv[1], "fresh") == 0 ? fresh : strcmp(argv[1], "same") == 0 ? same : reduce;
    long before = 0;
    for (int i = 0; i < MESSAGES; i++) {
        if (i == MESSAGES / 2) before = faults();
        send(i);
    }
    long mine = faults() - before, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (check_rank == 0) printf("%ld faults\n", all);
    return check_finish();
}
