/* What the workloads share: their classes, random numbers, clock and report. */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include "common.h"

/* Sizes of a problem; a table of them has an entry for each. */
enum { CLASS_S, CLASS_W, CLASS_A, CLASS_B, CLASSES };
extern const char *const class_names[];

/* The entry of the options' table that every workload has. */
#define CLASS_OPTION(target) {"--class", "size of the problem", OPTION_CHOICE, target, 0, 0, class_names}

/* What a finished run reports. */
struct outcome {
    const char *program;
    int class;
    char size[120];          /* the problem's size and the options, for people */
    double seconds;          /* of the slowest process */
    double operations;       /* in `seconds` */
    const char *unit;        /* of the operations, in the plural */
    char result[120];        /* the same in every run with the same problem */
    bool verified;           /* on this process; the run is when it is on all */
};

/* MPI_COMM_WORLD. */
int process_rank(void);
int process_count(void);

/* Reports on process 0, ends MPI and returns the program's exit status. All must call it. */
int finish(const struct outcome *outcome);

/* Starts the clock when all processes have arrived. */
double clock_start(void);
/* Seconds since `start` on the slowest process, on all processes. */
double clock_stop(double start);

/* The first of `total` things that belong to a process if all have as many as they can; that of the
   process after the last is `total`. */
long share_begin(long total, int processes, int process);
/* The process to which a thing belongs. */
int share_owner(long total, int processes, long thing);

/* 64 bits that depend on all bits of the number. */
uint64_t mix(uint64_t number);
/* From 0 to below 1; element `index` of the sequence `seed`. */
double random_number(uint64_t seed, uint64_t index);
/* The bits of a number, for sums over results that must not differ in the last of them. */
uint64_t bits_of(double number);
/* The sum over all processes, modulo 2**64. */
uint64_t sum_of_all(uint64_t number);

#endif
