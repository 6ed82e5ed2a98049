/* Persistent collectives: MPI 4 in MPICH, the MPIX extension in Open MPI 4.1. */
#include "check.h"
#ifdef OPEN_MPI
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name
#else
#define PERSISTENT(name) MPI_##name
#endif

enum { ROUNDS = 30, N = 5000, RANKS = 8 };

static int a[N], sum[N], turned[N * RANKS], wide[N * RANKS];

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    MPI_Request requests[3];
    int p = check_size;
    CHECK(p <= RANKS);
    PERSISTENT(Bcast_init)(a, N, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    PERSISTENT(Allreduce_init)(a, sum, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    PERSISTENT(Alltoall_init)(wide, N, MPI_INT, turned, N, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < N; i++) a[i] = check_rank == 0 ? round + i : -1;
        MPI_Start(&requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++) {
            CHECK(a[i] == round + i);
            a[i] += check_rank * 1000;
        }
        for (int i = 0; i < N * p; i++) wide[i] = check_rank * 100000 + i + round;
        MPI_Startall(2, requests + 1);
        MPI_Waitall(2, requests + 1, MPI_STATUSES_IGNORE);
        check_take(sum, sizeof sum);
        check_take(turned, sizeof(int) * N * (size_t)p);
        for (int i = 0; i < N; i++) CHECK(sum[i] == p * (round + i) + p * (p - 1) / 2 * 1000);
        for (int r = 0; r < p; r++) CHECK(turned[r * N] == r * 100000 + check_rank * N + round);
    }
    for (int i = 0; i < 3; i++) MPI_Request_free(&requests[i]);
    return check_finish();
}
