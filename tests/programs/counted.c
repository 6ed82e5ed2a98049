/* An outer loop of 10 around an inner loop of 4 with Send and Recv, then one Allreduce: each call site
 * is executed a known number of times, which the test looks up in copytune's own account. */
#include "check.h"

enum { OUTER = 10, INNER = 4, LENGTH = 16384 };

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    unsigned char *out = check_allocate(LENGTH), *in = check_allocate(LENGTH);
    int peer = check_rank ^ 1;
    for (int i = 0; i < OUTER; i++) {
        for (int j = 0; j < INNER; j++) {
            uint64_t seed = (uint64_t)(i * INNER + j);
            check_fill(out, LENGTH, seed + (uint64_t)check_rank);
            if (check_rank == 0) {
                MPI_Send(out, LENGTH, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
                MPI_Recv(in, LENGTH, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(in, LENGTH, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(out, LENGTH, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
            }
            check_equal(in, LENGTH, seed + (uint64_t)peer);
        }
        int sum = 0;
        MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        check_take(&sum, sizeof sum);
    }
    return check_finish();
}
