/* Stands in for an MPI library of MPICH's family with one rank, as far as copytune asks it. STAND_IN_ABI is the major
 * version of the MPI 5.0 ABI that it claims to have; its handles are of that ABI or MPICH's own, and other handles
 * end the process, as MPICH does by default. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_initialised, is_finalised;

static int abi(void) {
    const char *claimed = getenv("STAND_IN_ABI");
    return claimed != NULL ? atoi(claimed) : -1;
}

static void check_world(int comm) {
    if (comm != (abi() > 0 ? 257 : 0x44000000)) {
        printf("invalid communicator %#x\n", (unsigned)comm);
        fflush(stdout);
        abort();
    }
}

void MPIR_Dup_fn(void) {}

int PMPI_Abi_get_version(int *major, int *minor) {
    *major = abi();
    *minor = abi() > 0 ? 0 : -1;
    return 0;
}

int MPI_Init(int *argc, char ***argv) {
    (void)argc, (void)argv;
    is_initialised = 1;
    return 0;
}

int PMPI_Initialized(int *flag) { return *flag = is_initialised, 0; }
int PMPI_Finalized(int *flag) { return *flag = is_finalised, 0; }
int PMPI_Query_thread(int *level) { return *level = 0, 0; }
int PMPI_Comm_rank(int comm, int *rank) { return check_world(comm), *rank = 0, 0; }
int PMPI_Comm_size(int comm, int *size) { return check_world(comm), *size = 1, 0; }

int PMPI_Get_library_version(char *text, int *length) {
    strcpy(text, "MPICH Version: stand-in");
    *length = (int)strlen(text);
    return 0;
}

int MPI_Barrier(int comm) { return check_world(comm), 0; }

int MPI_Finalize(void) {
    is_finalised = 1;
    return 0;
}
