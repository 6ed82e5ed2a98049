/* Functions that not every MPI library has, asked for by weak references and by dlsym: what is there without
 * copytune must be there with it, and nothing else. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>

enum { LENGTH = 40000, ROUNDS = 60 };

#pragma weak MPI_Send_c
#pragma weak PMPI_Send_c
#pragma weak MPI_Recv_c
int MPI_Send_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm);
int PMPI_Send_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm);
int MPI_Recv_c(void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);

/* The linker leaves these to the loader in another way. */
static int (*volatile TABLE[])(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm) = {MPI_Send_c, PMPI_Send_c};

static const char *const NAMES[] = {"MPI_Send",      "MPI_Send_c",         "PMPI_Send_c",        "MPI_Recv_c",       "MPI_Isendrecv",
                                    "MPI_Bcast_c",   "MPI_Session_init",   "MPI_Psend_init",     "MPI_Bcast_init",   "MPIX_Bcast_init",
                                    "MPI_Pready",    "PMPI_Bcast_init",    "MPI_Sendrecv_c",     "MPI_Alltoallw_c",  "MPI_Session_finalize"};

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    if (check_rank == 0) {
        printf("weak: %d %d %d\n", MPI_Send_c != NULL, PMPI_Send_c != NULL, MPI_Recv_c != NULL);
        printf("in a table: %d %d\n", TABLE[0] != NULL, TABLE[1] != NULL);
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
            printf("%s: %d\n", NAMES[i], dlsym(RTLD_DEFAULT, NAMES[i]) != NULL);
    }
    unsigned char *out = check_allocate(LENGTH), *in = check_allocate(LENGTH);
    int peer = check_rank ^ 1;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        check_fill(out, LENGTH, round * 2 + (uint64_t)check_rank);
        for (int turn = 0; turn < 2; turn++) {
            if (turn == check_rank) {
                if (MPI_Send_c != NULL)
                    MPI_Send_c(out, LENGTH, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
                else
                    MPI_Send(out, LENGTH, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
            } else {
                if (MPI_Recv_c != NULL)
                    MPI_Recv_c(in, LENGTH, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                else
                    MPI_Recv(in, LENGTH, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
        }
        check_equal(in, LENGTH, round * 2 + (uint64_t)peer);
    }
    return check_finish();
}
