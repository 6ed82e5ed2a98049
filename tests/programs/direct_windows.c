/* Windows of nonblocking messages of 48 KiB from buffers side by side, none of which begins with a page: direct_windows WAY. All
   buffers are written anew before each window, and all that arrives is checked. */
#define _GNU_SOURCE
#define LENGTH_IN_PAGES 12
#include "direct_exchange.h"

#include <pthread.h>

enum { COUNT = 48, WINDOWS = 30, OFFSET = 64 };

static unsigned char *out;
static size_t stride = LENGTH;
static MPI_Request requests[2 * COUNT];

static unsigned char *buffer(int number) {
    return out + (size_t)number * stride;
}

static void renew(void) {
    seed += 2 * COUNT;
    for (int i = 0; i < COUNT; i++) check_fill(buffer(i), LENGTH, seed + (uint64_t)(i * 2 + check_rank));
}

static void check(void) {
    for (int i = 0; i < COUNT; i++)
        check_equal(in + (size_t)i * LENGTH, LENGTH, seed + (uint64_t)(i * 2 + 1 - check_rank));
}

static void begin_receive(int number) {
    MPI_Irecv(in + (size_t)number * LENGTH, LENGTH, MPI_BYTE, 1 - check_rank, number, MPI_COMM_WORLD, requests + number);
}

static void begin_send(int number) {
    MPI_Isend(buffer(number), LENGTH, MPI_BYTE, 1 - check_rank, number, MPI_COMM_WORLD, requests + COUNT + number);
}

static void side_by_side(void) {
    for (int window = 0; window < WINDOWS; window++) {
        renew();
        for (int i = 0; i < COUNT; i++) begin_receive(i);
        for (int i = 0; i < COUNT; i++) begin_send(i);
        MPI_Waitall(2 * COUNT, requests, MPI_STATUSES_IGNORE);
        check();
    }
}

/* Each send is over, and its buffer in use again, before the next one begins. */
static void waited(void) {
    for (int window = 0; window < WINDOWS; window++) {
        renew();
        for (int i = 0; i < COUNT; i++) begin_receive(i);
        for (int i = 0; i < COUNT; i++) {
            begin_send(i);
            MPI_Wait(requests + COUNT + i, MPI_STATUS_IGNORE);
            memset(buffer(i), window, LENGTH);
        }
        MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
        check();
    }
}

static void *wait_and_write(void *number) {
    int i = (int)(size_t)number;
    MPI_Wait(requests + COUNT + i, MPI_STATUS_IGNORE);
    memset(buffer(i), i, LENGTH);
    return NULL;
}

/* Another thread ends each send; one calls MPI at a time (MPI_THREAD_SERIALIZED). */
static void serialized(void) {
    for (int window = 0; window < WINDOWS; window++) {
        renew();
        for (int i = 0; i < COUNT; i++) begin_receive(i);
        for (int i = 0; i < COUNT; i++) {
            pthread_t thread;
            begin_send(i);
            CHECK(pthread_create(&thread, NULL, wait_and_write, (void *)(size_t)i) == 0);
            CHECK(pthread_join(thread, NULL) == 0);
        }
        MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
        check();
    }
}

static void started(void) {
    for (int i = 0; i < COUNT; i++) {
        MPI_Recv_init(in + (size_t)i * LENGTH, LENGTH, MPI_BYTE, 1 - check_rank, i, MPI_COMM_WORLD, requests + i);
        MPI_Send_init(buffer(i), LENGTH, MPI_BYTE, 1 - check_rank, i, MPI_COMM_WORLD, requests + COUNT + i);
    }
    for (int window = 0; window < WINDOWS; window++) {
        renew();
        MPI_Startall(2 * COUNT, requests);
        MPI_Waitall(2 * COUNT, requests, MPI_STATUSES_IGNORE);
        check();
    }
    for (int i = 0; i < 2 * COUNT; i++) MPI_Request_free(requests + i);
}

/* What is asked for after its only send is but made ready to be sent again: others may write it. */
static void initialized(void) {
    renew();
    for (int i = 0; i < COUNT; i++) begin_receive(i);
    for (int i = 0; i < COUNT; i++) begin_send(i);
    MPI_Waitall(2 * COUNT, requests, MPI_STATUSES_IGNORE);
    check();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int window = 0; window < WINDOWS; window++)
        for (int i = 0; i < COUNT; i++) {
            MPI_Send_init(buffer(i), LENGTH, MPI_BYTE, 1 - check_rank, i, MPI_COMM_WORLD, requests);
            MPI_Request_free(requests);
        }
}

/* Each buffer is promoted for sends, then sent and received into at once, then sent again. */
static void replaced(void) {
    side_by_side();
#if MPI_VERSION >= 4
    int other = 1 - check_rank;
    for (int window = 0; window < WINDOWS; window++) {
        renew();
        for (int i = 0; i < COUNT; i++)
            MPI_Isendrecv_replace(buffer(i), LENGTH, MPI_BYTE, other, i, other, i, MPI_COMM_WORLD, requests + i);
        MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < COUNT; i++) check_equal(buffer(i), LENGTH, seed + (uint64_t)(i * 2 + other));
    }
#else
    if (check_rank == 0) fputs("skipped: MPI_Isendrecv_replace (before MPI 4.0)\n", stderr);
#endif
    side_by_side();
}

int main(int argc, char **argv) {
    const struct way ways[] = {{"side_by_side", side_by_side},
                               {"apart", side_by_side},
                               {"waited", waited},
                               {"serialized", serialized},
                               {"started", started},
                               {"initialized", initialized},
                               {"replaced", replaced}};
    CHECK(argc == 2);
    check_init(&argc, &argv);
    CHECK(check_size == 2);
    if (strcmp(argv[1], "apart") == 0) stride = 3 * LENGTH;
    in = pages(NULL, (size_t)COUNT * LENGTH);
    out = pages(NULL, (size_t)COUNT * stride + PAGE) + OFFSET;
    run_way(ways, sizeof ways / sizeof *ways, argv[1]);
    return check_finish();
}
