/* Kills process 1 in the middle of a program: where it first sends something after a barrier. It makes the file that
   COPYTUNE_TEST_DIED names, because launchers may lose what a process says last. */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>

static int passed;

static void die(void) {
    const char *mark = getenv("COPYTUNE_TEST_DIED");
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!passed || rank != 1) return;
    if (mark != NULL) open(mark, O_CREAT | O_WRONLY, 0600);
    raise(SIGKILL);
}

int MPI_Barrier(MPI_Comm comm) {
    passed = 1;
    return PMPI_Barrier(comm);
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm) {
    die();
    return PMPI_Send(buffer, count, type, target, tag, comm);
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
              MPI_Request *request) {
    die();
    return PMPI_Isend(buffer, count, type, target, tag, comm, request);
}

int MPI_Alltoallv(const void *out, const int out_counts[], const int out_places[], MPI_Datatype out_type, void *in,
                  const int in_counts[], const int in_places[], MPI_Datatype in_type, MPI_Comm comm) {
    die();
    return PMPI_Alltoallv(out, out_counts, out_places, out_type, in, in_counts, in_places, in_type, comm);
}
