/* Tells a program that there are as many processes as COPYTUNE_TEST_CROWD says: more than this machine could start. */
#include <mpi.h>
#include <stdlib.h>

int MPI_Comm_size(MPI_Comm comm, int *size) {
    const char *crowd = getenv("COPYTUNE_TEST_CROWD");
    int error = PMPI_Comm_size(comm, size);
    if (comm == MPI_COMM_WORLD && crowd != NULL) *size = atoi(crowd);
    return error;
}
