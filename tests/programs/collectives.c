/* Every blocking collective, in place where the standard allows it. */
#include "check.h"

enum { ROUNDS = 5, MAX = 20000, RANKS = 8 };

static int *a, *b;

static int value(uint64_t round, int rank, int i) { return (int)(round * 7 + (uint64_t)rank * 131 + (uint64_t)i * 17); }

static void fill(uint64_t round, int count) {
    for (int i = 0; i < count; i++) a[i] = value(round, check_rank, i);
    memset(b, 0x5a, sizeof(int) * MAX * RANKS);
}

static void take(const int *data, int count) { check_take(data, sizeof(int) * (size_t)count); }

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    MPI_Comm world = MPI_COMM_WORLD;
    CHECK(check_size <= RANKS);
    a = malloc(sizeof(int) * MAX * RANKS);
    b = malloc(sizeof(int) * MAX * RANKS);
    int counts[RANKS], starts[RANKS], sizes[] = {0, 1, 30, 1100, 5000, MAX};
    MPI_Datatype types[RANKS];
    for (uint64_t round = 0; round < ROUNDS; round++)
        for (int s = 0; s < 6; s++) {
            int n = sizes[s], p = check_size, root = (int)round % p, here = check_rank == root;
            int share = n / p, total = 0;
            for (int r = 0; r < p; r++) {
                counts[r] = share / (r + 1);
                starts[r] = total;
                total += counts[r];
                types[r] = MPI_INT;
            }
            fill(round, n);
            MPI_Bcast(a, n, MPI_INT, root, world);
            take(a, n);
            for (int i = 0; i < n; i++) CHECK(a[i] == value(round, root, i));
            fill(round, n);
            MPI_Reduce(a, b, n, MPI_INT, MPI_SUM, root, world);
            if (here) take(b, n);
            /* In place at rank 0 alone: MPICH 4.0 crashes where another rank is the root. */
            MPI_Reduce(check_rank == 0 ? MPI_IN_PLACE : a, a, n, MPI_INT, MPI_SUM, 0, world);
            if (check_rank == 0) take(a, n);
            fill(round, n);
            MPI_Allreduce(a, b, n, MPI_INT, MPI_MAX, world);
            take(b, n);
            MPI_Allreduce(MPI_IN_PLACE, a, n, MPI_INT, MPI_SUM, world);
            take(a, n);
            fill(round, n);
            MPI_Gather(a, share, MPI_INT, b, share, MPI_INT, root, world);
            if (here) take(b, share * p);
            for (int r = 0; here && r < p; r++)
                for (int i = 0; i < share; i++) CHECK(b[r * share + i] == value(round, r, i));
            MPI_Gather(here ? MPI_IN_PLACE : (void *)a, share, MPI_INT, b, share, MPI_INT, root, world);
            MPI_Gatherv(a, counts[check_rank], MPI_INT, b, counts, starts, MPI_INT, root, world);
            if (here) take(b, total);
            fill(round, n * p <= MAX * RANKS ? n * p : n);
            MPI_Scatter(a, n, MPI_INT, b, n, MPI_INT, root, world);
            take(b, n);
            for (int i = 0; i < n; i++) CHECK(b[i] == value(round, root, check_rank * n + i));
            MPI_Scatter(a, n, MPI_INT, here ? MPI_IN_PLACE : (void *)b, n, MPI_INT, root, world);
            MPI_Scatterv(a, counts, starts, MPI_INT, b, counts[check_rank], MPI_INT, root, world);
            take(b, counts[check_rank]);
            fill(round, n);
            MPI_Allgather(a, share, MPI_INT, b, share, MPI_INT, world);
            take(b, share * p);
            MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, b, share, MPI_INT, world);
            take(b, share * p);
            MPI_Allgatherv(a, counts[check_rank], MPI_INT, b, counts, starts, MPI_INT, world);
            take(b, total);
            MPI_Alltoall(a, share, MPI_INT, b, share, MPI_INT, world);
            take(b, share * p);
            for (int r = 0; r < p; r++)
                for (int i = 0; i < share; i++)
                    CHECK(b[r * share + i] == value(round, r, check_rank * share + i));
            MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, b, share, MPI_INT, world);
            take(b, share * p);
            int same[RANKS], offsets[RANKS], bytes[RANKS];
            for (int r = 0; r < p; r++) same[r] = share, offsets[r] = r * share, bytes[r] = 4 * r * share;
            MPI_Alltoallv(a, same, offsets, MPI_INT, b, same, offsets, MPI_INT, world);
            take(b, share * p);
            MPI_Alltoallw(a, same, bytes, types, b, same, bytes, types, world);
            take(b, share * p);
            MPI_Reduce_scatter(a, b, same, MPI_INT, MPI_SUM, world);
            take(b, share);
            MPI_Reduce_scatter_block(a, b, share, MPI_INT, MPI_SUM, world);
            take(b, share);
            MPI_Scan(a, b, n, MPI_INT, MPI_SUM, world);
            take(b, n);
            MPI_Exscan(a, b, n, MPI_INT, MPI_SUM, world);
            if (check_rank > 0) take(b, n);
            MPI_Scan(MPI_IN_PLACE, a, n, MPI_INT, MPI_SUM, world);
            take(a, n);
            MPI_Reduce_local(a, a + MAX, n, MPI_INT, MPI_MAX);
            MPI_Barrier(world);
        }
    return check_finish();
}
