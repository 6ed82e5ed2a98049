/* Rank 1 receives a message; while its main thread is stopped inside that, another thread ends the process. What names the part in
   which it is stopped is the shim's business (COPYTUNE_TEST_STOP). */
#include "check.h"
#include <pthread.h>
#include <unistd.h>

enum { BYTES = 1 << 18, TAG = 3 };

/* Whether the main thread waits in pause(2) for ever. */
static int is_stopped(void) {
    char name[64], text[32] = "";
    snprintf(name, sizeof name, "/proc/self/task/%d/syscall", (int)getpid());
    FILE *file = fopen(name, "r");
    CHECK(file != NULL);
    CHECK(fgets(text, sizeof text, file) != NULL);
    fclose(file);
    return strncmp(text, "34 ", 3) == 0;
}

static void *leave(void *none) {
    (void)none;
    while (!is_stopped()) usleep(1000);
    exit(0);
}

int main(int argc, char **argv) {
    int provided, rank;
    pthread_t thread;
    CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS && provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    unsigned char *data = check_allocate(BYTES);
    check_fill(data, BYTES, 1);
    if (rank == 1) CHECK(pthread_create(&thread, NULL, leave, NULL) == 0);
    for (;;) {
        if (rank == 0)
            MPI_Send(data, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        else
            MPI_Recv(data, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}
