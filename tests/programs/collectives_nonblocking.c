/* Nonblocking collectives, several in flight with point-to-point traffic between start and end. */
#include "check.h"

enum { ROUNDS = 12, N = 6000, RANKS = 8, KINDS = 14 };

static int a[N * RANKS], b[KINDS][N * RANKS];

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    MPI_Comm world = MPI_COMM_WORLD;
    int p = check_size, share = N / p;
    int counts[RANKS], starts[RANKS], bytes[RANKS];
    MPI_Datatype types[RANKS];
    CHECK(p <= RANKS);
    for (int r = 0; r < p; r++) {
        counts[r] = share, starts[r] = r * share, bytes[r] = 4 * r * share, types[r] = MPI_INT;
    }
    unsigned char *out = check_allocate(12000), *in = check_allocate(12000);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        int root = (int)round % p, k = 0;
        MPI_Request requests[KINDS + 2];
        for (int i = 0; i < N * p; i++) a[i] = (int)round * 3 + check_rank * 101 + i;
        memset(b, 0, sizeof b);
        if (check_rank == root) memcpy(b[0], a, sizeof(int) * N);
        MPI_Ibcast(b[0], N, MPI_INT, root, world, &requests[k++]);
        MPI_Ireduce(a, b[1], N, MPI_INT, MPI_SUM, root, world, &requests[k++]);
        MPI_Iallreduce(a, b[2], N, MPI_INT, MPI_SUM, world, &requests[k++]);
        MPI_Igather(a, share, MPI_INT, b[3], share, MPI_INT, root, world, &requests[k++]);
        MPI_Iscatter(a, share, MPI_INT, b[4], share, MPI_INT, root, world, &requests[k++]);
        MPI_Iallgather(a, share, MPI_INT, b[5], share, MPI_INT, world, &requests[k++]);
        MPI_Iallgatherv(a, share, MPI_INT, b[6], counts, starts, MPI_INT, world, &requests[k++]);
        MPI_Ialltoall(a, share, MPI_INT, b[7], share, MPI_INT, world, &requests[k++]);
        MPI_Ialltoallv(a, counts, starts, MPI_INT, b[8], counts, starts, MPI_INT, world, &requests[k++]);
        MPI_Ialltoallw(a, counts, bytes, types, b[9], counts, bytes, types, world, &requests[k++]);
        MPI_Ireduce_scatter_block(a, b[10], share, MPI_INT, MPI_MAX, world, &requests[k++]);
        MPI_Iscan(a, b[11], N, MPI_INT, MPI_SUM, world, &requests[k++]);
        MPI_Iexscan(a, b[12], N, MPI_INT, MPI_SUM, world, &requests[k++]);
        MPI_Ibarrier(world, &requests[k++]);
        CHECK(k == KINDS);
        int right = (check_rank + 1) % p, left = (check_rank + p - 1) % p;
        check_fill(out, 12000, round + (uint64_t)check_rank);
        MPI_Irecv(in, 12000, MPI_BYTE, left, 1, world, &requests[k++]);
        MPI_Isend(out, 12000, MPI_BYTE, right, 1, world, &requests[k++]);
        if (round % 3 == 0) {
            MPI_Waitall(k, requests, MPI_STATUSES_IGNORE);
        } else if (round % 3 == 1) {
            int flag = 0;
            while (!flag) MPI_Testall(k, requests, &flag, MPI_STATUSES_IGNORE);
        } else {
            for (int index, i = 0; i < k; i++) MPI_Waitany(k, requests, &index, MPI_STATUS_IGNORE);
        }
        check_equal(in, 12000, round + (uint64_t)left);
        for (int i = 0; i < N; i++) CHECK(b[0][i] == (int)round * 3 + root * 101 + i);
        if (check_rank == 0) memset(b[12], 0, sizeof b[12]); /* Exscan leaves rank 0 undefined */
        for (int i = 0; i < KINDS - 1; i++) check_take(b[i], sizeof b[i]);
        MPI_Iallreduce(MPI_IN_PLACE, a, N, MPI_INT, MPI_SUM, world, requests);
        MPI_Wait(requests, MPI_STATUS_IGNORE);
        check_take(a, sizeof(int) * N);
    }
    return check_finish();
}
