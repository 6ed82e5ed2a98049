/* A rank whose message buffers are promoted forks. The child tells how it ended by its status, on stderr. */
#include "direct_exchange.h"
#include <sys/wait.h>

int main(int argc, char **argv) {
    CHECK(MPI_Init(&argc, &argv) == MPI_SUCCESS);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    CHECK(check_size == 2);
    in = malloc(LENGTH);
    unsigned char *out = pages(NULL, LENGTH);
    CHECK(in != NULL);
    swap(out, LENGTH);
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        memset(out, 0x33, LENGTH);
        _exit(7);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    fprintf(stderr, "rank %d: child ended with %d\n", check_rank, WEXITSTATUS(status));
    check_equal(out, LENGTH, seed + (uint64_t)check_rank);
    swap(out, LENGTH);
    return check_finish();
}
