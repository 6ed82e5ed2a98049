/* A thread that is to be cancelled at its next cancellation point calls what is none, for promoted memory: direct_cancelled WAY. */
#define _GNU_SOURCE
#define LENGTH_IN_PAGES 24
#include "direct_exchange.h"
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static unsigned char *out;
static int is_past;

static void discard(void) { CHECK(madvise(out, LENGTH, MADV_DONTNEED) == 0); }

static void move(void) {
    unsigned char *moved = mremap(out, LENGTH, 2 * LENGTH, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED);
    out = moved;
}

static void divide(void) {
    pid_t child = fork();
    if (child == 0) _exit(7);
    int state, status = 0;
    /* waitpid is a cancellation point of the program's own. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    pthread_setcancelstate(state, NULL);
}

static void *run(void *call) {
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    CHECK(pthread_cancel(pthread_self()) == 0);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    (*(void (**)(void))call)();
    is_past = 1;
    pthread_testcancel();
    return NULL;
}

static void cancelled(void (*call)(void)) {
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        void *result = NULL;
        out = pages(NULL, LENGTH);
        swap(out, LENGTH);
        is_past = 0;
        CHECK(pthread_create(&thread, NULL, run, &call) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        CHECK(is_past);
        CHECK(munmap(out, LENGTH) == 0);
    }
}

static void by_discarding(void) { cancelled(discard); }
static void by_moving(void) { cancelled(move); }
static void by_forking(void) { cancelled(divide); }

int main(int argc, char **argv) {
    static const struct way ways[] = {{"discard", by_discarding}, {"move", by_moving}, {"fork", by_forking}};
    CHECK(argc > 1);
    check_init(&argc, &argv);
    CHECK(check_size == 2);
    in = malloc(LENGTH);
    CHECK(in != NULL);
    fflush(NULL);
    run_way(ways, sizeof ways / sizeof *ways, argv[1]);
    return check_finish();
}
