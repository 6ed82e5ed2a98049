/* Children of an MPI process: each way to make one between two phases of messages. */
#define _GNU_SOURCE
#include "check.h"
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 20000, ROUNDS = 40 };

extern char **environ;
static unsigned char *out, *in;

static void work(void) {
    for (uint64_t round = 0; round < ROUNDS; round++) {
        int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
        MPI_Request request;
        check_fill(out, LENGTH, round + (uint64_t)check_rank);
        MPI_Irecv(in, LENGTH, MPI_BYTE, left, 1, MPI_COMM_WORLD, &request);
        MPI_Send(out, LENGTH, MPI_BYTE, right, 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_equal(in, LENGTH, round + (uint64_t)left);
    }
}

static void child_copies(void) {
    unsigned char *data = malloc(2 * LENGTH);
    check_fill(out, LENGTH, 3);
    memcpy(data, out, LENGTH);
    memmove(data + 1, data, LENGTH);
    check_equal(data + 1, LENGTH, 3);
    free(data);
}

static void await(pid_t child, int expected) {
    int status = 0;
    CHECK(child > 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected);
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    const char *way = argv[1];
    char *command[] = {"/bin/sh", "-c", "exit 5", NULL};
    pid_t child;
    check_init(&argc, &argv);
    out = check_allocate(LENGTH);
    in = check_allocate(LENGTH);
    work();
    fflush(NULL);
    if (strcmp(way, "exit") == 0) { /* runs the exit handlers and destructors of the parent */
        child = fork();
        if (child == 0) {
            child_copies();
            exit(4);
        }
        await(child, 4);
    } else if (strcmp(way, "quick_exit") == 0) {
        child = fork();
        if (child == 0) {
            child_copies();
            _exit(4);
        }
        await(child, 4);
    } else if (strcmp(way, "exec") == 0) {
        child = fork();
        if (child == 0) {
            execv(command[0], command);
            _exit(99);
        }
        await(child, 5);
    } else if (strcmp(way, "vfork") == 0) {
        child = vfork();
        if (child == 0) {
            execv(command[0], command);
            _exit(99);
        }
        await(child, 5);
    } else if (strcmp(way, "spawn") == 0) {
        CHECK(posix_spawn(&child, command[0], NULL, NULL, command, environ) == 0);
        await(child, 5);
    } else if (strcmp(way, "system") == 0) {
        int status = system("cat /dev/null; exit 6");
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 6);
    } else if (strcmp(way, "outlive") == 0) { /* the parent ends first */
        if (fork() == 0) {
            usleep(300000);
            child_copies();
            exit(0);
        }
    } else {
        CHECK(!"a known way");
    }
    work();
    return check_finish();
}
