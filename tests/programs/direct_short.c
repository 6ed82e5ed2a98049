/* Messages of 20 KiB, sent again and again from one buffer: direct_short WAY. All but "pages" begin within a page. */
#define _GNU_SOURCE
#define LENGTH_IN_PAGES 5
#include "direct_exchange.h"
#include <pthread.h>

enum { MESSAGES = 200 };

static unsigned char *out;

/* The next bytes to send. */
static void renew(void) {
    seed += 2;
    check_fill(out, LENGTH, seed + (uint64_t)check_rank);
}

static void blocking(void) {
    for (int i = 0; i < MESSAGES; i++) swap_once(out, LENGTH);
}

/* Both ranks start a send and a receive, and wait for both. */
static void nonblocking(void) {
    int other = 1 - check_rank;
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Request requests[2];
        renew();
        MPI_Irecv(in, LENGTH, MPI_BYTE, other, 1, MPI_COMM_WORLD, requests);
        MPI_Isend(out, LENGTH, MPI_BYTE, other, 1, MPI_COMM_WORLD, requests + 1);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check_equal(in, LENGTH, seed + (uint64_t)other);
    }
}

static void persistent(void) {
    int other = 1 - check_rank;
    MPI_Request requests[2];
    MPI_Recv_init(in, LENGTH, MPI_BYTE, other, 1, MPI_COMM_WORLD, requests);
    MPI_Send_init(out, LENGTH, MPI_BYTE, other, 1, MPI_COMM_WORLD, requests + 1);
    for (int i = 0; i < MESSAGES; i++) {
        renew();
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check_equal(in, LENGTH, seed + (uint64_t)other);
    }
    for (int i = 0; i < 2; i++) MPI_Request_free(requests + i);
}

static void *meet(void *argument) {
    MPI_Barrier(MPI_COMM_WORLD);
    return argument;
}

/* Another thread has called MPI. */
static void threaded(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, meet, NULL) == 0 && pthread_join(thread, NULL) == 0);
    nonblocking();
}

int main(int argc, char **argv) {
    const struct way ways[] = {
        {"blocking", blocking}, {"nonblocking", nonblocking}, {"persistent", persistent}, {"threaded", threaded}, {"pages", threaded}};
    int provided;
    CHECK(argc == 2);
    CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided) == MPI_SUCCESS && provided >= MPI_THREAD_SERIALIZED);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    CHECK(check_size == 2);
    in = pages(NULL, LENGTH + PAGE);
    out = pages(NULL, LENGTH + PAGE) + (strcmp(argv[1], "pages") == 0 ? 0 : 64);
    run_way(ways, sizeof ways / sizeof *ways, argv[1]);
    return check_finish();
}
