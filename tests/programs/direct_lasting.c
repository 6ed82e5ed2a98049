/* Nonblocking sends of buffers that are overwritten, or become other memory, as soon as the program knows that they are over:
   direct_lasting WAY [changes]. Before the next send of it the other rank gets the same bytes by operations that no send
   announces; with `changes` it becomes other memory instead. */
#define _GNU_SOURCE
#ifndef LENGTH_IN_PAGES
#define LENGTH_IN_PAGES 24
#endif
#include "direct_exchange.h"
#include <pthread.h>

enum { TURNS = 60, MOST = 5, BYTES = LENGTH - 3000 };

static unsigned char *place, *out;
static MPI_Request requests[MOST];
static MPI_Win window;

/* How many sends of the buffer a turn has. */
static int sends(int turn) { return 1 + turn % MOST; }

static void begin(int number) {
    for (int i = 0; i < number; i++) MPI_Isend(out, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, requests + i);
}

static void wait_each(int number) {
    for (int i = 0; i < number; i++) MPI_Wait(requests + i, MPI_STATUS_IGNORE);
}
static void wait_each_by_its_other_name(int number) {
    for (int i = 0; i < number; i++) PMPI_Wait(requests + i, MPI_STATUS_IGNORE);
}
static void waitall(int number) { MPI_Waitall(number, requests, MPI_STATUSES_IGNORE); }
static void waitany(int number) {
    for (int i = 0, which; i < number; i++) MPI_Waitany(number, requests, &which, MPI_STATUS_IGNORE);
}
static void waitsome(int number) {
    for (int left = number, count, which[MOST]; left > 0; left -= count)
        MPI_Waitsome(number, requests, &count, which, MPI_STATUSES_IGNORE);
}
static void test_each(int number) {
    for (int i = 0, over; i < number; i++)
        for (over = 0; !over;) MPI_Test(requests + i, &over, MPI_STATUS_IGNORE);
}
static void testall(int number) {
    for (int over = 0; !over;) MPI_Testall(number, requests, &over, MPI_STATUSES_IGNORE);
}
static void testany(int number) {
    for (int left = number, over, which; left > 0; left -= over != 0)
        MPI_Testany(number, requests, &which, &over, MPI_STATUS_IGNORE);
}
static void testsome(int number) {
    for (int left = number, count, which[MOST]; left > 0; left -= count)
        MPI_Testsome(number, requests, &count, which, MPI_STATUSES_IGNORE);
}
/* The requests stay: `after` ends them. */
static void look(int number) {
    for (int i = 0, over; i < number; i++)
        for (over = 0; !over;) MPI_Request_get_status(requests[i], &over, MPI_STATUS_IGNORE);
}
/* That all has arrived the receiver says. */
static void await_answer(void) { MPI_Recv(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
static void forget(int number) {
    for (int i = 0; i < number; i++) MPI_Request_free(requests + i);
    await_answer();
}
static void *wait_in_thread(void *number) {
    waitall(*(int *)number);
    return NULL;
}
/* Another thread comes when many sends were followed; one calls MPI at a time (MPI_THREAD_SERIALIZED). */
static void elsewhere(int number) {
    static int turn;
    pthread_t thread;
    if (turn++ < TURNS / 2) {
        waitall(number);
        return;
    }
    CHECK(pthread_create(&thread, NULL, wait_in_thread, &number) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}
static int handled;
static void wait_in_handler(MPI_Comm *communicator, int *error, ...) {
    (void)communicator;
    (void)error;
    waitall(handled);
}
/* Another call, which fails, calls the program back. */
static void called_back(int number) {
    MPI_Errhandler handler;
    handled = number;
    await_answer();
    MPI_Comm_create_errhandler(wait_in_handler, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    CHECK(MPI_Send(out, 1, MPI_BYTE, 7, 1, MPI_COMM_WORLD) != MPI_SUCCESS);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
}
static void persistent(int number) {
    for (int i = 0; i < number; i++) MPI_Send_init(out, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, requests + i);
    if (number % 2)
        MPI_Startall(number, requests);
    else
        for (int i = 0; i < number; i++) MPI_Start(requests + i);
    waitall(number);
    for (int i = 0; i < number; i++) MPI_Request_free(requests + i);
}

static const struct ending {
    const char *name;
    void (*begin)(int), (*end)(int), (*after)(int);
} ways[] = {
    {"wait", begin, wait_each, NULL},
    {"pmpi_wait", begin, wait_each_by_its_other_name, NULL},
    {"waitall", begin, waitall, NULL},
    {"waitany", begin, waitany, NULL},
    {"waitsome", begin, waitsome, NULL},
    {"test", begin, test_each, NULL},
    {"testall", begin, testall, NULL},
    {"testany", begin, testany, NULL},
    {"testsome", begin, testsome, NULL},
    {"get_status", begin, look, waitall},
    {"free", begin, forget, NULL},
    {"thread", begin, elsewhere, NULL},
    {"called_back", begin, called_back, NULL},
    {"persistent", NULL, persistent, NULL},
};

/* The same bytes are sent again, as a part of two operations whose buffers nobody is told of. */
static void pass_unannounced(uint64_t expected) {
    int sent[2] = {0, check_rank == 0 ? BYTES : 0}, received[2] = {check_rank == 1 ? BYTES : 0, 0}, places[2] = {0, 0};
    MPI_Datatype types[2] = {MPI_BYTE, MPI_BYTE};
    for (int i = 0; i < 2; i++) {
        memset(in, 0x5a, BYTES);
        if (i == 0) {
            MPI_Alltoallw(out, sent, places, types, in, received, places, types, MPI_COMM_WORLD);
        } else if (check_rank == 1) {
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
            MPI_Get(in, BYTES, MPI_BYTE, 0, 1000, BYTES, MPI_BYTE, window);
            MPI_Win_unlock(0, window);
        }
        if (check_rank == 1) check_equal(in, BYTES, expected);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void receive(int number, uint64_t expected, int answers) {
    for (int i = 0; i < number; i++) {
        memset(in, 0x5a, BYTES + 1);
        MPI_Recv(in, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_equal(in, BYTES, expected);
        CHECK(in[BYTES] == 0x5a);
    }
    if (answers) MPI_Send(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
}

/* The buffer becomes other memory: moved away and back, other pages at the same place, or none of them. */
static void change(int turn) {
    switch (turn % 7) {
    case 2:
        CHECK(munmap(place, LENGTH) == 0);
        CHECK(pages(place, LENGTH) == place);
        break;
    case 4: pages(place + (LENGTH / 3 & -PAGE), LENGTH / 6); break;
    case 6: CHECK(madvise(place, LENGTH, MADV_DONTNEED) == 0); break;
    default: break;
    }
}

static void run(const struct ending *way, int changes) {
    for (int turn = 0; turn < TURNS; turn++) {
        int number = sends(turn);
        uint64_t sent = seed += 2, later = seed += 2;
        if (check_rank == 0) {
            if (changes) change(turn);
            check_fill(out, BYTES, sent);
            if (way->begin != NULL) way->begin(number);
            way->end(number);
            check_fill(out, BYTES, later);
        } else {
            receive(number, sent, way->end == forget || way->end == called_back);
        }
        if (!changes) pass_unannounced(later);
        if (check_rank == 0 && way->after != NULL) way->after(number);
    }
}

int main(int argc, char **argv) {
    int provided;
    CHECK(argc >= 2);
    CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided) == MPI_SUCCESS);
    CHECK(provided >= MPI_THREAD_SERIALIZED);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    CHECK(check_size == 2);
    const struct ending *way = NULL;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, argv[1]) == 0) way = ways + i;
    CHECK(way != NULL);
    int changes = argc > 2;
    place = pages(NULL, LENGTH);
    out = place + 1000;
    in = malloc(LENGTH);
    CHECK(in != NULL);
    if (!changes) MPI_Win_create(place, LENGTH, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    run(way, changes);
    if (!changes) MPI_Win_free(&window);
    return check_finish();
}
