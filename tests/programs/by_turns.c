/* by_turns ROUNDS BYTES: rank 0 sends messages, of each of which two threads of rank 1 wait for the end by turns: MPI_Test is called by the
   one, then by the other. A library that copies a message in parts copies them in both. */
#include "check.h"
#include <pthread.h>
#include <sched.h>

enum { THREADS = 2, TAG = 4 };

static MPI_Request request = MPI_REQUEST_NULL;
static int turn, rounds, bytes, round_now;
static unsigned char *data;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Goes on with the message of this round, or begins that of the next; 0: there is none. */
static int go_on(void) {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done)
        return 1;
    if (round_now > 0)
        check_equal(data, (size_t)bytes, (uint64_t)round_now);
    if (round_now++ == rounds)
        return 0;
    MPI_Irecv(data, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request);
    return 1;
}

static void *take_turns(void *argument) {
    int own = *(int *)argument, goes_on = 1;
    while (goes_on) {
        pthread_mutex_lock(&lock);
        if (round_now > rounds)
            goes_on = 0;
        else if (turn == own) {
            goes_on = go_on();
            turn = (turn + 1) % THREADS;
        }
        pthread_mutex_unlock(&lock);
        sched_yield();
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided = 0;
    CHECK(argc == 3);
    CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    rounds = atoi(argv[1]);
    bytes = atoi(argv[2]);
    data = check_allocate((size_t)bytes);
    if (check_rank == 0) {
        for (int round = 1; round <= rounds; round++) {
            check_fill(data, (size_t)bytes, (uint64_t)round);
            MPI_Send(data, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        }
    } else {
        pthread_t threads[THREADS];
        int numbers[THREADS];
        for (int t = 0; t < THREADS; t++) {
            numbers[t] = t;
            CHECK(pthread_create(&threads[t], NULL, take_turns, &numbers[t]) == 0);
        }
        for (int t = 0; t < THREADS; t++)
            pthread_join(threads[t], NULL);
    }
    free(data);
    return check_finish();
}
