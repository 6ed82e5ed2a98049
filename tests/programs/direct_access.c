/* Who gets at a process's shared pages, and whose files the shim touches: direct_access WAY. */
#define _GNU_SOURCE
#include "direct_exchange.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { FILES = 2048 };

/* How many of the process's descriptors lead to a memory file of that name, for one who may look at it. */
static int leading_to(int process, const char *file) {
    int count = 0;
    for (int number = 0; number < FILES; number++) {
        char name[64], target[128];
        struct stat status;
        snprintf(name, sizeof name, "/proc/%d/fd/%d", process, number);
        ssize_t length = readlink(name, target, sizeof target - 1);
        /* A stat alone is no access, but what can be seen here a change of mode can open. */
        if (length < 0 || stat(name, &status) != 0) continue;
        target[length] = 0;
        count += S_ISREG(status.st_mode) && strstr(target, file) != NULL;
    }
    return count;
}

/* Other processes of the same user can open what is open here, but not the shared pages. */
static void looked_at(void) {
    int other = 1 - check_rank, own = getpid(), theirs, file = memfd_create("direct-open", 0);
    CHECK(file >= 0);
    unsigned char *out = malloc(LENGTH);
    swap(out, LENGTH);
    MPI_Sendrecv(&own, 1, MPI_INT, other, 2, &theirs, 1, MPI_INT, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    /* A process beside this one, as nothing that this one has open counts. */
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (leading_to(theirs, "direct-open") != 1) _exit(8);
        _exit(leading_to(theirs, "copytune") != 0 ? 9 : 7);
    }
    int ended = 0;
    CHECK(child > 0 && waitpid(child, &ended, 0) == child);
    CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 7);
    swap(out, LENGTH);
    close(file);
    free(out);
}

/* To another user the kernel neither copies from this process nor hands over anything. */
static void stranger(void) {
    unsigned char *out = malloc(LENGTH);
    swap(out, LENGTH);
    fflush(NULL);
    int parent = getpid(), ended = 0;
    pid_t child = fork();
    if (child == 0) {
        char byte;
        struct iovec to = {&byte, 1}, from = {out, 1};
        if (setresuid(65534, 65534, 65534) != 0 || process_vm_readv(parent, &to, 1, &from, 1, 0) == 1) _exit(6);
        int process = (int)syscall(SYS_pidfd_open, parent, 0);
        for (int number = 0; number < FILES; number++)
            if (syscall(SYS_pidfd_getfd, process, number, 0) >= 0) _exit(9);
        _exit(leading_to(parent, "copytune") != 0 ? 9 : 7);
    }
    CHECK(child > 0 && waitpid(child, &ended, 0) == child);
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 6) {
        if (check_rank == 0) fprintf(stderr, "skipped: no other user can be had here (it takes root)\n");
    } else {
        CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 7);
    }
    free(out);
}

/* A child that is no other program has no way to its parent's shared pages, whoever may look at it. */
static void child_alone(void) {
    unsigned char *out = malloc(LENGTH);
    swap(out, LENGTH);
    fflush(NULL);
    int ended = 0;
    pid_t child = fork();
    if (child == 0) {
        FILE *file = fopen("/proc/self/maps", "r");
        char line[512];
        while (file != NULL && fgets(line, sizeof line, file) != NULL)
            if (strstr(line, "copytune-arena") != NULL) _exit(9);
        _exit(file == NULL || arena() != 0 ? 9 : 7);
    }
    CHECK(child > 0 && waitpid(child, &ended, 0) == child);
    CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 7);
    swap(out, LENGTH);
    free(out);
}

static volatile int over;

/* Puts a file of the program in the place of each descriptor that leads to the shared pages, and that one back again. */
static void *exchange(void *argument) {
    int file = *(int *)argument, number = arena_at(), copy = number < 0 ? -1 : fcntl(number, F_DUPFD_CLOEXEC, 900);
    while (number >= 0 && !over) {
        CHECK(dup2(file, number) == number);
        CHECK(dup2(copy, number) == number);
    }
    if (copy >= 0) close(copy);
    return NULL;
}

/* A thread of the program closes descriptors that it does not know, and opens others: its files stay as they are. */
static void descriptors(void) {
    enum { SHORT = 24 * PAGE };
    static unsigned char content[64 * PAGE], now[sizeof content];
    unsigned char *warm = malloc(LENGTH);
    swap(warm, LENGTH);
    int file = memfd_create("own", MFD_CLOEXEC);
    check_fill(content, sizeof content, 99);
    CHECK(file >= 0 && write(file, content, sizeof content) == sizeof content);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, exchange, &file) == 0);
    for (int round = 0; round < 60; round++) {
        unsigned char *out = pages(NULL, SHORT);
        for (int i = 0; i < 4; i++) swap_once(out, SHORT);
        CHECK(munmap(out, SHORT) == 0);
    }
    over = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    struct stat status;
    CHECK(fstat(file, &status) == 0 && status.st_size == sizeof content);
    CHECK(pread(file, now, sizeof now, 0) == sizeof now && memcmp(now, content, sizeof now) == 0);
    swap(warm, LENGTH);
    close(file);
    free(warm);
}

int main(int argc, char **argv) {
    static const struct way ways[] = {
        {"looked_at", looked_at}, {"stranger", stranger}, {"child_alone", child_alone}, {"descriptors", descriptors}};
    int level;
    CHECK(argc > 1);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    CHECK(check_size == 2);
    in = malloc(LENGTH);
    CHECK(in != NULL);
    run_way(ways, sizeof ways / sizeof *ways, argv[1]);
    return check_finish();
}
