/* What a program may do with memory between the sends of a buffer that was promoted: the receiver checks every byte. */
#define _GNU_SOURCE
#include "direct_exchange.h"
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static void swap_zeroes(const unsigned char *out, size_t length) {
    for (size_t i = 0; i < length; i++) CHECK(out[i] == 0);
    memset(in, 0x5a, length);
    MPI_Sendrecv(out, (int)length, MPI_BYTE, 1 - check_rank, 1, in, (int)length, MPI_BYTE, 1 - check_rank, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (size_t i = 0; i < length; i++) CHECK(in[i] == 0);
}

static void *at(const void *address, size_t offset) { return (unsigned char *)address + offset; }

static void kinds(void) {
    int other = 1 - check_rank;
    for (size_t length = 8 * PAGE; length <= LENGTH; length = length * 2 + 123) {
        unsigned char *out = malloc(length);
        CHECK(out != NULL);
        swap(out, length);
        MPI_Request requests[2], persistent[2];
        MPI_Send_init(out, (int)length, MPI_BYTE, other, 2, MPI_COMM_WORLD, &persistent[0]);
        MPI_Recv_init(in, (int)length, MPI_BYTE, other, 2, MPI_COMM_WORLD, &persistent[1]);
        for (int i = 0; i < 3 * REPEATS; i++) {
            seed += 2;
            check_fill(out, length, seed + (uint64_t)check_rank);
            memset(in, 0x5a, length);
            if (i % 3 == 0) {
                MPI_Irecv(in, (int)length, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[0]);
                MPI_Isend(out, (int)length, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[1]);
                MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            } else if (i % 3 == 1) {
                MPI_Startall(2, persistent);
                MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
            } else {
                MPI_Sendrecv(out, (int)length, MPI_BYTE, other, 1, in, (int)length, MPI_BYTE, other, 1,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            check_equal(in, length, seed + (uint64_t)other);
        }
        MPI_Request_free(&persistent[0]);
        MPI_Request_free(&persistent[1]);
        free(out);
    }
}

static void unmapped(void) {
    unsigned char *place = pages(NULL, LENGTH);
    for (int round = 0; round < ROUNDS; round++) {
        swap(place, LENGTH);
        if (round % 2) {
            CHECK(munmap(place, LENGTH) == 0);
            CHECK(pages(place, LENGTH) == place);
        } else { /* Past the C library: nobody can follow this. */
            CHECK(syscall(SYS_munmap, place, LENGTH) == 0);
            CHECK((void *)syscall(SYS_mmap, place, LENGTH, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == place);
        }
        seed += 2;
        check_fill(place, LENGTH, seed + (uint64_t)check_rank);
        swap_as_is(place, LENGTH, seed);
        /* A part only. */
        swap(place, LENGTH);
        pages(at(place, LENGTH / 2), 4 * PAGE);
        seed += 2;
        check_fill(place, LENGTH, seed + (uint64_t)check_rank);
        swap_as_is(place, LENGTH, seed);
    }
    CHECK(munmap(place, LENGTH) == 0);
}

static void freed(void) {
    uint64_t random = 99 + (uint64_t)check_rank * 0; /* both ranks alike */
    for (int round = 0; round < 60; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t length = 8 * PAGE + (size_t)(random >> 40) % (LENGTH - 8 * PAGE);
        unsigned char *out = malloc(length);
        CHECK(out != NULL);
        for (int i = 0; i < (round % 3 ? 1 : REPEATS); i++) {
            seed += 2;
            check_fill(out, length, seed + (uint64_t)check_rank);
            swap_as_is(out, length, seed);
        }
        if (round % 5 == 0) {
            out = realloc(out, length * 2);
            CHECK(out != NULL);
            check_equal(out, length, seed + (uint64_t)check_rank);
        }
        free(out);
        unsigned char *zeroes = calloc(length, 1);
        for (size_t i = 0; i < length; i++) CHECK(zeroes[i] == 0);
        free(zeroes);
    }
}

static void remapped(void) {
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char *out = pages(NULL, LENGTH);
        unsigned char *neighbour = pages(NULL, LENGTH); /* promoted next to it in the arena */
        swap(out, LENGTH);
        swap(neighbour, LENGTH);
        check_fill(out, LENGTH, 7);
        out = mremap(out, LENGTH, 2 * LENGTH, MREMAP_MAYMOVE);
        CHECK(out != MAP_FAILED);
        check_equal(out, LENGTH, 7);
        for (size_t i = LENGTH; i < 2 * LENGTH; i++) CHECK(out[i] == 0);
        memset(at(out, LENGTH), 1, LENGTH);
        seed += 2;
        check_fill(neighbour, LENGTH, seed + (uint64_t)check_rank);
        swap_as_is(neighbour, LENGTH, seed);
        swap(out, LENGTH);
        /* Moved onto another promoted buffer. */
        check_fill(out, LENGTH, seed + (uint64_t)check_rank);
        /* By the system call itself: UCX's hook of mremap loses the new address. */
        CHECK((void *)syscall(SYS_mremap, out, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED, neighbour) == neighbour);
        swap_as_is(neighbour, LENGTH, seed);
        swap(neighbour, LENGTH);
        check_fill(neighbour, LENGTH, seed + (uint64_t)check_rank);
        CHECK(mremap(neighbour, LENGTH, LENGTH / 2, 0) == neighbour);
        swap_as_is(neighbour, LENGTH / 2, seed);
        CHECK(munmap(neighbour, LENGTH / 2) == 0);
        CHECK(munmap(at(out, LENGTH), LENGTH) == 0);
    }
}

static void protected(void) {
    unsigned char *out = pages(NULL, LENGTH);
    for (int round = 0; round < ROUNDS; round++) {
        swap(out, LENGTH);
        check_fill(out, LENGTH, seed + (uint64_t)check_rank);
        CHECK(mprotect(at(out, PAGE), LENGTH / 2, PROT_READ) == 0);
        swap_as_is(out, LENGTH, seed);
        CHECK(mprotect(out, LENGTH, PROT_NONE) == 0);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK(mprotect(out, LENGTH, PROT_READ | PROT_WRITE) == 0);
        swap_as_is(out, LENGTH, seed);
    }
    munmap(out, LENGTH);
}

static void discarded(void) {
    static const int advice[] = {MADV_DONTNEED, MADV_DONTNEED, MADV_FREE};
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char *out = pages(NULL, LENGTH);
        swap(out, LENGTH);
        CHECK(madvise(out, LENGTH, advice[round % 3]) == 0);
        if (advice[round % 3] == MADV_DONTNEED) swap_zeroes(out, LENGTH);
        swap(out, LENGTH);
        CHECK(madvise(at(out, 3 * PAGE), 9 * PAGE, MADV_DONTNEED) == 0);
        for (int i = 0; i < 9 * PAGE; i++) CHECK(out[3 * PAGE + i] == 0);
        CHECK(out[2 * PAGE] == check_byte(seed + (uint64_t)check_rank, 2 * PAGE));
        CHECK(out[12 * PAGE] == check_byte(seed + (uint64_t)check_rank, 12 * PAGE));
        check_fill(out, LENGTH, seed + (uint64_t)check_rank);
        swap_as_is(out, LENGTH, seed);
        munmap(out, LENGTH);
    }
}

static void covered(void) {
    unsigned char *out = pages(NULL, LENGTH);
    int file = memfd_create("covering", 0);
    /* At its beginning, and where there is something else in a file as long as the shim's. */
    const off_t far = 4 << 20;
    CHECK(file >= 0 && ftruncate(file, far + LENGTH) == 0);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        swap(out, LENGTH);
        int sharing = round % 2 ? MAP_SHARED : MAP_PRIVATE;
        CHECK(mmap(out, LENGTH, PROT_READ | PROT_WRITE, sharing | MAP_FIXED, file, round % 4 < 2 ? 0 : far) == out);
        swap(out, LENGTH);
        pages(out, LENGTH);
    }
    close(file);
    munmap(out, LENGTH);
}

/* The buffer is a part of the data segment's end. */
static void program_break(void) {
    /* Room enough that malloc leaves the break alone meanwhile. */
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 1 << 28);
    void *volatile room = malloc(1 << 25);
    free(room);
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char *out = sbrk(LENGTH);
        CHECK(out != (void *)-1);
        swap(out, LENGTH);
        CHECK(sbrk(0) == at(out, LENGTH));
        CHECK(sbrk(-LENGTH) != (void *)-1);
        CHECK(sbrk(LENGTH) == out);
        for (int i = 0; i < LENGTH; i++) CHECK(out[i] == 0);
        swap(out, LENGTH);
        CHECK(sbrk(0) == at(out, LENGTH));
        CHECK(sbrk(-LENGTH) != (void *)-1);
    }
}

/* Messages that overlap in one array. */
static void overlapping(void) {
    unsigned char *array = malloc(4 * LENGTH);
    for (int round = 0; round < 4 * ROUNDS; round++) {
        size_t start = (size_t)(round * 7919 % 17) * 5003, length = 40000 + (size_t)(round % 5) * 50000;
        swap(array + start, length);
    }
    free(array);
}

static void await(pid_t child, int expected) {
    int status = 0;
    CHECK(child > 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected);
}

/* Parent and child must not see each other's stores after fork. */
static void forked(void) {
    unsigned char *out = malloc(LENGTH), *read_only = pages(NULL, LENGTH);
    fflush(NULL);
    for (int round = 0; round < ROUNDS; round++) {
        int go[2], done[2];
        char token = 0;
        swap(out, LENGTH);
        swap(read_only, LENGTH);
        uint64_t before = seed + (uint64_t)check_rank;
        check_fill(out, LENGTH, before);
        CHECK(mprotect(read_only, LENGTH, PROT_NONE) == 0);
        CHECK(pipe(go) == 0 && pipe(done) == 0);
        pid_t child = fork();
        if (child == 0) {
            CHECK(read(go[0], &token, 1) == 1); /* the parent has overwritten its buffer */
            for (size_t i = 0; i < LENGTH; i++)
                if (out[i] != check_byte(before, i)) _exit(9);
            CHECK(mprotect(read_only, LENGTH, PROT_READ | PROT_WRITE) == 0);
            for (size_t i = 0; i < LENGTH; i++)
                if (read_only[i] != check_byte(before, i)) _exit(8);
            memset(out, 0, LENGTH);
            memset(read_only, 0, LENGTH);
            CHECK(write(done[1], &token, 1) == 1);
            if (round % 2) {
                char *command[] = {"/bin/sh", "-c", "exit 7", NULL};
                execv(command[0], command);
            }
            _exit(7);
        }
        close(done[1]);
        check_fill(out, LENGTH, 3);
        CHECK(write(go[1], &token, 1) == 1);
        CHECK(read(done[0], &token, 1) == 1);
        check_equal(out, LENGTH, 3);
        CHECK(mprotect(read_only, LENGTH, PROT_READ | PROT_WRITE) == 0);
        check_equal(read_only, LENGTH, before);
        await(child, 7);
        close(go[0]), close(go[1]), close(done[0]);
        seed += 2;
        check_fill(out, LENGTH, seed + (uint64_t)check_rank);
        swap_as_is(out, LENGTH, seed);
    }
    char *command[] = {"/bin/sh", "-c", "exit 5", NULL};
    pid_t child;
    CHECK(posix_spawn(&child, command[0], NULL, NULL, command, environ) == 0);
    swap(out, LENGTH);
    await(child, 5);
    child = vfork();
    if (child == 0) {
        execv(command[0], command);
        _exit(99);
    }
    swap(out, LENGTH);
    await(child, 5);
    CHECK(WEXITSTATUS(system("exit 6")) == 6);
    swap(out, LENGTH);
    free(out);
}

/* Another thread starts processes in every way, at whatever moment of the messages. */
static volatile int over;
static void *start_processes(void *argument) {
    char *command[] = {"/bin/true", NULL};
    (void)argument;
    static volatile unsigned round; /* vfork returns twice */
    for (; !over; round++) {
        pid_t child = -1;
        switch (round % 4) {
        case 0: CHECK(posix_spawn(&child, command[0], NULL, NULL, command, environ) == 0); break;
        case 1:
            child = vfork();
            if (child == 0) {
                execv(command[0], command);
                _exit(99);
            }
            break;
        case 2:
            child = fork();
            if (child == 0) {
                execv(command[0], command);
                _exit(99);
            }
            break;
        default: CHECK(WEXITSTATUS(system("exit 6")) == 6); continue;
        }
        await(child, 0);
    }
    return NULL;
}

static void spawned(void) {
    pthread_t thread;
    fflush(NULL);
    CHECK(pthread_create(&thread, NULL, start_processes, NULL) == 0);
    for (int round = 0; round < 5 * ROUNDS; round++) {
        unsigned char *out = round % 2 ? malloc(LENGTH) : pages(NULL, LENGTH);
        CHECK(out != NULL);
        swap(out, LENGTH);
        if (round % 2)
            free(out);
        else
            CHECK(munmap(out, LENGTH) == 0);
    }
    over = 1;
    CHECK(pthread_join(thread, NULL) == 0);
}

/* Elements with holes between them, and collective operations. */
static void types(void) {
    MPI_Datatype vector;
    MPI_Type_vector(40, 3000, 4000, MPI_BYTE, &vector);
    MPI_Type_commit(&vector);
    unsigned char *out = malloc(LENGTH), *sum = malloc(LENGTH);
    for (int i = 0; i < 4 * REPEATS; i++) {
        seed += 2;
        check_fill(out, LENGTH, seed + (uint64_t)check_rank);
        MPI_Sendrecv(out, 1, vector, 1 - check_rank, 1, in, 40 * 3000, MPI_BYTE, 1 - check_rank, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        for (size_t row = 0; row < 40; row++)
            for (size_t j = 0; j < 3000; j++)
                CHECK(in[row * 3000 + j] == check_byte(seed + (uint64_t)(1 - check_rank), row * 4000 + j));
        MPI_Bcast(out, LENGTH, MPI_BYTE, i % 2, MPI_COMM_WORLD);
        check_equal(out, LENGTH, seed + (uint64_t)(i % 2));
        swap(out, LENGTH);
        check_fill(out, LENGTH, seed);
        MPI_Alltoall(out, LENGTH / 2, MPI_BYTE, in, LENGTH / 2, MPI_BYTE, MPI_COMM_WORLD);
        check_take(in, LENGTH);
        MPI_Allreduce(out, sum, LENGTH, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
        for (size_t j = 0; j < LENGTH; j++) CHECK(sum[j] == 0);
    }
    MPI_Type_free(&vector);
    free(out);
    free(sum);
}

/* A reader of the buffer runs on while it is sent and moved. */
static volatile int stop;
static void *look(void *argument) {
    const volatile unsigned char *data = argument;
    unsigned long sum = 0;
    while (!stop)
        for (size_t i = 0; i < LENGTH; i += 61) sum += data[i] == 0xee ? 1 : 0;
    return (void *)sum;
}

static void watched(void) {
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        void *result;
        unsigned char *out = malloc(LENGTH);
        memset(out, 1, LENGTH);
        stop = 0;
        CHECK(pthread_create(&thread, NULL, look, out) == 0);
        for (int i = 0; i < 2 * REPEATS; i++) {
            memset(out, i + 1, LENGTH);
            MPI_Sendrecv(out, LENGTH, MPI_BYTE, 1 - check_rank, 1, in, LENGTH, MPI_BYTE, 1 - check_rank, 1,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (size_t j = 0; j < LENGTH; j++) CHECK(in[j] == i + 1);
        }
        stop = 1;
        CHECK(pthread_join(thread, &result) == 0 && result == NULL);
        free(out);
    }
}

/* Rank 0 sends it to rank 1 by an operation whose buffers nobody is told of. */
static void pass_unannounced(unsigned char *out, int length) {
    int sent[2] = {0, check_rank == 0 ? length : 0}, received[2] = {check_rank == 1 ? length : 0, 0}, places[2] = {0, 0};
    MPI_Datatype types[2] = {MPI_BYTE, MPI_BYTE};
    MPI_Alltoallw(out, sent, places, types, in, received, places, types, MPI_COMM_WORLD);
}

/* What lies beside whole pages is other after each blocking send, and then read in ways that no blocking send covers. */
static void edges(void) {
    int other = 1 - check_rank;
    for (size_t length = 2 * PAGE; length <= 16 * PAGE; length = length * 2 + 77) {
        unsigned char *room = malloc(length + 2 * PAGE);
        unsigned char *out = room + (PAGE - (uintptr_t)room % PAGE) + 16 * (1 + length % 200);
        MPI_Request requests[2], persistent;
        MPI_Win window;
        MPI_Send_init(out, (int)length, MPI_BYTE, other, 1, MPI_COMM_WORLD, &persistent);
        MPI_Win_create(out, (MPI_Aint)length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        for (int i = 0; i < 12 * REPEATS; i++) {
            swap_once(out, length);
            seed += 2;
            check_fill(out, length, seed + (uint64_t)check_rank);
            memset(in, 0x5a, length);
            switch (i % 7) {
            case 0:
            case 1:
                MPI_Irecv(in, (int)length, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[0]);
                if (i % 7 == 0)
                    MPI_Isend(out, (int)length, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[1]);
                else
                    MPI_Start(&persistent), requests[1] = persistent;
                MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
                break;
            case 2:
                MPI_Win_fence(0, window);
                MPI_Get(in, (int)length, MPI_BYTE, other, 0, (int)length, MPI_BYTE, window);
                MPI_Win_fence(0, window);
                break;
            case 3:
                memcpy(in, out, length);
                MPI_Sendrecv_replace(in, (int)length, MPI_BYTE, other, 1, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                break;
            case 4:
                MPI_Sendrecv_replace(out, (int)length, MPI_BYTE, other, 1, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                memcpy(in, out, length);
                break;
            case 5:
                MPI_Bcast(check_rank == 0 ? out : in, (int)length, MPI_BYTE, 0, MPI_COMM_WORLD);
                if (check_rank == 0) check_fill(in, length, seed + 1);
                break;
            default:
                pass_unannounced(out, (int)length);
                if (check_rank == 0) check_fill(in, length, seed + 1);
            }
            check_equal(in, length, seed + (uint64_t)other);
        }
        MPI_Request_free(&persistent);
        MPI_Win_free(&window);
        free(room);
    }
}

/* A thousand promoted buffers at a time. */
static void many(void) {
    enum { COUNT = 1000, SMALL = 4 * PAGE };
    unsigned char *out[COUNT];
    for (int i = 0; i < COUNT; i++) out[i] = malloc(SMALL + PAGE);
    for (int round = 0; round < 2 * REPEATS; round++)
        for (int i = 0; i < COUNT; i++) {
            seed += 2;
            check_fill(out[i], SMALL + PAGE, seed + (uint64_t)check_rank);
            swap_as_is(out[i], SMALL + PAGE, seed);
        }
    for (int i = 0; i < COUNT; i++) free(out[i]);
}

/* Microseconds from the first message to the end of rank 0. */
static long delay;

static void die(int signal) {
    (void)signal;
    raise(SIGKILL);
}

/* One rank is killed, at whatever moment, while the other has its buffers mapped and waits for it. */
static void killed(void) {
    unsigned char *out = pages(NULL, LENGTH);
    swap(out, LENGTH);
    if (check_rank == 0) {
        struct itimerval timer = {{0, 0}, {0, delay > 0 ? delay : 1}};
        CHECK(signal(SIGALRM, die) != SIG_ERR);
        CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    }
    for (;;) {
        swap(out, LENGTH);
        CHECK(munmap(out, LENGTH) == 0);
        out = pages(NULL, LENGTH);
    }
}

/* No file may be longer than 16 MiB (see main): the arena cannot take them all. */
static void limited(void) { many(); }

int main(int argc, char **argv) {
    static const struct way ways[] = {
        {"kinds", kinds},         {"unmapped", unmapped},   {"freed", freed},       {"remapped", remapped},
        {"protected", protected}, {"discarded", discarded}, {"covered", covered},   {"break", program_break},
        {"overlapping", overlapping}, {"forked", forked},   {"spawned", spawned},   {"types", types},
        {"watched", watched},     {"edges", edges},     {"many", many},           {"killed", killed},     {"limited", limited}};
    CHECK(argc > 1);
    if (strcmp(argv[1], "limited") == 0) {
        struct rlimit limit = {1 << 24, 1 << 24};
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    }
    if (argc > 2) delay = strtol(argv[2], NULL, 10);
    check_init(&argc, &argv);
    CHECK(check_size == 2);
    in = malloc(4 * LENGTH);
    run_way(ways, sizeof ways / sizeof *ways, argv[1]);
    return check_finish();
}
