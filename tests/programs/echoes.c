/* Pairs of ranks send a message there and back often enough for copytune to decide, then all meet. */
#include "check.h"

enum { BYTES = 65536, ROUNDS = 1500 };

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    unsigned char *out = check_allocate(BYTES), *in = check_allocate(BYTES);
    int other = check_rank ^ 1;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        out[round] = (unsigned char)round;
        if (check_rank % 2 == 0) {
            MPI_Send(out, BYTES, MPI_BYTE, other, 1, MPI_COMM_WORLD);
            MPI_Recv(in, BYTES, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, BYTES, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(in, BYTES, MPI_BYTE, other, 1, MPI_COMM_WORLD);
        }
        CHECK(in[round] == (unsigned char)round);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return check_finish();
}
