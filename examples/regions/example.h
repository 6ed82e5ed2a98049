/* What the examples in C share: options, a clock, the cost of an execution, and the report. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct settings {
    long choice;     /* used in every execution; -1: copytune chooses */
    long executions;
    long size;       /* of the problem */
    bool modelled;   /* an execution costs what a formula says, not the time that it took */
    bool silent;     /* of wrong options: another process speaks */
    bool has_calls;  /* MPI calls can mark its executions */
    bool by_calls;   /* they do */
};

static inline bool read_number(const char *text, long least, long greatest, long *number)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < least || value > greatest)
        return false;
    *number = value;
    return true;
}

/* Reads the options; false after one sentence about what is wrong with them. */
static inline bool read_settings(int argc, char **argv, int choices, struct settings *settings)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--modelled") == 0) {
            settings->modelled = true;
            continue;
        }
        if (settings->has_calls && strcmp(argv[i], "--by-calls") == 0) {
            settings->by_calls = true;
            continue;
        }
        bool good = false;
        if (strcmp(argv[i], "--choice") == 0)
            good = read_number(value, 0, choices - 1, &settings->choice);
        else if (strcmp(argv[i], "--executions") == 0)
            good = read_number(value, 10, 100000000, &settings->executions);
        else if (strcmp(argv[i], "--size") == 0)
            good = read_number(value, 16, 1 << 24, &settings->size);
        if (!good) {
            if (!settings->silent)
                fprintf(stderr, "%s: %s %s cannot be used; there is --choice 0 to %d, --executions N, --size N, --modelled%s\n",
                        argv[0], argv[i], value, choices - 1, settings->has_calls ? ", --by-calls" : "");
            return false;
        }
        i++;
    }
    return true;
}

/* Room for so many elements, all zero; without memory the program ends. */
static inline void *zeroed(const char *program, long count, size_t size)
{
    void *room = calloc((size_t)count, size);
    if (room == NULL) {
        fprintf(stderr, "%s: no memory for %ld elements; use a smaller --size\n", program, count);
        exit(2);
    }
    return room;
}

/* Seconds since some moment. */
static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* What all executions have cost. */
struct costs {
    double seconds;
    double modelled; /* of the last tenth: what comes before is learning */
    unsigned seed;
};

/* A modelled cost as it would be measured, within 1 % of it. */
static inline double measured(struct costs *costs, double cost)
{
    costs->seed = costs->seed * 1103515245 + 12345;
    return cost * (1 + 0.02 * ((costs->seed >> 16 & 0x7fff) / 32768.0 - 0.5));
}

static inline void add_model(struct costs *costs, const struct settings *settings, long execution, double cost)
{
    long last = settings->executions / 10;
    if (execution >= settings->executions - last)
        costs->modelled += cost / (double)last;
}

static inline void report(const struct settings *settings, const struct costs *costs, const char *choices, bool verified)
{
    printf("  Time in seconds: %.6f\n", costs->seconds);
    if (settings->modelled)
        printf("  Modelled cost:   %.4f µs\n", 1e6 * costs->modelled);
    printf("  Last choice:     %s\n  Verification: %s\n", choices, verified ? "successful" : "failed");
}

#endif
