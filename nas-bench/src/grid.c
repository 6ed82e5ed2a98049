/* grid: the messages of a two-dimensional solver with a five-point stencil.

   Any number of processes form a Cartesian grid. In each iteration every process receives from and
   sends to its neighbours in the four directions, then does a settable amount of work. Message size
   and work are independent of each other. */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

enum { UP, DOWN, LEFT, RIGHT, DIRECTIONS };
enum { FIELD_SIDE = 128 };

/* The direction from which a neighbour sees what this process sends. */
static const int opposite[DIRECTIONS] = {DOWN, UP, RIGHT, LEFT};

struct settings {
    struct size_list sizes;
    long iterations, warmup, work;
    struct layout layout;
    bool periodic, touch, verify, samples;
};

struct run {
    const struct settings *settings;
    MPI_Comm comm;
    int rank, processes, dims[2];
    int neighbour[DIRECTIONS];
    struct message out[DIRECTIONS], in[DIRECTIONS];
    double *field, *next_field;
    uint64_t iteration;
};

static uint64_t seed_of(const struct run *run, int sender, int direction)
{
    return (run->iteration * (uint64_t)run->processes + (uint64_t)sender) * DIRECTIONS + (uint64_t)direction;
}

static void write_borders(struct run *run)
{
    for (int d = 0; d < DIRECTIONS; d++) {
        if (run->neighbour[d] == MPI_PROC_NULL)
            continue;
        if (run->settings->verify)
            fill_message(&run->out[d], seed_of(run, run->rank, d));
        else if (run->settings->touch)
            write_message(&run->out[d], (unsigned char)run->iteration);
    }
}

static void read_borders(struct run *run)
{
    static const char *const names[DIRECTIONS] = {"above", "below", "the left", "the right"};
    for (int d = 0; d < DIRECTIONS; d++) {
        if (run->neighbour[d] == MPI_PROC_NULL)
            continue;
        if (run->settings->verify) {
            long wrong = first_wrong_byte(&run->in[d], seed_of(run, run->neighbour[d], opposite[d]));
            if (wrong >= 0)
                fail("process %d received a wrong byte at position %ld from %s in iteration %llu", run->rank, wrong,
                     names[d], (unsigned long long)run->iteration);
        } else if (run->settings->touch) {
            read_message(&run->in[d]);
        }
    }
}

/* Inlined, so that each use is a call site; the tag says which way the message goes. */
__attribute__((always_inline)) static inline void receive_from(struct run *run, int d, MPI_Request *request)
{
    struct message *m = &run->in[d];
    MPI_Irecv(m->base, m->count, m->type, run->neighbour[d], opposite[d], run->comm, request);
}

__attribute__((always_inline)) static inline void send_to(struct run *run, int d)
{
    struct message *m = &run->out[d];
    MPI_Send(m->base, m->count, m->type, run->neighbour[d], d, run->comm);
}

/* Each direction has call sites of its own, as in a solver that packs its borders one by one. */
static void exchange(struct run *run)
{
    MPI_Request requests[DIRECTIONS];
    MPI_Status statuses[DIRECTIONS];

    receive_from(run, UP, &requests[UP]);
    receive_from(run, DOWN, &requests[DOWN]);
    receive_from(run, LEFT, &requests[LEFT]);
    receive_from(run, RIGHT, &requests[RIGHT]);
    send_to(run, DOWN);
    send_to(run, UP);
    send_to(run, RIGHT);
    send_to(run, LEFT);
    MPI_Waitall(DIRECTIONS, requests, statuses);
}

/* Updates `work` cells of the process's field by the mean of their four neighbours, row by row. */
static void do_work(struct run *run)
{
    const long inner = FIELD_SIDE - 2, sweep = inner * inner;
    for (long left = run->settings->work; left > 0; left -= sweep) {
        long rows = left >= sweep ? inner : (left + inner - 1) / inner;
        for (long row = 1; row <= rows; row++) {
            const double *restrict here = run->field + row * FIELD_SIDE;
            double *restrict result = run->next_field + row * FIELD_SIDE;
            for (long i = 1; i <= inner; i++)
                result[i] = 0.25 * (here[i - 1] + here[i + 1] + here[i - FIELD_SIDE] + here[i + FIELD_SIDE]);
        }
        double *swap = run->field;
        run->field = run->next_field;
        run->next_field = swap;
    }
}

static void iterate(struct run *run)
{
    write_borders(run);
    exchange(run);
    read_borders(run);
    do_work(run);
    run->iteration++;
}

static void print_result(const struct run *run, long bytes, const double *samples, double slowest)
{
    const struct settings *s = run->settings;
    struct summary summary = summarise(samples, s->iterations);
    printf("{\"schema\": 1, \"program\": \"grid\", \"processes\": %d, \"rows\": %d, \"columns\": %d, "
           "\"periodic\": %s, \"layout\": \"%s\", \"touched\": %s, \"verified\": %s, \"bytes\": %ld, "
           "\"work\": %ld, \"iterations\": %ld, ",
           run->processes, run->dims[0], run->dims[1], s->periodic ? "true" : "false", layout_names[s->layout.kind],
           s->touch ? "true" : "false", s->verify ? "true" : "false", bytes, s->work, s->iterations);
    print_summary(&summary);
    printf(", \"slowest_mean_seconds\": %.9e", slowest);
    print_library();
    if (s->samples)
        print_samples(samples, s->iterations);
    puts("}");
    fflush(stdout);
}

static void run_size(struct run *run, long bytes)
{
    const struct settings *s = run->settings;
    double *samples = allocate((size_t)s->iterations * sizeof *samples);
    double own, slowest;
    for (int d = 0; d < DIRECTIONS; d++) {
        run->out[d] = make_message(bytes, &s->layout);
        run->in[d] = make_message(bytes, &s->layout);
    }
    for (long i = 0; i < s->warmup; i++)
        iterate(run);
    MPI_Barrier(run->comm);
    double begin = MPI_Wtime();
    for (long i = 0; i < s->iterations; i++) {
        double start = MPI_Wtime();
        iterate(run);
        samples[i] = MPI_Wtime() - start;
    }
    own = (MPI_Wtime() - begin) / (double)s->iterations;
    MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, run->comm);
    if (run->rank == 0)
        print_result(run, bytes, samples, slowest);
    for (int d = 0; d < DIRECTIONS; d++) {
        free_message(&run->out[d]);
        free_message(&run->in[d]);
    }
    free(samples);
}

int main(int argc, char **argv)
{
    struct settings s = {.sizes = {1, {16384}}, .iterations = 1000, .warmup = 100, .work = 10000,
                         .layout = {LAYOUT_CONTIGUOUS, 64, 128}};
    const long longest = 1 << 30, most = 100000000;
    const struct option_entry options[] = {
        {"--bytes", "message sizes", OPTION_SIZES, &s.sizes, 0, longest, NULL},
        {"--work", "cells to update in an iteration", OPTION_NUMBER, &s.work, 0, 1000000000, NULL},
        {"--iterations", "measured iterations", OPTION_NUMBER, &s.iterations, 1, most, NULL},
        {"--warmup", "iterations before", OPTION_NUMBER, &s.warmup, 0, most, NULL},
        {"--layout", "how a message lies in memory", OPTION_CHOICE, &s.layout.kind, 0, 0, layout_names},
        {"--block", "bytes of a block of a vector", OPTION_NUMBER, &s.layout.block, 1, 1 << 20, NULL},
        {"--stride", "bytes from block to block", OPTION_NUMBER, &s.layout.stride, 1, 1 << 24, NULL},
        {"--periodic", "the grid's edges are neighbours", OPTION_FLAG, &s.periodic, 0, 0, NULL},
        {"--touch", "write messages before and read them after", OPTION_FLAG, &s.touch, 0, 0, NULL},
        {"--verify", "check each received byte", OPTION_FLAG, &s.verify, 0, 0, NULL},
        {"--samples", "print every sample of process 0", OPTION_FLAG, &s.samples, 0, 0, NULL},
        {0}};
    struct run run = {.settings = &s};
    const size_t field_bytes = FIELD_SIDE * FIELD_SIDE * sizeof(double);

    MPI_Init(&argc, &argv);
    read_options(argc, argv, options);
    MPI_Comm_size(MPI_COMM_WORLD, &run.processes);
    MPI_Dims_create(run.processes, 2, run.dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, run.dims, (int[]){s.periodic, s.periodic}, 0, &run.comm);
    MPI_Comm_rank(run.comm, &run.rank);
    MPI_Cart_shift(run.comm, 0, 1, &run.neighbour[UP], &run.neighbour[DOWN]);
    MPI_Cart_shift(run.comm, 1, 1, &run.neighbour[LEFT], &run.neighbour[RIGHT]);

    run.field = allocate(field_bytes);
    run.next_field = allocate(field_bytes);
    for (int i = 0; i < FIELD_SIDE * FIELD_SIDE; i++)
        run.field[i] = run.next_field[i] = i;
    for (int i = 0; i < s.sizes.count; i++)
        run_size(&run, s.sizes.bytes[i]);
    free(run.field);
    free(run.next_field);
    MPI_Comm_free(&run.comm);
    MPI_Finalize();
    return 0;
}
