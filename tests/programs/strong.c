/* strong [call]: its library refers to a function that is missing, which is called if it is told to. */
#include "check.h"

enum { LENGTH = 40000, ROUNDS = 60 };

int strong_call(void *out, int length);

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    unsigned char *out = check_allocate(LENGTH), *in = check_allocate(LENGTH);
    int peer = check_rank ^ 1;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        check_fill(out, LENGTH, round * 2 + (uint64_t)check_rank);
        MPI_Sendrecv(out, LENGTH, MPI_BYTE, peer, 0, in, LENGTH, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_equal(in, LENGTH, round * 2 + (uint64_t)peer);
    }
    if (argc > 1) {
        CHECK(strong_call(out, LENGTH) != MPI_SUCCESS);
        fprintf(stderr, "rank %d has an error\n", check_rank);
    }
    return check_finish();
}
