/* An exchange of a few long messages, of which rank 1 reads each directly that it can (COPYTUNE_DIRECT, set before the library is
   loaded). Rank 0 decides by itself. */
#include "check.h"
#include <unistd.h>

enum { BYTES = 1 << 20, MESSAGES = 10, TAG = 5 };

/* The number that the launcher gives this process. */
static int is_second(void) {
    const char *of_open_mpi = getenv("OMPI_COMM_WORLD_RANK"), *of_hydra = getenv("PMI_RANK");
    const char *number = of_open_mpi ? of_open_mpi : of_hydra;
    return number != NULL && atoi(number) == 1;
}

int main(int argc, char **argv) {
    if (is_second() && strcmp(getenv("COPYTUNE_DIRECT") ? getenv("COPYTUNE_DIRECT") : "", "force") != 0) {
        setenv("COPYTUNE_DIRECT", "force", 1);
        execv("/proc/self/exe", argv);
        return 70;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    unsigned char *out = aligned_alloc(4096, BYTES), *in = aligned_alloc(4096, BYTES);
    CHECK(out != NULL && in != NULL);
    memset(in, 0, BYTES);
    for (int i = 0; i < MESSAGES; i++) {
        check_fill(out, BYTES, (uint64_t)(2 * i + check_rank));
        /* What a promotion may cost grows with time. */
        if (i == 2) usleep(600000);
        MPI_Sendrecv(out, BYTES, MPI_BYTE, 1 - check_rank, TAG, in, BYTES, MPI_BYTE, 1 - check_rank, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        check_equal(in, BYTES, (uint64_t)(2 * i + 1 - check_rank));
    }
    return check_finish();
}
