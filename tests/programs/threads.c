/* MPI_THREAD_MULTIPLE: threads that send and receive at once, start anew, and end while others go on. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, GENERATIONS = 4, ROUNDS = 40, LENGTH = 20000 };

typedef struct {
    int index, generation;
    uint64_t sum;
} work;

static void *exchange(void *argument) {
    work *job = argument;
    int peer = check_rank ^ 1;
    unsigned char *out = malloc(LENGTH), *in = malloc(LENGTH);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t seed = (uint64_t)(job->generation * 10000 + job->index * 1000 + round * 2);
        int length = (round * 997 + job->index * 31) % LENGTH;
        MPI_Request requests[2];
        check_fill(out, (size_t)length, seed + (uint64_t)check_rank);
        MPI_Irecv(in, length, MPI_BYTE, peer, job->index, MPI_COMM_WORLD, &requests[0]);
        if (round % 2) {
            MPI_Isend(out, length, MPI_BYTE, peer, job->index, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        } else {
            MPI_Send(out, length, MPI_BYTE, peer, job->index, MPI_COMM_WORLD);
            MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < length; i++) {
            CHECK(in[i] == check_byte(seed + (uint64_t)peer, (size_t)i));
            job->sum = job->sum * 31 + in[i];
        }
    }
    free(out);
    free(in);
    return NULL;
}

int main(int argc, char **argv) {
    int provided = 0;
    CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    for (int generation = 0; generation < GENERATIONS; generation++) {
        pthread_t threads[THREADS];
        work jobs[THREADS];
        for (int t = 0; t < THREADS; t++) {
            jobs[t] = (work){t, generation, 0};
            CHECK(pthread_create(&threads[t], NULL, exchange, &jobs[t]) == 0);
        }
        for (int t = 0; t < THREADS; t++) {
            pthread_join(threads[t], NULL);
            check_take(&jobs[t].sum, sizeof jobs[t].sum);
        }
    }
    return check_finish();
}
