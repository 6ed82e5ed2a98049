/*
 * direct: what a message costs beside a plain copy from a shared mapping, in one run, by turns.
 *
 *     mpirun -np 2 direct ROUNDS [BYTES ...]
 *
 * Without BYTES, for each size, with buffers at the start of a page and, as malloc gives them, 16 bytes after it:
 *
 *   message   one-way time of a message there and back
 *   plain     the same with nothing but a flag and memcpy from memory that both processes share
 *   send      time of a send, to nobody, of the buffer that the messages are sent from, with other content each time
 *   other     the same of a buffer that is sent to nobody only
 *
 * With BYTES, for messages of these sizes alone, 16 bytes after the start of a page:
 *
 *   message   one-way time of a message that its sender has just written and its receiver waits for
 *   wrong     how many of them arrived with other bytes
 *
 * and before them the library's name and version, and
 *
 *   call      time of a send of one byte to nobody
 *
 * One line of JSON for each size, with the median of each round in seconds.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGE = 4096, MOST_ROUNDS = 64, SENDS = 32, LONGEST = 4 << 20, LONGEST_SEND = 512 << 10, TAG = 3 };
enum { WARM_UP = 10, MOST_MESSAGES = 41, CALLS = 1000, AFTER_PAGE = 16, VERSION = 80 };

static int rank, other;

/* Both ranks have one, in memory that both can read. */
struct shared {
    _Atomic uint64_t turn;
    _Atomic double start;
    char room[PAGE - sizeof(uint64_t) - sizeof(double)];
    char data[LONGEST + 2 * PAGE];
};
static struct shared *mine, *theirs;
static uint64_t turn;

struct buffers {
    char *out, *in, *unread;
};

static void *pages(size_t bytes)
{
    void *memory = aligned_alloc(PAGE, (bytes + PAGE) / PAGE * PAGE);
    if (memory == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(memory, 1, bytes);
    return memory;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void by_message(const struct buffers *b, int bytes)
{
    if (rank == 0)
        MPI_Send(b->out, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
    MPI_Recv(b->in, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(b->out, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
}

/* The sender says that its data are there; the receiver copies them. */
static void by_copy(const struct buffers *b, int bytes, size_t offset)
{
    turn++;
    if (rank == 0)
        atomic_store_explicit(&mine->turn, turn, memory_order_release);
    while (atomic_load_explicit(&theirs->turn, memory_order_acquire) < turn)
        ;
    memcpy(b->in, theirs->data + offset, (size_t)bytes);
    if (rank == 1)
        atomic_store_explicit(&mine->turn, turn, memory_order_release);
}

static double time_of(bool plain, const struct buffers *b, int bytes, size_t offset, int iterations)
{
    double start = MPI_Wtime();
    for (int i = 0; i < iterations; i++)
        if (plain)
            by_copy(b, bytes, offset);
        else
            by_message(b, bytes);
    return (MPI_Wtime() - start) / iterations / 2;
}

/* Median time of a send to nobody; between two of them the peer has read a message from the other buffer. */
static double time_of_send(char *buffer, const struct buffers *b, int bytes)
{
    double times[SENDS];
    for (int i = 0; i < SENDS; i++) {
        by_message(b, bytes);
        memset(buffer, i, (size_t)bytes);
        double start = MPI_Wtime();
        MPI_Send(buffer, bytes, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD);
        times[i] = MPI_Wtime() - start;
    }
    qsort(times, SENDS, sizeof *times, compare);
    return times[SENDS / 2];
}

static void print_times(const char *name, const double *times, int rounds)
{
    printf(", \"%s\": [", name);
    for (int i = 0; i < rounds; i++)
        printf("%s%.4e", i ? ", " : "", times[i]);
    printf("]");
}

static void measure(int bytes, size_t offset, int rounds)
{
    double message[MOST_ROUNDS], plain[MOST_ROUNDS], send[MOST_ROUNDS], unread[MOST_ROUNDS];
    size_t room = (size_t)bytes + offset;
    char *out = pages(room), *in = pages(room), *nobody = pages(room);
    struct buffers b = {out + offset, in + offset, nobody + offset};
    int iterations = LONGEST / bytes < 8 ? 8 : LONGEST / bytes > 100 ? 100 : LONGEST / bytes;

    for (int i = 0; i < 2 * SENDS; i++)
        by_message(&b, bytes);
    for (int i = 0; i < rounds; i++) {
        /* Which comes first changes. */
        for (int j = 0; j < 2; j++) {
            bool is_plain = (i + j) % 2;
            double *times = is_plain ? plain : message;
            time_of(is_plain, &b, bytes, offset, 2);
            times[i] = time_of(is_plain, &b, bytes, offset, iterations);
            if (bytes <= LONGEST_SEND)
                (is_plain ? send : unread)[i] = time_of_send(is_plain ? b.out : b.unread, &b, bytes);
        }
    }
    if (rank == 0) {
        printf("{\"bytes\": %d, \"offset\": %zu", bytes, offset);
        print_times("message", message, rounds);
        print_times("plain", plain, rounds);
        /* Longer ones have caches and memory to themselves, and hide what copytune adds. */
        int sends = bytes <= LONGEST_SEND ? rounds : 0;
        print_times("send", send, sends);
        print_times("other", unread, sends);
        puts("}");
        fflush(stdout);
    }
    free(out);
    free(in);
    free(nobody);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Median of as many times. */
static double median(double *times, int count)
{
    qsort(times, (size_t)count, sizeof *times, compare);
    return times[count / 2];
}

/* What the clock adds to a time. */
static double clock_cost(void)
{
    double times[MOST_MESSAGES];
    for (int i = 0; i < MOST_MESSAGES; i++) {
        double start = now();
        times[i] = now() - start;
    }
    return median(times, MOST_MESSAGES);
}

/* Rank 0 sends what it has just written, when rank 1 is about to receive it, which gets the time of it. The clock is
 * that of the machine, the same for both. */
static double time_of_one(char *buffer, int bytes, char value)
{
    turn++;
    if (rank == 0) {
        memset(buffer, value, (size_t)bytes);
        while (atomic_load_explicit(&theirs->turn, memory_order_acquire) < turn)
            ;
        atomic_store_explicit(&mine->start, now(), memory_order_release);
        MPI_Send(buffer, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
        return 0;
    }
    atomic_store_explicit(&mine->turn, turn, memory_order_release);
    MPI_Recv(buffer, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double end = now();
    return end - atomic_load_explicit(&theirs->start, memory_order_acquire);
}

static void measure_fresh(int bytes, int rounds)
{
    static char value;
    double found[MOST_ROUNDS], times[MOST_MESSAGES], clock = clock_cost();
    int wrong = 0, messages = LONGEST / bytes < 3 ? 3 : LONGEST / bytes > MOST_MESSAGES ? MOST_MESSAGES : LONGEST / bytes;
    /* Never freed: the buffers of the next size are other memory, with a promotion of their own. */
    char *buffer = (char *)pages((size_t)bytes + AFTER_PAGE) + AFTER_PAGE;

    for (int i = 0; i < WARM_UP; i++)
        time_of_one(buffer, bytes, ++value);
    for (int i = 0; i < rounds; i++) {
        for (int j = 0; j < messages; j++) {
            times[j] = time_of_one(buffer, bytes, ++value);
            wrong += buffer[0] != value || buffer[bytes / 2] != value || buffer[bytes - 1] != value;
        }
        found[i] = median(times, messages) - clock;
    }
    if (rank == 1) {
        printf("{\"bytes\": %d, \"offset\": %d, \"wrong\": %d", bytes, AFTER_PAGE, wrong);
        print_times("message", found, rounds);
        puts("}");
        fflush(stdout);
    }
}

static void measure_calls(int rounds)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    double times[MOST_ROUNDS];
    char byte = 0;
    int length;

    /* The first time warms up. */
    for (int i = -1; i < rounds; i++) {
        double start = now();
        for (int j = 0; j < CALLS; j++)
            MPI_Send(&byte, 1, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD);
        times[i < 0 ? 0 : i] = (now() - start) / CALLS;
    }
    MPI_Get_library_version(version, &length);
    if (rank == 1) {
        printf("{\"library\": \"");
        for (int i = 0; i < VERSION && i < length && version[i] != '\n'; i++)
            putchar(version[i] < ' ' || version[i] == '"' || version[i] == '\\' ? ' ' : version[i]);
        printf("\"");
        print_times("call", times, rounds);
        puts("}");
    }
}

int main(int argc, char **argv)
{
    MPI_Win window;
    MPI_Aint bytes;
    int processes, unit, rounds = argc > 1 ? atoi(argv[1]) : 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    if (processes != 2 || rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "direct: start it with mpirun -np 2, and a number of rounds from 1 to %d\n", MOST_ROUNDS);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    other = 1 - rank;
    MPI_Win_allocate_shared(sizeof *mine, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
    MPI_Win_shared_query(window, other, &bytes, &unit, &theirs);
    memset(mine, 1, sizeof *mine);
    atomic_store(&mine->turn, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 2)
        measure_calls(rounds);
    for (int i = 2; i < argc; i++)
        if (atoi(argv[i]) > 0)
            measure_fresh(atoi(argv[i]), rounds);
    for (size_t offset = 0; offset <= 16 && argc == 2; offset += 16)
        for (int size = 8 << 10; size <= LONGEST; size *= 2)
            measure(size, offset, rounds);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
