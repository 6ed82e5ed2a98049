/* Ranks that send to themselves, and so read from their own memory as they read from others'. */
#include "direct_exchange.h"
#include <sys/resource.h>
#include <sys/wait.h>

enum { MANY = 60 };

/* Until it is promoted and read directly, both by this rank and by the other one. */
static void send_to_self(unsigned char *out) {
    for (int i = 0; i < REPEATS; i++) {
        MPI_Request request;
        seed += 2;
        check_fill(out, LENGTH, seed + (uint64_t)check_rank);
        memset(in, 0x5a, LENGTH);
        MPI_Irecv(in, LENGTH, MPI_BYTE, check_rank, 1, MPI_COMM_WORLD, &request);
        MPI_Send(out, LENGTH, MPI_BYTE, check_rank, 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_equal(in, LENGTH, seed + (uint64_t)check_rank);
    }
    swap(out, LENGTH);
}

/* A child that copies all of a file as long as memory is stopped before that harms anybody: it has two seconds of processor time. */
static void limit_processor(struct rlimit *before) {
    struct rusage usage;
    CHECK(getrlimit(RLIMIT_CPU, before) == 0 && getrusage(RUSAGE_SELF, &usage) == 0);
    struct rlimit limit = *before;
    limit.rlim_cur = (rlim_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + 2);
    CHECK(setrlimit(RLIMIT_CPU, &limit) == 0);
}

/* A child makes its own what was promoted, and nothing else. */
static void forked(void) {
    unsigned char *out = pages(NULL, LENGTH);
    send_to_self(out);
    struct rlimit before;
    limit_processor(&before);
    pid_t child = fork();
    if (child > 0) CHECK(setrlimit(RLIMIT_CPU, &before) == 0);
    if (child == 0) {
        struct rusage usage;
        int well = getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_minflt < 100000;
        for (size_t i = 0; i < LENGTH; i++) well = well && out[i] == check_byte(seed + (uint64_t)check_rank, i);
        memset(out, 0, LENGTH);
        _exit(well ? 3 : 4);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    for (size_t i = 0; i < LENGTH; i++) CHECK(out[i] == check_byte(seed + (uint64_t)check_rank, i));
    munmap(out, LENGTH);
}

/* The memory of buffers that are gone is given back. */
static void renewed(void) {
    for (int i = 0; i < MANY; i++) {
        unsigned char *out = pages(NULL, LENGTH);
        send_to_self(out);
        munmap(out, LENGTH);
    }
    CHECK(arena() < MANY / 2 * (long)LENGTH);
}

int main(int argc, char **argv) {
    static const struct way ways[] = {{"forked", forked}, {"renewed", renewed}};
    CHECK(argc == 2);
    check_init(&argc, &argv);
    CHECK(check_size == 2);
    in = malloc(LENGTH);
    CHECK(in != NULL);
    run_way(ways, sizeof ways / sizeof ways[0], argv[1]);
    free(in);
    return check_finish();
}
