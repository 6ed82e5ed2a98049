/* A blocking send that an error handler leaves by longjmp, and the same buffer sent in other ways afterwards: direct_left WAY.
   Every byte is checked. */
#define LENGTH_IN_PAGES 24
#include "direct_exchange.h"
#include <pthread.h>
#include <setjmp.h>

enum { SENT = LENGTH - 3000, TIMES = 12 };

static jmp_buf escape;
static unsigned char *out;
static MPI_Request persistent;

static void jumping(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    longjmp(escape, 1);
}

/* Rank 0 sends, other bytes each time, until they are read directly and their ends shown. */
static void pass(void) {
    for (int i = 0; i < 4 * REPEATS; i++) {
        seed += 2;
        if (check_rank == 0) {
            check_fill(out, SENT, seed);
            MPI_Send(out, SENT, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        } else {
            MPI_Recv(in, SENT, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_equal(in, SENT, seed);
        }
    }
}

/* The call never returns: no message has such a tag. */
static void leave(void) {
    if (check_rank == 0 && setjmp(escape) == 0) {
        MPI_Send(out, SENT, MPI_BYTE, 1, -77, MPI_COMM_WORLD);
        CHECK(!"the handler has jumped");
    }
}

static void receive(void) { MPI_Recv(in, SENT, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

static void by_isend(void) {
    MPI_Request request;
    if (check_rank == 1) {
        receive();
        return;
    }
    MPI_Isend(out, SENT, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void by_start(void) {
    if (check_rank == 1) {
        receive();
        return;
    }
    MPI_Start(&persistent);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
}

static void by_gather(void) {
    char none[1];
    MPI_Gatherv(out, check_rank == 0 ? SENT : 0, MPI_BYTE, check_rank == 1 ? in : (void *)none, (int[]){SENT, 0},
                (int[]){0, 0}, MPI_BYTE, 1, MPI_COMM_WORLD);
}

/* A collective that is none of those whose buffers are offered. */
static void by_alltoallw(void) {
    int sent[2] = {0, check_rank == 0 ? SENT : 0}, received[2] = {check_rank == 1 ? SENT : 0, 0}, places[2] = {0, 0};
    MPI_Datatype types[2] = {MPI_BYTE, MPI_BYTE};
    MPI_Alltoallw(out, sent, places, types, in, received, places, types, MPI_COMM_WORLD);
}

static void *isend_in_thread(void *none) {
    by_isend();
    return none;
}

static void *start_in_thread(void *none) {
    by_start();
    return none;
}

static void in_thread(void *(*work)(void *)) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void by_other_isend(void) { in_thread(isend_in_thread); }
static void by_other_start(void) { in_thread(start_in_thread); }

/* The thread that has left its send ends. */
static pthread_barrier_t barrier;
static void *pass_and_leave(void *none) {
    pass();
    leave();
    pthread_barrier_wait(&barrier);
    return none;
}

static void again(void (*send)(void), int ends) {
    for (int i = 0; i < TIMES; i++) {
        if (ends) {
            pthread_t thread;
            CHECK(pthread_create(&thread, NULL, pass_and_leave, NULL) == 0);
            pthread_barrier_wait(&barrier);
            CHECK(pthread_join(thread, NULL) == 0);
        } else {
            pass();
            leave();
        }
        seed += 2;
        check_fill(out, SENT, seed);
        memset(in, 0, SENT);
        send();
        if (check_rank == 1) check_equal(in, SENT, seed);
    }
}

static void isend(void) { again(by_isend, 0); }
static void start(void) { again(by_start, 0); }
static void gather(void) { again(by_gather, 0); }
static void alltoallw(void) { again(by_alltoallw, 0); }
static void other_isend(void) { again(by_other_isend, 0); }
static void other_start(void) { again(by_other_start, 0); }
static void ended(void) { again(by_start, 1); }

int main(int argc, char **argv) {
    static const struct way ways[] = {{"isend", isend},   {"start", start},
                                      {"gather", gather}, {"alltoallw", alltoallw},
                                      {"other_isend", other_isend}, {"other_start", other_start},
                                      {"ended", ended}};
    int provided, wanted = MPI_THREAD_SINGLE;
    MPI_Errhandler jump_out;
    CHECK(argc > 1);
    if (strncmp(argv[1], "other", 5) == 0 || strcmp(argv[1], "ended") == 0) wanted = MPI_THREAD_MULTIPLE;
    CHECK(MPI_Init_thread(&argc, &argv, wanted, &provided) == MPI_SUCCESS && provided >= wanted);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    CHECK(check_size == 2);
    MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)jumping, &jump_out);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, jump_out);
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    unsigned char *room = pages(NULL, LENGTH);
    out = room + 1000;
    in = malloc(LENGTH);
    CHECK(in != NULL);
    MPI_Send_init(out, SENT, MPI_BYTE, 1 - check_rank, 2, MPI_COMM_WORLD, &persistent);
    run_way(ways, sizeof ways / sizeof *ways, argv[1]);
    MPI_Request_free(&persistent);
    CHECK(munmap(room, LENGTH) == 0);
    return check_finish();
}
