/* threads: two or more threads of each process that send and receive at the same time, size by size.

   Each thread has a communicator and buffers of its own, and a partner in the neighbouring process. Before and after the
   timed iterations there is one after which every received byte is checked. */
#include "apart.h"
#include "common.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_THREADS = 16, TAG = 5 };
enum pattern { PINGPONG, EXCHANGE };

static const char *const pattern_names[] = {"pingpong", "exchange", NULL};

struct settings {
    int pattern;
    struct size_list sizes;
    long iterations, volume, threads;
};

/* What a thread works with. */
struct worker {
    pthread_t thread;
    const struct settings *settings;
    pthread_barrier_t *together;
    int rank, number;
    MPI_Comm comm;
    long iterations;
    struct message out, in;
    double seconds;
};

static int partner(const struct worker *worker) { return worker->rank ^ 1; }

/* Threads that wait give way: there may be fewer cores than threads. */
static void complete(MPI_Request *request)
{
    int done = 0;
    for (;;) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done)
            return;
        sched_yield();
    }
}

static void send_one(struct worker *worker)
{
    MPI_Request request;
    MPI_Isend(worker->out.base, worker->out.count, worker->out.type, partner(worker), TAG, worker->comm, &request);
    complete(&request);
}

static void receive_one(struct worker *worker)
{
    MPI_Request request;
    MPI_Irecv(worker->in.base, worker->in.count, worker->in.type, partner(worker), TAG, worker->comm, &request);
    complete(&request);
}

static void iterate(struct worker *worker)
{
    if (worker->settings->pattern == EXCHANGE) {
        MPI_Request request;
        MPI_Irecv(worker->in.base, worker->in.count, worker->in.type, partner(worker), TAG, worker->comm, &request);
        send_one(worker);
        complete(&request);
    } else if (worker->rank % 2 == 0) {
        send_one(worker);
        receive_one(worker);
    } else {
        receive_one(worker);
        send_one(worker);
    }
}

static uint64_t seed_of(const struct worker *worker, int rank, uint64_t turn)
{
    return (turn * 65536 + (uint64_t)rank) * MAX_THREADS + (uint64_t)worker->number;
}

/* An iteration whose messages have a content of their own. */
static void iterate_checked(struct worker *worker, uint64_t turn)
{
    fill_message(&worker->in, 0);
    fill_message(&worker->out, seed_of(worker, worker->rank, turn));
    iterate(worker);
    long wrong = first_wrong_byte(&worker->in, seed_of(worker, partner(worker), turn));
    if (wrong >= 0)
        fail("thread %d of process %d received a wrong byte at position %ld", worker->number, worker->rank, wrong);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    long warmup = worker->iterations / 10 > 2 ? worker->iterations / 10 : 2;
    iterate_checked(worker, 1);
    for (long i = 0; i < warmup; i++)
        iterate(worker);
    MPI_Request request;
    MPI_Ibarrier(worker->comm, &request);
    complete(&request);
    pthread_barrier_wait(worker->together);
    double start = MPI_Wtime();
    for (long i = 0; i < worker->iterations; i++)
        iterate(worker);
    worker->seconds = (MPI_Wtime() - start) / (double)worker->iterations;
    iterate_checked(worker, 2);
    return NULL;
}

static void run_size(struct worker *workers, long bytes)
{
    static const struct layout contiguous;
    const struct settings *s = workers->settings;
    double own = 0, slowest;
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, (unsigned)s->threads);
    for (long t = 0; t < s->threads; t++) {
        struct worker *worker = &workers[t];
        worker->together = &together;
        worker->iterations = usual_iterations(s->iterations, s->volume, bytes);
        worker->out = make_message(bytes, &contiguous);
        worker->in = make_message(bytes, &contiguous);
    }
    double before = cores_apart();
    for (long t = 0; t < s->threads; t++)
        if (pthread_create(&workers[t].thread, NULL, work, &workers[t]) != 0)
            fail("a thread cannot be started");
    for (long t = 0; t < s->threads; t++) {
        pthread_join(workers[t].thread, NULL);
        own = workers[t].seconds > own ? workers[t].seconds : own;
        free_message(&workers[t].out);
        free_message(&workers[t].in);
    }
    double after = cores_apart();
    pthread_barrier_destroy(&together);
    MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (workers->rank == 0) {
        printf("{\"schema\": 1, \"program\": \"threads\", \"pattern\": \"%s\", \"threads\": %ld, \"bytes\": %ld, "
               "\"iterations\": %ld, \"seconds\": %.9e, \"apart\": [%.0f, %.0f]}\n",
               pattern_names[s->pattern], s->threads, bytes, workers->iterations, slowest, before, after);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    struct settings s = {.sizes = {1, {65536}}, .iterations = 1000, .volume = 40L << 20, .threads = 2};
    const struct option_entry options[] = {
        {"--pattern", "who sends when", OPTION_CHOICE, &s.pattern, 0, 0, pattern_names},
        {"--bytes", "message sizes", OPTION_SIZES, &s.sizes, 1, 1 << 28, NULL},
        {"--iterations", "timed iterations up to 32 KiB", OPTION_NUMBER, &s.iterations, 1, 100000000, NULL},
        {"--volume", "bytes of longer messages, which bound the iterations", OPTION_NUMBER, &s.volume, 1, 1L << 40,
         NULL},
        {"--threads", "threads of a process that send and receive", OPTION_NUMBER, &s.threads, 1, MAX_THREADS, NULL},
        {0}};
    struct worker workers[MAX_THREADS] = {0};
    int provided, rank, processes;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    read_options(argc, argv, options);
    if (provided < MPI_THREAD_MULTIPLE)
        refuse("this MPI library has no MPI_THREAD_MULTIPLE");
    if (processes % 2 != 0)
        refuse("needs an even number of processes, not %d", processes);
    for (int t = 0; t < (int)s.threads; t++) {
        workers[t] = (struct worker){.settings = &s, .rank = rank, .number = t};
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[t].comm);
    }
    for (int i = 0; i < s.sizes.count; i++)
        run_size(workers, s.sizes.bytes[i]);
    for (int t = 0; t < (int)s.threads; t++)
        MPI_Comm_free(&workers[t].comm);
    MPI_Finalize();
    return 0;
}
