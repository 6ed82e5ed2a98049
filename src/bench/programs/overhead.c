/* What copytune's hooks cost, in windows that callgrind counts: one process that talks to itself.

   Start it under `valgrind --tool=callgrind --collect-atstart=no`. Each window ends with a dump that bears its
   name; standard output gives one line `WINDOW UNITS` for each, in the order of the dumps. A window's
   unit is one copy, one MPI call or one execution of a region.

   usage: overhead WINDOW...   (all windows of the command line, in their order) */
#include "copytune.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/callgrind.h>

enum {
    LARGE = 16 * 1024,
    /* Executions before a window opens: enough to find the loop, watch it and learn what the default costs, and
       few enough that one message's exploration (some 60 executions at least) goes on through the window. */
    EXPLORATION_BEFORE = 24,
    EXPLORATION = 16,
    /* Enough to decide: exploration, and the guard's whole budget. */
    DECISION = 3000,
    /* Enough for a thread with nothing to learn to fall dormant, where what learning may cost is not bounded: two slices. */
    REST = 4096,
    /* Enough for a thread with routines in use to learn what other calls of its loop are, wait as long as that may cost, and stand. */
    STAND = 5 * REST,
};

static char from[4 * LARGE], to[4 * LARGE];

/* What a window runs is the same code as what runs before it, so that the call sites are the same. */
#define NOINLINE __attribute__((noinline, noclone)) static

/* The address hides from the compiler what it could inline. */
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;
static void *(*volatile move)(void *, const void *, size_t) = memmove;

static void toggle(void) { CALLGRIND_TOGGLE_COLLECT; }

static void close_window(const char *name, long units)
{
    CALLGRIND_DUMP_STATS_AT(name);
    printf("%s %ld\n", name, units);
}

NOINLINE void copies(void *(*function)(void *, const void *, size_t), size_t bytes, long times)
{
    for (long i = 0; i < times; i++)
        function(to, from, bytes);
}

static void copy_window(const char *name, void *(*function)(void *, const void *, size_t), size_t bytes)
{
    const long times = 1000;
    copies(function, bytes, 10);
    toggle();
    copies(function, bytes, times);
    toggle();
    close_window(name, times);
}

/* One call site for all: messages are told apart by their size. */
NOINLINE void sendrecv(int bytes)
{
    MPI_Sendrecv(from, bytes, MPI_BYTE, 0, 1, to, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

NOINLINE void sendrecvs(int bytes, long times)
{
    for (long i = 0; i < times; i++)
        sendrecv(bytes);
}

NOINLINE void probes(long times)
{
    int flag;
    for (long i = 0; i < times; i++)
        MPI_Iprobe(0, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

NOINLINE void nonblocking(long times)
{
    for (long i = 0; i < times; i++) {
        MPI_Request request;
        MPI_Irecv(to, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request);
        MPI_Send(from, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* Sends that end at once have the same request, all of them. */
NOINLINE void exchanges(long times)
{
    for (long i = 0; i < times; i++) {
        MPI_Request requests[4];
        for (int side = 0; side < 2; side++)
            MPI_Irecv(to, 0, MPI_BYTE, 0, 3 + side, MPI_COMM_WORLD, &requests[side]);
        for (int side = 0; side < 2; side++)
            MPI_Isend(from, 0, MPI_BYTE, 0, 3 + side, MPI_COMM_WORLD, &requests[2 + side]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    }
}

/* In several windows of one name: on a machine with much other work the drift check may open a decision again. */
static void settled_windows(const char *name, int bytes, long before)
{
    const long times = 256;
    sendrecvs(bytes, before);
    for (int window = 0; window < 9; window++) {
        toggle();
        sendrecvs(bytes, times);
        toggle();
        close_window(name, times);
    }
}

static void probe_window(const char *name)
{
    const long times = 1024;
    probes(REST);
    toggle();
    probes(times);
    toggle();
    close_window(name, times);
}

static void nonblocking_window(const char *name)
{
    const long times = 1024;
    nonblocking(times);
    toggle();
    nonblocking(times);
    toggle();
    close_window(name, 3 * times);
}

static void exchange_window(const char *name)
{
    const long times = 1024;
    exchanges(times);
    toggle();
    exchanges(times);
    toggle();
    close_window(name, 5 * times);
}

/* A call at which nothing is to be learnt or used, in the loop of a message at which something is. The windows hold that call alone; in
   one of them the loop may be found to be another one. */
static void between_windows(const char *name, int bytes, long before, long windows, long times)
{
    int flag;
    for (long i = 0; i < before + windows * times; i++) {
        sendrecv(bytes);
        if (i >= before)
            toggle();
        MPI_Iprobe(0, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        if (i >= before) {
            toggle();
            if ((i - before + 1) % times == 0)
                close_window(name, times);
        }
    }
}

/* Loops of one message each, at call sites of their own: many sizes at one place would share a site. */
#define LOOPS(X) X(a) X(b) X(c) X(d) X(e) X(f) X(g) X(h) X(i) X(j) X(k) X(l) X(m) X(n) X(o) X(p) X(q) X(r) X(s) X(t)
#define LOOP(letter)                                                                                                   \
    NOINLINE void loop_##letter(long times)                                                                            \
    {                                                                                                                  \
        for (long i = 0; i < times; i++)                                                                               \
            MPI_Sendrecv(from, LARGE, MPI_BYTE, 0, 1, to, LARGE, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);  \
    }
#define NAME(letter) loop_##letter,
LOOPS(LOOP)
static void (*const loops[])(long times) = {LOOPS(NAME)};

/* Every call ends an interval of one message, and begins the next. */
static void exploration_window(const char *name)
{
    const int count = sizeof loops / sizeof *loops;
    for (int loop = 0; loop < count; loop++) {
        loops[loop](EXPLORATION_BEFORE);
        toggle();
        loops[loop](EXPLORATION);
        toggle();
    }
    close_window(name, EXPLORATION * count);
}

/* An interval of four messages, told apart by their sizes: no more than four between two powers of two are. The windows hold the first call alone, which ends it and begins the next, or the
   other three, which do neither. */
static void exploration_of_four_window(const char *name, int bytes, bool first)
{
    const long times = 48;
    for (long i = 0; i < EXPLORATION_BEFORE + times; i++) {
        for (int message = 0; message < 4; message++) {
            bool counted = i >= EXPLORATION_BEFORE && (message == 0) == first;
            if (counted)
                toggle();
            sendrecv(bytes + 16 * message);
            if (counted)
                toggle();
        }
    }
    close_window(name, first ? times : 3 * times);
}

/* The second choice does so much less that it is adopted on any machine. */
NOINLINE void executions(int region, int variable, long times)
{
    for (long i = 0; i < times; i++) {
        copytune_begin(region);
        long rounds = copytune_choice(region, variable) ? 20 : 1000;
        for (volatile long j = 0; j < rounds; j++)
            continue;
        copytune_end(region);
    }
}

/* The same, where a call marks them. */
NOINLINE void turns(int region, int variable, long times)
{
    int flag;
    for (long i = 0; i < times; i++) {
        long rounds = copytune_choice(region, variable) ? 20 : 1000;
        for (volatile long j = 0; j < rounds; j++)
            continue;
        MPI_Iprobe(0, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
}

/* As in settled_windows; long enough for the samples by which drift is found. */
static void region_windows(const char *name, int region, void (*execute)(int, int, long))
{
    const long times = 2048;
    int variable = copytune_variable(region, "rounds", 2, NULL);
    execute(region, variable, DECISION + REST);
    for (int window = 0; window < 9; window++) {
        toggle();
        execute(region, variable, times);
        toggle();
        close_window(name, times);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    memset(from, 1, sizeof from);
    memset(to, 2, sizeof to);
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "memcpy-small") == 0)
            copy_window(name, copy, 64);
        else if (strcmp(name, "memcpy-large") == 0)
            copy_window(name, copy, LARGE);
        else if (strcmp(name, "memmove-small") == 0)
            copy_window(name, move, 64);
        else if (strcmp(name, "memmove-large") == 0)
            copy_window(name, move, LARGE);
        else if (strcmp(name, "sendrecv-empty") == 0)
            settled_windows(name, 0, 1024);
        else if (strcmp(name, "iprobe") == 0)
            probe_window(name);
        else if (strcmp(name, "nonblocking-empty") == 0)
            nonblocking_window(name);
        else if (strcmp(name, "exchange-empty") == 0)
            exchange_window(name);
        else if (strcmp(name, "sendrecv-decided") == 0 || strcmp(name, "sendrecv-adopted") == 0)
            settled_windows(name, LARGE, DECISION + REST);
        else if (strcmp(name, "iprobe-between-decided") == 0)
            between_windows(name, LARGE - 64, DECISION + STAND, 9, 256);
        else if (strcmp(name, "iprobe-between-explored") == 0)
            between_windows(name, LARGE / 2, EXPLORATION_BEFORE, 5, 10);
        else if (strcmp(name, "region-decided") == 0)
            region_windows(name, copytune_region("region"), executions);
        else if (strcmp(name, "region-by-calls-decided") == 0)
            region_windows(name, copytune_region_by_calls("turns"), turns);
        else if (strcmp(name, "exploration") == 0)
            exploration_window(name);
        else if (strcmp(name, "exploration-of-four") == 0)
            exploration_of_four_window(name, 2 * LARGE, true);
        else if (strcmp(name, "exploration-followed") == 0)
            exploration_of_four_window(name, LARGE, false);
        else {
            fprintf(stderr, "overhead: no window is called %s\n", name);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
    MPI_Finalize();
    return 0;
}
