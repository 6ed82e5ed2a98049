/* A thread that never calls MPI ends the process, while the main thread makes calls of ever more sizes: a call site each. The argument
   names the thread level. */
#include "check.h"
#include <pthread.h>
#include <unistd.h>

enum { LONGEST = 60000 };

static volatile int sizes;

static void *leave(void *none) {
    (void)none;
    while (sizes < 1000) usleep(100);
    exit(0);
}

int main(int argc, char **argv) {
    int provided, wanted = MPI_THREAD_FUNNELED;
    pthread_t thread;
    CHECK(argc > 1);
    if (strcmp(argv[1], "MPI_THREAD_MULTIPLE") == 0) wanted = MPI_THREAD_MULTIPLE;
    CHECK(MPI_Init_thread(&argc, &argv, wanted, &provided) == MPI_SUCCESS && provided >= wanted);
    unsigned char *out = check_allocate(LONGEST), *in = check_allocate(LONGEST);
    CHECK(pthread_create(&thread, NULL, leave, NULL) == 0);
    for (;; sizes++) {
        int length = sizes % LONGEST;
        check_fill(out, 8, (uint64_t)sizes);
        MPI_Sendrecv(out, length, MPI_BYTE, 0, 1, in, length, MPI_BYTE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        MPI_Sendrecv(out, 8, MPI_BYTE, 0, 1, in, 8, MPI_BYTE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        check_equal(in, 8, (uint64_t)sizes);
    }
}
