/* Long messages that receiver and sender copy together: direct_shared WAY [MICROSECONDS]. Every byte is checked. */
#define _GNU_SOURCE
#include "direct_exchange.h"
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20, LONGEST = 8 * MIB + 4 * PAGE };

/* The sizes of both sides of every rule: too short, just long enough, odd, as UCX divides them. */
static const size_t lengths[] = {
    32767, 32 << 10, (32 << 10) + 5, (64 << 10) + PAGE, (128 << 10) + 2 * PAGE + 3, 262143, 256 << 10, (256 << 10) + 3 * PAGE + 5,
    512 << 10, (512 << 10) + 2 * PAGE + 17, MIB, 3 * MIB + 12345, 8 * MIB + 1};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void start_send(const unsigned char *out, size_t length, int kind, MPI_Request *request) {
    int other = 1 - check_rank;
    *request = MPI_REQUEST_NULL;
    switch (kind) {
    case 0: MPI_Send(out, (int)length, MPI_BYTE, other, 1, MPI_COMM_WORLD); break;
    case 1: MPI_Ssend(out, (int)length, MPI_BYTE, other, 1, MPI_COMM_WORLD); break;
    case 2: MPI_Isend(out, (int)length, MPI_BYTE, other, 1, MPI_COMM_WORLD, request); break;
    default:
        MPI_Send_init(out, (int)length, MPI_BYTE, other, 1, MPI_COMM_WORLD, request);
        MPI_Start(request);
    }
}

/* One rank sends and waits, the other receives; then the other way round. What was sent is overwritten at once. */
static void there_and_back(unsigned char *out, size_t length, int kind) {
    int other = 1 - check_rank;
    seed += 2;
    check_fill(out, length, seed + (uint64_t)check_rank);
    for (int turn = 0; turn < 2; turn++) {
        if (turn == check_rank) {
            MPI_Request request;
            start_send(out, length, kind, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
            memset(out, 0x33, length);
        } else {
            memset(in, 0x5a, length + 1);
            MPI_Recv(in, (int)length, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_equal(in, length, seed + (uint64_t)other);
            CHECK(in[length] == 0x5a);
        }
    }
}

static void kinds(void) {
    for (int i = 0; i < LENGTHS; i++) {
        unsigned char *allocated = malloc(lengths[i]), *mapped = pages(NULL, LONGEST);
        CHECK(allocated != NULL);
        for (int round = 0; round < 2 * REPEATS; round++) {
            there_and_back(allocated, lengths[i], round % 4);
            there_and_back(mapped + (i % 2 ? 0 : 1000), lengths[i], round % 4);
        }
        free(allocated);
        CHECK(munmap(mapped, LONGEST) == 0);
    }
    /* Both send at once. */
    unsigned char *out = malloc(3 * MIB);
    for (int round = 0; round < 2 * REPEATS; round++) swap_once(out, 3 * MIB - (size_t)round);
    free(out);
}

/* Into memory that has never been touched, or that is shared itself. */
static void targets(void) {
    unsigned char *own = in, *out = malloc(2 * MIB), *back = malloc(2 * MIB);
    for (int round = 0; round < 3 * REPEATS; round++) {
        in = round % 3 == 0 ? pages(NULL, LONGEST) : round % 3 == 1 ? back : own;
        seed += 2;
        check_fill(out, 2 * MIB, seed + (uint64_t)check_rank);
        for (int turn = 0; turn < 2; turn++)
            if (turn == check_rank)
                MPI_Send(out, 2 * MIB, MPI_BYTE, 1 - check_rank, 1, MPI_COMM_WORLD);
            else
                MPI_Recv(in, 2 * MIB, MPI_BYTE, 1 - check_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_equal(in, 2 * MIB, seed + (uint64_t)(1 - check_rank));
        /* What arrived is sent back from where it arrived. */
        for (int turn = 0; turn < 2; turn++)
            if (turn == check_rank)
                MPI_Send(in, 2 * MIB, MPI_BYTE, 1 - check_rank, 1, MPI_COMM_WORLD);
            else
                MPI_Recv(out, 2 * MIB, MPI_BYTE, 1 - check_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_equal(out, 2 * MIB, seed + (uint64_t)check_rank);
        if (round % 3 == 0) CHECK(munmap(in, LONGEST) == 0);
    }
    in = own;
    free(out);
    free(back);
}

/* Rank 0 sends one buffer to all others at once; they all want its help. */
static void receivers(void) {
    unsigned char *out = malloc(4 * MIB);
    for (int round = 0; round < 3 * REPEATS; round++) {
        seed += 2;
        if (check_rank == 0) {
            MPI_Request requests[8];
            CHECK(check_size <= 8);
            check_fill(out, 4 * MIB, seed);
            for (int to = 1; to < check_size; to++)
                MPI_Isend(out, 4 * MIB, MPI_BYTE, to, 1, MPI_COMM_WORLD, &requests[to]);
            MPI_Waitall(check_size - 1, requests + 1, MPI_STATUSES_IGNORE);
            memset(out, 0x33, 4 * MIB);
        } else {
            memset(in, 0x5a, 4 * MIB);
            MPI_Recv(in, 4 * MIB, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_equal(in, 4 * MIB, seed);
        }
    }
    free(out);
}

/* Both ranks send from several threads. */
enum { THREADS = 3 };

static void *exchange(void *argument) {
    int tag = *(int *)argument, other = 1 - check_rank;
    size_t length = (size_t)(tag + 1) * MIB - 77;
    unsigned char *out = malloc(length), *back = malloc(length);
    for (uint64_t round = 0; round < 2 * REPEATS; round++) {
        check_fill(out, length, round + (uint64_t)check_rank);
        memset(back, 0x5a, length);
        for (int turn = 0; turn < 2; turn++)
            if (turn == (check_rank ^ (tag & 1)))
                MPI_Send(out, (int)length, MPI_BYTE, other, tag, MPI_COMM_WORLD);
            else
                MPI_Recv(back, (int)length, MPI_BYTE, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (size_t i = 0; i < length; i++) CHECK(back[i] == check_byte(round + (uint64_t)other, i));
    }
    free(out);
    free(back);
    return NULL;
}

static void threads(void) {
    pthread_t thread[THREADS];
    int tags[THREADS];
    for (int i = 0; i < THREADS; i++) {
        tags[i] = i;
        CHECK(pthread_create(&thread[i], NULL, exchange, &tags[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(thread[i], NULL) == 0);
}

/* Another thread forks all the while. Children must not change: they have private copies. */
static volatile int over;

static void *fork_again_and_again(void *argument) {
    unsigned char *watched = argument;
    while (!over) {
        pid_t child = fork();
        if (child == 0) {
            /* What the parent sends meanwhile may have been seen half written, but stays as it is. */
            uint64_t sums[2] = {0, 0};
            for (int i = 0; i < 2; i++)
                for (size_t j = 0; j < 2 * MIB; j += 64) sums[i] = sums[i] * 31 + watched[j];
            _exit(sums[0] == sums[1] ? 0 : 9);
        }
        int status = 0;
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return NULL;
}

static void forked(void) {
    pthread_t thread;
    unsigned char *out = malloc(2 * MIB);
    memset(out, 0, 2 * MIB);
    fflush(NULL);
    CHECK(pthread_create(&thread, NULL, fork_again_and_again, out) == 0);
    for (int round = 0; round < 5 * REPEATS; round++) there_and_back(out, 2 * MIB, round % 4);
    over = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    free(out);
}

static volatile sig_atomic_t ticks;
static void tick(int number) {
    (void)number;
    ticks++;
}

static void start_timer(void (*handler)(int), long microseconds) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void signals(void) {
    unsigned char *out = malloc(3 * MIB);
    start_timer(tick, 300);
    for (int round = 0; round < 4 * REPEATS; round++) there_and_back(out, 3 * MIB, round % 4);
    CHECK(ticks > 0);
    start_timer(SIG_IGN, 0);
    free(out);
}

/* Stands in for the one of the C library. This is set while the shim sleeps in it, late with a chunk (COPYTUNE_TEST_LATE). */
static volatile sig_atomic_t has_chunk;
int usleep(useconds_t microseconds) {
    struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000L};
    Dl_info caller;
    has_chunk = dladdr(__builtin_return_address(0), &caller) != 0 && strstr(caller.dli_fname, "libcopytune") != NULL;
    int slept = nanosleep(&time, NULL);
    has_chunk = 0;
    return slept;
}

/* A handler leaves a send while the shim has a chunk: the MPI library's own progress cannot be left so. The sender's next calls are about
   other messages. What it sent arrives. */
static sigjmp_buf out_of_it;
static void leave(int number) {
    (void)number;
    if (has_chunk) siglongjmp(out_of_it, 1);
}

static long delay;

static void jumped(void) {
    unsigned char *out = malloc(8 * MIB);
    for (int round = 0; round < REPEATS; round++) there_and_back(out, 8 * MIB, 0);
    check_fill(out, 8 * MIB, 5);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
        if (sigsetjmp(out_of_it, 1) == 0) {
            start_timer(leave, delay);
            MPI_Send(out, 8 * MIB, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            CHECK(!"left before");
        }
        start_timer(SIG_IGN, 0);
        for (int flag;;) MPI_Iprobe(1, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    memset(in, 0x5a, 8 * MIB);
    MPI_Recv(in, 8 * MIB, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check_equal(in, 8 * MIB, 5);
    static const char text[] = "arrived\n";
    CHECK(write(STDERR_FILENO, text, sizeof text - 1) == sizeof text - 1);
    kill(getpid(), SIGKILL);
}

/* The sender is killed, by another thread: it may be anywhere. The receiver goes on until it is asked to end. */
static void *kill_all(void *argument) {
    (void)argument;
    usleep((useconds_t)delay);
    kill(getpid(), SIGKILL);
    return NULL;
}

static void end(int number) {
    static const char text[] = "asked to end\n";
    (void)number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(1);
    _exit(0);
}

static void killed(void) {
    unsigned char *out = malloc(8 * MIB);
    for (int round = 0; round < REPEATS; round++) there_and_back(out, 8 * MIB, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, kill_all, NULL) == 0);
    } else
        CHECK(signal(SIGTERM, end) != SIG_ERR);
    for (;;) there_and_back(out, 8 * MIB, 0);
}

/* Another process stops this one again and again. */
static void stopped(void) {
    unsigned char *out = malloc(2 * MIB);
    pid_t parent = getpid(), child;
    int running[2];
    CHECK(pipe(running) == 0);
    fflush(NULL);
    if ((child = fork()) == 0) {
        struct pollfd end = {.fd = running[0], .events = POLLIN};
        CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        close(running[1]);
        while (poll(&end, 1, 3) == 0 && kill(parent, SIGSTOP) == 0) {
            usleep(1000);
            kill(parent, SIGCONT);
        }
        _exit(0);
    }
    CHECK(child > 0);
    for (int round = 0; round < 4 * REPEATS; round++) there_and_back(out, 2 * MIB, round % 4);
    /* It is asked to end: one that is killed may have just stopped this process, for ever. */
    CHECK(close(running[1]) == 0);
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK(close(running[0]) == 0);
    free(out);
}

/* process_vm_writev is refused, after some messages. */
static void refused(void) {
    unsigned char *out = malloc(2 * MIB);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    for (int round = 0; round < delay; round++) there_and_back(out, 2 * MIB, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < 2 * REPEATS; round++) there_and_back(out, 2 * MIB, round % 4);
    free(out);
}

int main(int argc, char **argv) {
    static const struct way ways[] = {{"kinds", kinds},     {"targets", targets}, {"receivers", receivers},
                                      {"threads", threads}, {"forked", forked},   {"signals", signals},
                                      {"jumped", jumped},   {"killed", killed},   {"stopped", stopped},
                                      {"refused", refused}};
    int provided;
    CHECK(argc > 1);
    if (argc > 2) delay = strtol(argv[2], NULL, 10);
    if (strcmp(argv[1], "threads") == 0)
        CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS &&
              provided == MPI_THREAD_MULTIPLE);
    else
        CHECK(MPI_Init(&argc, &argv) == MPI_SUCCESS);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    CHECK(check_size == 2 || strcmp(argv[1], "receivers") == 0);
    in = malloc(LONGEST);
    CHECK(in != NULL);
    run_way(ways, sizeof ways / sizeof *ways, argv[1]);
    return check_finish();
}
