/* bandwidth: messages between two processes, in loops whose only content they are.

   pingping   each pair is one Send on process 0 and one Recv on process 1
   pingpong   each pair is a Send and a Recv on both, there and back
   exchange   each pair is an Irecv, a Send and a Wait on both, in both directions at once

   An iteration has one to four pairs. Each pair has call sites and buffers of its own, so that four
   pairs are eight messages' ends to be tuned (pingping), not two. */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_PAIRS = 4, TAG = 7 };
enum pattern { PINGPING, PINGPONG, EXCHANGE };

static const char *const pattern_names[] = {"pingping", "pingpong", "exchange", NULL};

struct settings {
    int pattern;
    struct size_list sizes;
    long iterations, warmup, batch, pairs;
    struct layout layout;
    bool touch, verify, samples;
};

struct pair {
    struct message out, in;
};

struct run {
    const struct settings *settings;
    int rank, other;
    struct pair pairs[MAX_PAIRS];
    uint64_t iteration;
};

static uint64_t seed_of(const struct run *run, int pair, int sender)
{
    return (run->iteration * MAX_PAIRS + (uint64_t)pair) * 2 + (uint64_t)sender;
}

static void before_send(struct run *run, int pair)
{
    if (run->settings->verify)
        fill_message(&run->pairs[pair].out, seed_of(run, pair, run->rank));
    else if (run->settings->touch)
        write_message(&run->pairs[pair].out, (unsigned char)run->iteration);
}

static void after_receive(struct run *run, int pair)
{
    if (run->settings->verify) {
        long wrong = first_wrong_byte(&run->pairs[pair].in, seed_of(run, pair, run->other));
        if (wrong >= 0)
            fail("process %d received a wrong byte at position %ld of pair %d in iteration %llu", run->rank, wrong,
                 pair + 1, (unsigned long long)run->iteration);
    } else if (run->settings->touch) {
        read_message(&run->pairs[pair].in);
    }
}

/* The actions of a pair are inlined, so that each pair has call sites of its own. */
#define INLINED __attribute__((always_inline)) static inline void

INLINED send(struct run *run, int pair)
{
    struct message *out = &run->pairs[pair].out;
    before_send(run, pair);
    MPI_Send(out->base, out->count, out->type, run->other, TAG, MPI_COMM_WORLD);
}

INLINED receive(struct run *run, int pair)
{
    struct message *in = &run->pairs[pair].in;
    MPI_Recv(in->base, in->count, in->type, run->other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    after_receive(run, pair);
}

INLINED send_and_receive(struct run *run, int pair)
{
    send(run, pair);
    receive(run, pair);
}

INLINED receive_and_send(struct run *run, int pair)
{
    receive(run, pair);
    send(run, pair);
}

INLINED swap(struct run *run, int pair)
{
    struct message *in = &run->pairs[pair].in;
    MPI_Request request;
    MPI_Irecv(in->base, in->count, in->type, run->other, TAG, MPI_COMM_WORLD, &request);
    send(run, pair);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    after_receive(run, pair);
}

#define FOR_EACH_PAIR(action, run)        \
    do {                                  \
        action(run, 0);                   \
        if ((run)->settings->pairs > 1)   \
            action(run, 1);               \
        if ((run)->settings->pairs > 2)   \
            action(run, 2);               \
        if ((run)->settings->pairs > 3)   \
            action(run, 3);               \
    } while (0)

static void iterate(struct run *run)
{
    bool first = run->rank == 0;
    switch ((enum pattern)run->settings->pattern) {
    case PINGPING:
        if (first)
            FOR_EACH_PAIR(send, run);
        else
            FOR_EACH_PAIR(receive, run);
        break;
    case PINGPONG:
        if (first)
            FOR_EACH_PAIR(send_and_receive, run);
        else
            FOR_EACH_PAIR(receive_and_send, run);
        break;
    case EXCHANGE:
        FOR_EACH_PAIR(swap, run);
        break;
    }
    run->iteration++;
}

/* One-way times of a message in seconds, one per batch of iterations. With one-way traffic the
   receiver's clock counts, since the sender may run ahead. */
static void measure(struct run *run, double *samples, long batches)
{
    const struct settings *s = run->settings;
    bool one_way = s->pattern == PINGPING;
    double messages = (double)(s->batch * s->pairs * (s->pattern == PINGPONG ? 2 : 1));

    for (long i = 0; i < s->warmup; i++)
        iterate(run);
    MPI_Barrier(MPI_COMM_WORLD);
    for (long i = 0; i < batches; i++) {
        double start = MPI_Wtime();
        for (long j = 0; j < s->batch; j++)
            iterate(run);
        samples[i] = (MPI_Wtime() - start) / messages;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (one_way && run->rank == 1)
        MPI_Send(samples, (int)batches, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
    else if (one_way)
        MPI_Recv(samples, (int)batches, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void print_result(const struct settings *s, long bytes, const double *samples, long batches)
{
    struct summary summary = summarise(samples, batches);
    printf("{\"schema\": 1, \"program\": \"bandwidth\", \"pattern\": \"%s\", \"layout\": \"%s\", "
           "\"touched\": %s, \"verified\": %s, \"pairs\": %ld, \"bytes\": %ld, \"iterations\": %ld, \"batch\": %ld, ",
           pattern_names[s->pattern], layout_names[s->layout.kind], s->touch ? "true" : "false",
           s->verify ? "true" : "false", s->pairs, bytes, s->iterations, s->batch);
    print_summary(&summary);
    printf(", \"bytes_per_second\": %.6e", summary.median > 0 ? (double)bytes / summary.median : 0);
    print_library();
    if (s->samples)
        print_samples(samples, batches);
    puts("}");
    fflush(stdout);
}

static void run_size(struct run *run, long bytes)
{
    const struct settings *s = run->settings;
    long batches = s->iterations / s->batch;
    double *samples = allocate((size_t)batches * sizeof *samples);
    for (long k = 0; k < s->pairs; k++) {
        run->pairs[k].out = make_message(bytes, &s->layout);
        run->pairs[k].in = make_message(bytes, &s->layout);
    }
    measure(run, samples, batches);
    if (run->rank == 0)
        print_result(s, bytes, samples, batches);
    for (long k = 0; k < s->pairs; k++) {
        free_message(&run->pairs[k].out);
        free_message(&run->pairs[k].in);
    }
    free(samples);
}

int main(int argc, char **argv)
{
    struct settings s = {.pattern = PINGPONG, .sizes = {1, {65536}}, .iterations = 1000, .warmup = 100,
                         .batch = 1, .pairs = 1, .layout = {LAYOUT_CONTIGUOUS, 64, 128}};
    const long longest = 1 << 30, most = 100000000;
    const struct option_entry options[] = {
        {"--pattern", "who sends when", OPTION_CHOICE, &s.pattern, 0, 0, pattern_names},
        {"--bytes", "message sizes", OPTION_SIZES, &s.sizes, 0, longest, NULL},
        {"--iterations", "measured iterations", OPTION_NUMBER, &s.iterations, 1, most, NULL},
        {"--warmup", "iterations before", OPTION_NUMBER, &s.warmup, 0, most, NULL},
        {"--batch", "iterations that one sample times", OPTION_NUMBER, &s.batch, 1, most, NULL},
        {"--pairs", "messages (there and back) of an iteration", OPTION_NUMBER, &s.pairs, 1, MAX_PAIRS, NULL},
        {"--layout", "how a message lies in memory", OPTION_CHOICE, &s.layout.kind, 0, 0, layout_names},
        {"--block", "bytes of a block of a vector", OPTION_NUMBER, &s.layout.block, 1, 1 << 20, NULL},
        {"--stride", "bytes from block to block", OPTION_NUMBER, &s.layout.stride, 1, 1 << 24, NULL},
        {"--touch", "write messages before and read them after", OPTION_FLAG, &s.touch, 0, 0, NULL},
        {"--verify", "check each received byte", OPTION_FLAG, &s.verify, 0, 0, NULL},
        {"--samples", "print every sample", OPTION_FLAG, &s.samples, 0, 0, NULL},
        {0}};
    struct run run = {.settings = &s};
    int processes;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    read_options(argc, argv, options);
    if (processes != 2)
        refuse("needs exactly 2 processes, not %d; start it with mpirun -np 2", processes);
    if (s.batch > s.iterations)
        refuse("--batch %ld is more than --iterations %ld", s.batch, s.iterations);
    run.other = 1 - run.rank;
    for (int i = 0; i < s.sizes.count; i++)
        run_size(&run, s.sizes.bytes[i]);
    MPI_Finalize();
    return 0;
}
