/* messages: the patterns in which users' benchmarks and programs send messages, size by size.

   Each pattern runs some untimed iterations, then the timed ones, as often as users' benchmarks do:
   --iterations up to 32 KiB, then as many as --volume bytes take, but at least 10. A line for each size
   tells the mean time of an iteration, of the slowest process, and how far apart two processes' cores were
   before and after (apart.h). One pair of buffers serves all sizes, unless --buffers says otherwise; "fresh" ones
   are as long as the iteration's messages. With --swap they change places after each iteration. With
   --varying each iteration's messages have another length, from half of the size on, the same in all
   processes. */
#include "apart.h"
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 3, MAX_WINDOW = 256, FEW = 10 };
enum buffers { ONE, MANY, ROTATING, FRESH };

static const char *const buffers_names[] = {"one", "many", "rotating", "fresh", NULL};

struct settings {
    int pattern, buffers;
    struct size_list sizes;
    long iterations, volume, window, repeat;
    bool touch, varying, swap;
};

struct run {
    const struct settings *settings;
    int rank, processes;
    long bytes, iteration, places;
    size_t stride, parts;
    unsigned char *out, *in;
    MPI_Request requests[2 * MAX_WINDOW];
    bool persistent_ready;
    int request_count;
};

/* Buffer number `place` of a window; "rotating" goes on from where the window before has ended. */
static size_t place_of(const struct run *run, long place)
{
    const struct settings *s = run->settings;
    if (s->buffers == ONE)
        return 0;
    if (s->buffers == MANY || s->buffers == FRESH)
        return (size_t)(place % run->places) * run->stride;
    return (size_t)((run->iteration * s->window + place) % run->places) * run->stride;
}

static unsigned char *out_at(const struct run *run, long place) { return run->out + place_of(run, place); }
static unsigned char *in_at(const struct run *run, long place) { return run->in + place_of(run, place); }

/* What an application does with its data: writes before it sends, reads after it has received. */
static void before(struct run *run, unsigned char *data)
{
    if (run->settings->touch)
        memset(data, (int)run->iteration, (size_t)run->bytes);
}

static void after(struct run *run, const unsigned char *data)
{
    static volatile uint64_t sink;
    uint64_t sum = 0;
    if (run->settings->touch)
        for (long i = 0; i < run->bytes; i += 64)
            sum += data[i];
    sink = sum;
}

static int right(const struct run *run) { return (run->rank + 1) % run->processes; }
static int left(const struct run *run) { return (run->rank + run->processes - 1) % run->processes; }
static int partner(const struct run *run) { return run->rank ^ 1; }

static void pingpong(struct run *run)
{
    unsigned char *out = out_at(run, 0), *in = in_at(run, 0);
    if (run->rank % 2 == 0) {
        before(run, out);
        MPI_Send(out, (int)run->bytes, MPI_BYTE, partner(run), TAG, MPI_COMM_WORLD);
        MPI_Recv(in, (int)run->bytes, MPI_BYTE, partner(run), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        after(run, in);
    } else {
        MPI_Recv(in, (int)run->bytes, MPI_BYTE, partner(run), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        after(run, in);
        before(run, out);
        MPI_Send(out, (int)run->bytes, MPI_BYTE, partner(run), TAG, MPI_COMM_WORLD);
    }
}

static void pingping(struct run *run)
{
    unsigned char *out = out_at(run, 0), *in = in_at(run, 0);
    MPI_Request request;
    before(run, out);
    MPI_Isend(out, (int)run->bytes, MPI_BYTE, partner(run), TAG, MPI_COMM_WORLD, &request);
    MPI_Recv(in, (int)run->bytes, MPI_BYTE, partner(run), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    after(run, in);
}

static void sendrecv(struct run *run)
{
    unsigned char *out = out_at(run, 0), *in = in_at(run, 0);
    before(run, out);
    MPI_Sendrecv(out, (int)run->bytes, MPI_BYTE, right(run), TAG, in, (int)run->bytes, MPI_BYTE, left(run), TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    after(run, in);
}

static void exchange(struct run *run)
{
    unsigned char *out = out_at(run, 0), *in = in_at(run, 0);
    MPI_Request requests[2];
    before(run, out);
    MPI_Isend(out, (int)run->bytes, MPI_BYTE, right(run), TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, (int)run->bytes, MPI_BYTE, left(run), TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Recv(in, (int)run->bytes, MPI_BYTE, left(run), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(in, (int)run->bytes, MPI_BYTE, right(run), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    after(run, in);
}

static void send_window(struct run *run)
{
    long window = run->settings->window;
    char answer;
    for (long i = 0; i < window; i++) {
        before(run, out_at(run, i));
        MPI_Isend(out_at(run, i), (int)run->bytes, MPI_BYTE, partner(run), TAG, MPI_COMM_WORLD, &run->requests[i]);
    }
    MPI_Waitall((int)window, run->requests, MPI_STATUSES_IGNORE);
    MPI_Recv(&answer, 1, MPI_CHAR, partner(run), TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_window(struct run *run)
{
    long window = run->settings->window;
    char answer = 1;
    for (long i = 0; i < window; i++)
        MPI_Irecv(in_at(run, i), (int)run->bytes, MPI_BYTE, partner(run), TAG, MPI_COMM_WORLD, &run->requests[i]);
    MPI_Waitall((int)window, run->requests, MPI_STATUSES_IGNORE);
    for (long i = 0; i < window; i++)
        after(run, in_at(run, i));
    MPI_Send(&answer, 1, MPI_CHAR, partner(run), TAG + 1, MPI_COMM_WORLD);
}

static void window(struct run *run)
{
    if (run->rank % 2 == 0)
        send_window(run);
    else
        receive_window(run);
}

static void both_windows(struct run *run)
{
    long window = run->settings->window;
    for (long i = 0; i < window; i++)
        MPI_Irecv(in_at(run, i), (int)run->bytes, MPI_BYTE, partner(run), TAG, MPI_COMM_WORLD,
                  &run->requests[window + i]);
    for (long i = 0; i < window; i++) {
        before(run, out_at(run, i));
        MPI_Isend(out_at(run, i), (int)run->bytes, MPI_BYTE, partner(run), TAG, MPI_COMM_WORLD, &run->requests[i]);
    }
    MPI_Waitall((int)(2 * window), run->requests, MPI_STATUSES_IGNORE);
    for (long i = 0; i < window; i++)
        after(run, in_at(run, i));
}

/* Persistent requests to both neighbours, made once for each size. */
static void persistent(struct run *run)
{
    if (!run->persistent_ready) {
        unsigned char *out = run->out, *in = run->in;
        int bytes = (int)run->bytes;
        MPI_Send_init(out, bytes, MPI_BYTE, right(run), TAG, MPI_COMM_WORLD, &run->requests[0]);
        MPI_Send_init(out, bytes, MPI_BYTE, left(run), TAG + 1, MPI_COMM_WORLD, &run->requests[1]);
        MPI_Recv_init(in, bytes, MPI_BYTE, left(run), TAG, MPI_COMM_WORLD, &run->requests[2]);
        MPI_Recv_init(in + run->stride, bytes, MPI_BYTE, right(run), TAG + 1, MPI_COMM_WORLD, &run->requests[3]);
        run->persistent_ready = true;
        run->request_count = 4;
    }
    before(run, run->out);
    MPI_Startall(4, run->requests);
    MPI_Waitall(4, run->requests, MPI_STATUSES_IGNORE);
    after(run, run->in);
    after(run, run->in + run->stride);
}

/* Process 0 serves requests from anybody, each with an answer. */
static void server(struct run *run)
{
    unsigned char *out = out_at(run, 0), *in = in_at(run, 0);
    if (run->rank != 0) {
        before(run, out);
        MPI_Send(out, (int)run->bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        MPI_Recv(in, 8, MPI_BYTE, 0, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    for (int i = 1; i < run->processes; i++) {
        MPI_Status status;
        MPI_Recv(in, (int)run->bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status);
        after(run, in);
        MPI_Send(out, 8, MPI_BYTE, status.MPI_SOURCE, TAG + 1, MPI_COMM_WORLD);
    }
}

static void bcast(struct run *run)
{
    before(run, run->out);
    MPI_Bcast(run->out, (int)run->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    after(run, run->out);
}

static void allreduce(struct run *run)
{
    before(run, run->out);
    MPI_Allreduce(run->out, run->in, (int)((run->bytes + 7) / 8), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    after(run, run->in);
}

static void reduce(struct run *run)
{
    before(run, run->out);
    MPI_Reduce(run->out, run->in, (int)((run->bytes + 7) / 8), MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    after(run, run->in);
}

static void alltoall(struct run *run)
{
    before(run, run->out);
    MPI_Alltoall(run->out, (int)run->bytes, MPI_BYTE, run->in, (int)run->bytes, MPI_BYTE, MPI_COMM_WORLD);
    after(run, run->in);
}

static void allgather(struct run *run)
{
    before(run, run->out);
    MPI_Allgather(run->out, (int)run->bytes, MPI_BYTE, run->in, (int)run->bytes, MPI_BYTE, MPI_COMM_WORLD);
    after(run, run->in);
}

struct pattern {
    const char *name;
    void (*iterate)(struct run *);
    bool pairs;       /* needs an even number of processes */
    bool windowed;    /* an iteration has --window messages */
    bool each;        /* buffers have a part for each process */
};

static const struct pattern patterns[] = {
    {"pingpong", pingpong, true, false, false},  {"pingping", pingping, true, false, false},
    {"sendrecv", sendrecv, false, false, false}, {"exchange", exchange, false, false, false},
    {"window", window, true, true, false},       {"windows", both_windows, true, true, false},
    {"persistent", persistent, false, false, false}, {"server", server, false, false, false},
    {"bcast", bcast, false, false, false},       {"allreduce", allreduce, false, false, false},
    {"reduce", reduce, false, false, false},     {"alltoall", alltoall, false, false, true},
    {"allgather", allgather, false, false, true},
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

static long iterations_of(const struct settings *s, const struct pattern *pattern, long bytes)
{
    long most = s->iterations, window = pattern->windowed ? s->window : 1;
    if (pattern->windowed)
        most = most / 10 > FEW ? most / 10 : FEW;
    return usual_iterations(most, s->volume / (window > 4 ? window / 4 : 1), bytes);
}

/* The length of an iteration's messages: the size, or any from half of it on. */
static long length_of(const struct run *run, long bytes)
{
    uint64_t drawn = ((uint64_t)run->iteration + 1) * 0x9e3779b97f4a7c15u;
    return run->settings->varying ? bytes - (long)((drawn >> 33) % (uint64_t)(bytes / 2 + 1)) : bytes;
}

static void release_persistent(struct run *run)
{
    for (int i = 0; run->persistent_ready && i < run->request_count; i++)
        MPI_Request_free(&run->requests[i]);
    run->persistent_ready = false;
}

/* Buffers of one iteration, wherever malloc(3) puts them: many programs make one for each message. */
static void make_fresh(struct run *run)
{
    run->stride = ((size_t)run->bytes + 16) & ~(size_t)15;
    run->out = malloc(run->parts * run->stride);
    run->in = malloc(run->parts * run->stride);
    if (run->out == NULL || run->in == NULL)
        refuse("no memory for buffers of %zu bytes", run->parts * run->stride);
}

static void release(struct run *run)
{
    free(run->out);
    free(run->in);
    run->out = run->in = NULL;
}

static void iterate(struct run *run, const struct pattern *pattern)
{
    const struct settings *s = run->settings;
    if (s->buffers == FRESH)
        make_fresh(run);
    pattern->iterate(run);
    if (s->buffers == FRESH)
        release(run);
    if (s->swap) {
        unsigned char *received = run->in;
        run->in = run->out;
        run->out = received;
    }
    run->iteration++;
}

static void run_size(struct run *run, const struct pattern *pattern, long bytes)
{
    const struct settings *s = run->settings;
    long iterations = iterations_of(s, pattern, bytes), warmup = iterations / 10 > 2 ? iterations / 10 : 2;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = 0, before = 0;
    for (long i = -warmup; i < iterations; i++) {
        if (i == 0) {
            before = cores_apart();
            MPI_Barrier(MPI_COMM_WORLD);
            start = MPI_Wtime();
        }
        run->bytes = length_of(run, bytes);
        iterate(run, pattern);
    }
    double own = (MPI_Wtime() - start) / (double)iterations, slowest;
    double after = cores_apart();
    MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    release_persistent(run);
    if (run->rank == 0) {
        printf("{\"schema\": 1, \"program\": \"messages\", \"pattern\": \"%s\", \"buffers\": \"%s\", \"touched\": %s, "
               "\"varying\": %s, \"swapped\": %s, \"window\": %ld, \"processes\": %d, \"bytes\": %ld, "
               "\"iterations\": %ld, \"seconds\": %.9e, \"apart\": [%.0f, %.0f]}\n",
               pattern->name, buffers_names[s->buffers], s->touch ? "true" : "false",
               s->varying ? "true" : "false", s->swap ? "true" : "false", pattern->windowed ? s->window : 1,
               run->processes, bytes, iterations, slowest, before, after);
        fflush(stdout);
    }
}

/* Buffers for all sizes: of "many" and "rotating" one for each message of a window, of "rotating" at least
   256 MiB in all. */
static void make_buffers(struct run *run, const struct pattern *pattern)
{
    const struct settings *s = run->settings;
    long longest = 1;
    for (int i = 0; i < s->sizes.count; i++)
        longest = s->sizes.bytes[i] > longest ? s->sizes.bytes[i] : longest;
    run->stride = ((size_t)longest + 4095) & ~(size_t)4095;
    run->places = s->buffers == ONE ? 1 : s->window;
    if (s->buffers == ROTATING && run->stride * (size_t)run->places < (size_t)256 << 20)
        run->places = (long)(((size_t)256 << 20) / run->stride);
    run->parts = pattern->each ? (size_t)run->processes : (size_t)run->places > 2 ? (size_t)run->places : 2;
    if (s->buffers == FRESH)
        return;
    run->out = allocate(run->parts * run->stride);
    run->in = allocate(run->parts * run->stride);
    memset(run->out, 1, run->parts * run->stride);
    memset(run->in, 2, run->parts * run->stride);
}

int main(int argc, char **argv)
{
    static const char *names[PATTERNS + 1];
    for (int i = 0; i < PATTERNS; i++)
        names[i] = patterns[i].name;
    struct settings s = {.pattern = 0, .sizes = {1, {65536}}, .iterations = 1000, .volume = 40L << 20, .window = 64,
                         .repeat = 1};
    const long longest = 1 << 28, most = 100000000;
    const struct option_entry options[] = {
        {"--pattern", "who sends what to whom", OPTION_CHOICE, &s.pattern, 0, 0, names},
        {"--bytes", "message sizes", OPTION_SIZES, &s.sizes, 0, longest, NULL},
        {"--iterations", "timed iterations up to 32 KiB; of windows a tenth", OPTION_NUMBER, &s.iterations, 1, most,
         NULL},
        {"--volume", "bytes of longer messages, which bound the iterations", OPTION_NUMBER, &s.volume, 1, 1L << 40,
         NULL},
        {"--window", "messages of a window", OPTION_NUMBER, &s.window, 1, MAX_WINDOW, NULL},
        {"--buffers", "one buffer for all messages, or as many as a window has, or ever others, or new memory each time",
         OPTION_CHOICE, &s.buffers, 0, 0, buffers_names},
        {"--repeat", "how often to go through the sizes", OPTION_NUMBER, &s.repeat, 1, 1000, NULL},
        {"--varying", "each message is of another length, from half of the size on", OPTION_FLAG, &s.varying, 0, 0, NULL},
        {"--swap", "what is received into is sent from next", OPTION_FLAG, &s.swap, 0, 0, NULL},
        {"--touch", "write messages before and read them after", OPTION_FLAG, &s.touch, 0, 0, NULL},
        {0}};
    struct run run = {.settings = &s};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run.processes);
    read_options(argc, argv, options);
    const struct pattern *pattern = &patterns[s.pattern];
    if (run.processes < 2)
        refuse("needs at least 2 processes; start it with mpirun -np 2");
    if (pattern->pairs && run.processes % 2 != 0)
        refuse("--pattern %s needs an even number of processes, not %d", pattern->name, run.processes);
    if (pattern->iterate == persistent && (s.swap || s.buffers == FRESH))
        refuse("--pattern persistent keeps its buffers, so it has neither --swap nor --buffers fresh");
    make_buffers(&run, pattern);
    for (long turn = 0; turn < s.repeat; turn++)
        for (int i = 0; i < s.sizes.count; i++)
            run_size(&run, pattern, s.sizes.bytes[i]);
    release(&run);
    MPI_Finalize();
    return 0;
}
