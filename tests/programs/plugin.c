/* A plugin with an MPI call in a loop, for plugin_host.c. */
#include <mpi.h>

int plugin_start(int *argc, char ***argv, int *rank, int *size) {
    if (MPI_Init(argc, argv) != MPI_SUCCESS) return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    return MPI_Comm_size(MPI_COMM_WORLD, size);
}

int plugin_shift(const void *out, void *in, int length, int right, int left) {
    return MPI_Sendrecv(out, length, MPI_BYTE, right, 1, in, length, MPI_BYTE, left, 1, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE);
}

int plugin_stop(void) { return MPI_Finalize(); }
