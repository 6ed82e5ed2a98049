/* Two ranks send each other a buffer until it is promoted, and then fork again and again: each child makes its own copy, and its parent
   waits. Says on stderr what became of the buffer. With `window`, eight sends of it are under way at once, so that a peer may be reading it
   when another send begins. */
#define LENGTH_IN_PAGES 16
#include "direct_exchange.h"
#include <sys/wait.h>

/* Enough sends for one look at what forks cost, and enough forks that they take a good part of the time, however slow the machine. */
enum { MOST_TURNS = 100, SENDS = 128, FORKS = 16, WINDOW = 8 };

static int has_window;
static unsigned char *ins[WINDOW];

static void exchange(unsigned char *out) {
    if (!has_window) {
        swap_once(out, LENGTH);
        return;
    }
    int other = 1 - check_rank;
    MPI_Request requests[2 * WINDOW];
    seed += 2;
    check_fill(out, LENGTH, seed + (uint64_t)check_rank);
    for (int i = 0; i < WINDOW; i++) {
        memset(ins[i], 0x5a, LENGTH);
        MPI_Irecv(ins[i], LENGTH, MPI_BYTE, other, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < WINDOW; i++) MPI_Isend(out, LENGTH, MPI_BYTE, other, i, MPI_COMM_WORLD, &requests[WINDOW + i]);
    MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < WINDOW; i++) check_equal(ins[i], LENGTH, seed + (uint64_t)other);
}

/* So many sends. */
static void exchange_all(unsigned char *out) {
    for (int i = 0; i < (has_window ? SENDS / WINDOW : SENDS); i++) exchange(out);
}

/* Whether the buffer's first page lies in the arena. */
static int is_promoted(const unsigned char *buffer) {
    char line[512];
    int is_there = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    CHECK(file != NULL);
    while (!is_there && fgets(line, sizeof line, file) != NULL) {
        unsigned long start, end, address = (unsigned long)buffer;
        CHECK(sscanf(line, "%lx-%lx", &start, &end) == 2);
        is_there = start <= address && address < end && strstr(line, "copytune-arena") != NULL;
    }
    fclose(file);
    return is_there;
}

/* Whether that holds on both ranks. */
static int both(int holds) {
    int all;
    MPI_Allreduce(&holds, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

static void fork_once(unsigned char *out) {
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        check_equal(out, LENGTH, seed + (uint64_t)check_rank);
        memset(out, 0x33, LENGTH);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    CHECK(check_size == 2);
    has_window = argc > 1 && strcmp(argv[1], "window") == 0;
    in = malloc(LENGTH);
    unsigned char *out = pages(NULL, LENGTH);
    CHECK(in != NULL);
    for (int i = 0; i < WINDOW; i++) CHECK((ins[i] = malloc(LENGTH)) != NULL);
    int turns = 0;
    do exchange_all(out);
    while (!both(is_promoted(out)) && ++turns < MOST_TURNS);
    fprintf(stderr, "rank %d: %s\n", check_rank, is_promoted(out) ? "promoted" : "never promoted");
    turns = 0;
    do {
        for (int i = 0; i < FORKS; i++) fork_once(out);
        exchange_all(out);
    } while (!both(!is_promoted(out)) && ++turns < MOST_TURNS);
    fprintf(stderr, "rank %d: %s\n", check_rank, is_promoted(out) ? "still promoted" : "private again");
    return check_finish();
}
