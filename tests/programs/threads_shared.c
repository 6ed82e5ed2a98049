/* Requests that cross threads: one thread posts, another's call fills the buffer, a third waits. */
#include "check.h"
#include <pthread.h>

enum { ROUNDS = 150, LENGTH = 15000 };

static unsigned char *posted, *own;
static pthread_barrier_t gate;
static MPI_Request shared;

static void *poster(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Irecv(posted, LENGTH, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &shared);
        pthread_barrier_wait(&gate);
        pthread_barrier_wait(&gate);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided = 0;
    CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    posted = check_allocate(LENGTH);
    own = check_allocate(LENGTH);
    if (check_rank == 0) {
        pthread_t thread;
        pthread_barrier_init(&gate, NULL, 2);
        CHECK(pthread_create(&thread, NULL, poster, NULL) == 0);
        for (uint64_t round = 0; round < ROUNDS; round++) {
            pthread_barrier_wait(&gate);
            MPI_Recv(own, LENGTH, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Wait(&shared, MPI_STATUS_IGNORE);
            check_equal(posted, LENGTH, round);
            check_equal(own, LENGTH, round + 1000);
            pthread_barrier_wait(&gate);
        }
        pthread_join(thread, NULL);
    } else if (check_rank == 1) {
        for (uint64_t round = 0; round < ROUNDS; round++) {
            check_fill(posted, LENGTH, round);
            check_fill(own, LENGTH, round + 1000);
            MPI_Send(posted, LENGTH, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
            MPI_Send(own, LENGTH, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        }
    }
    return check_finish();
}
