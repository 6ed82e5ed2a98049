/* Neighbourhood collectives on a torus and on a graph, blocking and nonblocking. */
#include "check.h"

enum { N = 3000, ROUNDS = 20, MOST = 8 };

static int out[N * MOST], in[N * MOST];

static void both(MPI_Comm comm, int sources, int targets, int round) {
    int counts[MOST], starts[MOST];
    MPI_Aint bytes[MOST];
    MPI_Datatype types[MOST];
    MPI_Request request;
    for (int k = 0; k < MOST; k++) counts[k] = N, starts[k] = k * N, bytes[k] = 4 * k * N, types[k] = MPI_INT;
    for (int i = 0; i < N * targets; i++) out[i] = round + check_rank * 10007 + i;
    size_t size = sizeof(int) * N * (size_t)sources;
    memset(in, 0, sizeof in);
    MPI_Neighbor_allgather(out, N, MPI_INT, in, N, MPI_INT, comm);
    check_take(in, size);
    MPI_Neighbor_allgatherv(out, N, MPI_INT, in, counts, starts, MPI_INT, comm);
    check_take(in, size);
    MPI_Neighbor_alltoall(out, N, MPI_INT, in, N, MPI_INT, comm);
    check_take(in, size);
    MPI_Neighbor_alltoallv(out, counts, starts, MPI_INT, in, counts, starts, MPI_INT, comm);
    check_take(in, size);
    MPI_Neighbor_alltoallw(out, counts, bytes, types, in, counts, bytes, types, comm);
    check_take(in, size);
    memset(in, 0, sizeof in);
    MPI_Ineighbor_allgather(out, N, MPI_INT, in, N, MPI_INT, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_take(in, size);
    MPI_Ineighbor_alltoall(out, N, MPI_INT, in, N, MPI_INT, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_take(in, size);
    MPI_Ineighbor_alltoallv(out, counts, starts, MPI_INT, in, counts, starts, MPI_INT, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_take(in, size);
}

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    int extents[2] = {0, 0}, periods[2] = {1, 1};
    MPI_Comm torus, graph;
    MPI_Dims_create(check_size, 2, extents);
    MPI_Cart_create(MPI_COMM_WORLD, 2, extents, periods, 0, &torus);
    /* A ring in one direction with a link to oneself. */
    int from[2] = {(check_rank + check_size - 1) % check_size, check_rank};
    int to[2] = {(check_rank + 1) % check_size, check_rank};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, from, MPI_UNWEIGHTED, 2, to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph);
    for (int round = 0; round < ROUNDS; round++) {
        both(torus, 4, 4, round);
        both(graph, 2, 2, round);
    }
    MPI_Comm_free(&torus);
    MPI_Comm_free(&graph);
    return check_finish();
}
