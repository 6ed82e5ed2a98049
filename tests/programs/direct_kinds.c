/* Kinds of memory, of processes and of datatypes, some of which direct copies must leave alone: direct_kinds WAY. A way that
   cannot be gone here says so on stderr: "skipped: REASON". */
#define _GNU_SOURCE
#include "direct_exchange.h"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Both ranks can, or neither goes on. */
static int all_can(int can, const char *reason) {
    MPI_Allreduce(MPI_IN_PLACE, &can, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!can && check_rank == 0) fprintf(stderr, "skipped: %s\n", reason);
    return can;
}

/* As often as ordinary memory needs to be promoted and read directly. */
static void swap_often(unsigned char *out) {
    swap(out, LENGTH);
    swap(out, LENGTH);
}

static void ordinary(void) {
    unsigned char *out = pages(NULL, LENGTH);
    swap_often(out);
    munmap(out, LENGTH);
}

/* A new name, huge pages forbidden or wished for, a policy of reading ahead: ordinary memory all the same. */
static void advised(void) {
    static const int advice[] = {MADV_NOHUGEPAGE, MADV_HUGEPAGE, MADV_SEQUENTIAL, MADV_RANDOM};
    for (int i = 0; i < 4; i++) {
        unsigned char *out = pages(NULL, LENGTH);
        madvise(out, LENGTH, advice[i]);
        swap_often(out);
        munmap(out, LENGTH);
    }
}

/* On the stack, and in a mapping of before that has grown since: the kernel joins neighbours of one kind. Both ends of it. */
static unsigned char *early;
static void on_the_stack(void) {
    unsigned char out[LENGTH];
    swap_often(out);
}
static void grown(void) {
    unsigned char *out = pages(early, LENGTH);
    swap_often(out);
    swap_often(out + LENGTH);
    munmap(out, 2 * LENGTH);
}

static void advised_to(int advice, const char *reason) {
    unsigned char *out = pages(NULL, LENGTH);
    if (all_can(madvise(out, LENGTH, advice) == 0, reason)) swap_often(out);
    munmap(out, LENGTH);
}

/* A child does not have it, or finds it empty; a file of a crashed process lacks it; equal pages become one. */
static void dont_fork(void) { advised_to(MADV_DONTFORK, "no memory can be kept from children"); }
static void wipe_on_fork(void) { advised_to(MADV_WIPEONFORK, "no memory can be emptied in children"); }
static void dont_dump(void) { advised_to(MADV_DONTDUMP, "no memory can be kept from dumps"); }
static void mergeable(void) { advised_to(MADV_MERGEABLE, "no pages can be merged"); }

/* Memory of before MPI_Init, which a child does not have, or which is as any other. */
static int early_advice;
static void from_before(int advice) {
    early = pages(NULL, LENGTH);
    early_advice = madvise(early, LENGTH, advice);
}
static void before(void) {
    if (all_can(early_advice == 0, "no memory can be kept from children")) swap_often(early);
    munmap(early, LENGTH);
}

/* What a child finds of a promoted buffer of which that was wished afterwards: nothing, zeroes, or nothing special. */
static void wished_later(void) {
    static const int advice[] = {MADV_DONTFORK, MADV_WIPEONFORK, MADV_KEEPONFORK};
    for (int i = 0; i < 3; i++) {
        unsigned char *out = pages(NULL, LENGTH), present;
        swap_often(out);
        uint64_t before = seed + (uint64_t)check_rank;
        CHECK(madvise(out, LENGTH, advice[i] == MADV_KEEPONFORK ? MADV_WIPEONFORK : advice[i]) == 0);
        if (advice[i] == MADV_KEEPONFORK) CHECK(madvise(out, LENGTH, MADV_KEEPONFORK) == 0);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            if (advice[i] == MADV_DONTFORK) _exit(mincore(out, PAGE, &present) == 0 ? 9 : 7);
            for (size_t j = 0; j < LENGTH; j++)
                if (out[j] != (advice[i] == MADV_WIPEONFORK ? 0 : check_byte(before, j))) _exit(9);
            _exit(7);
        }
        int status = 0;
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        swap_as_is(out, LENGTH, seed);
        swap_often(out);
        munmap(out, LENGTH);
    }
}

/* Locked pages can be discarded, too. */
static void discarded_later(void) {
    unsigned char *out = pages(NULL, LENGTH);
    for (int round = 0; round < ROUNDS; round++) {
        swap_often(out);
        uint64_t before = seed + (uint64_t)check_rank;
        int done = madvise(out + 3 * PAGE, 9 * PAGE, 24 /* MADV_DONTNEED_LOCKED, Linux 5.18 */) == 0;
        for (size_t i = 0; i < 9 * PAGE; i++) CHECK(out[3 * PAGE + i] == (done ? 0 : check_byte(before, 3 * PAGE + i)));
        CHECK(out[2 * PAGE] == check_byte(before, 2 * PAGE));
        CHECK(out[12 * PAGE] == check_byte(before, 12 * PAGE));
        /* Memory that is not a file's has no hole to be punched. */
        CHECK(madvise(out, LENGTH, MADV_REMOVE) == -1);
        CHECK(out[2 * PAGE] == check_byte(before, 2 * PAGE));
    }
    munmap(out, LENGTH);
}

static void locked(void) {
    unsigned char *out = pages(NULL, LENGTH);
    if (all_can(mlock(out, LENGTH) == 0, "no memory can be locked")) swap_often(out);
    munmap(out, LENGTH);
}

static void executable(void) {
    unsigned char *out = pages(NULL, LENGTH);
    if (all_can(mprotect(out, LENGTH, PROT_READ | PROT_WRITE | PROT_EXEC) == 0, "no memory can be written and executed"))
        swap_often(out);
    munmap(out, LENGTH);
}

static void of_a_file(int flags, const char *name) {
    int file = name == NULL ? -1 : memfd_create(name, 0);
    CHECK(name == NULL || (file >= 0 && ftruncate(file, LENGTH) == 0));
    unsigned char *out = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, flags, file, 0);
    CHECK(out != MAP_FAILED);
    swap_often(out);
    munmap(out, LENGTH);
    if (file >= 0) close(file);
}

static void private_file(void) { of_a_file(MAP_PRIVATE, "private"); }
static void shared_file(void) { of_a_file(MAP_SHARED, "shared"); }
static void shared_memory(void) { of_a_file(MAP_SHARED | MAP_ANONYMOUS, NULL); }

static void huge_page(void) {
    size_t huge = 2 << 20;
    unsigned char *out = mmap(NULL, huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (all_can(out != MAP_FAILED, "no huge page is reserved")) swap_often(out);
    if (out != MAP_FAILED) munmap(out, huge);
}

/* Somebody is told of its page faults. */
static void watched_over(void) {
    unsigned char *out = pages(NULL, LENGTH);
    memset(out, 1, LENGTH);
    int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.range = {(uintptr_t)out, LENGTH}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    int can = faults >= 0 && ioctl(faults, UFFDIO_API, &api) == 0 && ioctl(faults, UFFDIO_REGISTER, &range) == 0;
    if (all_can(can, "page faults cannot be watched")) swap_often(out);
    if (faults >= 0) close(faults);
    munmap(out, LENGTH);
}

/* A device is open that may have memory of this process registered. What was promoted before stays; nothing else is. */
static int open_device(void) {
    static const char *const devices[] = {"/dev/fuse", "/dev/kvm", "/dev/net/tun", "/dev/hwrng", "/dev/loop-control"};
    int device = -1;
    for (size_t i = 0; device < 0 && i < sizeof devices / sizeof *devices; i++) device = open(devices[i], O_RDWR);
    return device >= 0 ? device : open(devices[3], O_RDONLY);
}

static void device(void) {
    int opened = open_device();
    if (all_can(opened >= 0, "no device can be opened")) ordinary();
    if (opened >= 0) close(opened);
}

static void device_later(void) {
    unsigned char *before = pages(NULL, LENGTH);
    swap_often(before);
    int opened = open_device();
    /* As long as it takes to begin to use one. */
    usleep(20000);
    if (all_can(opened >= 0, "no device can be opened")) {
        for (int i = 0; i < 4; i++) ordinary();
        swap_often(before);
    }
    if (opened >= 0) close(opened);
    munmap(before, LENGTH);
}

/* Whether some of that memory lies in the shim's file. */
static int is_moved(const unsigned char *start, size_t length) {
    char line[512];
    int moved = 0;
    uintptr_t from = (uintptr_t)start;
    FILE *file = fopen("/proc/self/maps", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long first, end;
        if (sscanf(line, "%lx-%lx ", &first, &end) == 2 && first < from + length && from < end)
            moved |= strstr(line, "copytune-arena") != NULL;
    }
    fclose(file);
    return moved;
}

enum { WINDOW = 16, FIRST = WINDOW / 2, SIZE = 5 * PAGE };

/* One window of messages both ways. That is called before the send numbered FIRST, when buffers before it may have moved. */
static void exchange_window(unsigned char *out, void (*between)(void)) {
    int other = 1 - check_rank;
    MPI_Request requests[2 * WINDOW];
    seed += 2;
    check_fill(out, WINDOW * SIZE, seed + (uint64_t)check_rank);
    for (int i = 0; i < WINDOW; i++) MPI_Irecv(in + i * SIZE, SIZE, MPI_BYTE, other, i, MPI_COMM_WORLD, requests + i);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < WINDOW; i++) {
        if (i == FIRST) between();
        MPI_Isend(out + i * SIZE, SIZE, MPI_BYTE, other, i, MPI_COMM_WORLD, requests + WINDOW + i);
    }
    MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
    check_equal(in, WINDOW * SIZE, seed + (uint64_t)other);
}

static int watching;
static void watch_faults(void) { watching = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY); }

/* Something is opened between the sends of a window: what is sent after it stays. */
static void device_between(void) {
    int can = 1;
    unsigned char *out = pages(NULL, WINDOW * SIZE);
    for (int round = 0; round < ROUNDS; round++) {
        exchange_window(out, watch_faults);
        can = can && watching >= 0;
        if (watching >= 0) close(watching);
    }
    if (all_can(can, "page faults cannot be watched")) CHECK(!is_moved(out + FIRST * SIZE, (WINDOW - FIRST) * SIZE));
    munmap(out, WINDOW * SIZE);
}

static unsigned char *kept;
static int is_kept;
static void lock_kept(void) { is_kept = mlock(kept, SIZE) == 0; }

/* One buffer is locked between the sends of a window: it stays as long as it is. */
static void locked_between(void) {
    int can = 1;
    unsigned char *out = pages(NULL, WINDOW * SIZE);
    kept = out + FIRST * SIZE;
    for (int round = 0; round < ROUNDS; round++) {
        exchange_window(out, lock_kept);
        can = can && is_kept;
        CHECK(!is_kept || !is_moved(kept, SIZE));
        munlock(kept, SIZE);
    }
    all_can(can, "no memory can be locked");
    munmap(out, WINDOW * SIZE);
}

static void ring(void) {
    struct io_uring_params parameters = {0};
    int opened = (int)syscall(SYS_io_uring_setup, 4, &parameters);
    if (all_can(opened >= 0, "no ring of requests can be made")) ordinary();
    if (opened >= 0) close(opened);
}

/* All memory is locked, of now or of now and later: what a process has mapped of another one's takes no memory by that. */
static void all_locked(int flags) {
    unsigned char *out = pages(NULL, LENGTH);
    if (flags & MCL_CURRENT) swap_often(out);
    MPI_Barrier(MPI_COMM_WORLD);
    int can = mlockall(flags) == 0;
    if (all_can(can, "not all memory can be locked")) swap_often(out);
    MPI_Barrier(MPI_COMM_WORLD);
    munlockall();
    CHECK(arena() <= 16 << 20);
    munmap(out, LENGTH);
}

static void locked_at_once(void) { all_locked(MCL_CURRENT); }
static void locked_before(void) { all_locked(MCL_FUTURE); }

/* Of what belongs to others nothing is dumped if this process crashes: that would make memory of all that they do not use. */
static void dumped(void) {
    ordinary();
    char line[512];
    int theirs = 0;
    FILE *file = fopen("/proc/self/smaps", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            theirs = strstr(line, "copytune-arena") != NULL && end - start > 8 << 20;
        else if (theirs && strncmp(line, "VmFlags:", 8) == 0)
            CHECK(strstr(line, " dd") != NULL);
    }
    fclose(file);
}

/* A child of a process that has as many mappings as it may have. */
static void crowded(void) {
    static const size_t room = 200000ul * PAGE;
    unsigned char *out = pages(NULL, LENGTH), *beside = malloc(LENGTH);
    swap_often(out);
    swap_often(beside);
    uint64_t before = seed + (uint64_t)check_rank;
    check_fill(out, LENGTH, before);
    unsigned char *crowd = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(crowd != MAP_FAILED);
    size_t at = 0;
    while (at < room && mprotect(crowd + at, PAGE, PROT_READ) == 0) at += 2 * PAGE;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        for (size_t i = 0; i < LENGTH; i++)
            if (out[i] != check_byte(before, i) || beside[i] != check_byte(before, i)) _exit(9);
        memset(out, 0, LENGTH);
        memset(beside, 0, LENGTH);
        _exit(7);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    munmap(crowd, room);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    check_equal(out, LENGTH, before);
    check_equal(beside, LENGTH, before);
    swap_often(out);
    free(beside);
    munmap(out, LENGTH);
}

/* Another thread writes beside a message, or between its parts: nothing of that is lost while the message moves. */
static volatile uint64_t *neighbours[2];
static volatile int over;

static void *write_beside(void *argument) {
    (void)argument;
    for (uint64_t value = 1; !over; value++)
        for (int i = 0; i < 2; i++) {
            *neighbours[i] = value;
            for (volatile int wait = 0; wait < 20; wait++) {}
            CHECK(*neighbours[i] == value);
        }
    return NULL;
}

static pthread_t begin_beside(unsigned char *one, unsigned char *other) {
    pthread_t thread;
    neighbours[0] = (uint64_t *)one, neighbours[1] = (uint64_t *)other;
    over = 0;
    CHECK(pthread_create(&thread, NULL, write_beside, NULL) == 0);
    return thread;
}

static void end_beside(pthread_t thread) {
    over = 1;
    CHECK(pthread_join(thread, NULL) == 0);
}

static void written_beside(void) {
    for (int round = 0; round < 2 * ROUNDS; round++) {
        unsigned char *room = pages(NULL, LENGTH);
        pthread_t thread = begin_beside(room, room + LENGTH - 64);
        for (int i = 0; i < REPEATS; i++) swap_once(room + 64, LENGTH - 128);
        end_beside(thread);
        munmap(room, LENGTH);
    }
}

/* A receiver has asked for the whole; what is sent next is not the whole. */
static void written_between(void) {
    MPI_Datatype rows;
    MPI_Type_vector(LENGTH / (4 * PAGE), 3 * PAGE, 4 * PAGE, MPI_BYTE, &rows);
    MPI_Type_commit(&rows);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        int other = 1 - check_rank;
        unsigned char *out = pages(NULL, LENGTH);
        for (int i = 0; i < 2; i++) swap_once(out, LENGTH);
        MPI_Barrier(MPI_COMM_WORLD);
        pthread_t thread = begin_beside(out + 3 * PAGE, out + LENGTH - PAGE);
        for (int i = 0; i < 2; i++) {
            MPI_Sendrecv(out, 1, rows, other, 1, in, 1, rows, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(in[5 * PAGE] == check_byte(seed + (uint64_t)other, 5 * PAGE));
        }
        end_beside(thread);
        swap(out, LENGTH);
        munmap(out, LENGTH);
    }
    MPI_Type_free(&rows);
}

/* Datatypes without holes, of all constructors. */
static void without_holes(void) {
    enum { COUNT = LENGTH / 8, PARTS = 4 };
    int lengths[PARTS], at[PARTS];
    MPI_Aint places[PARTS];
    MPI_Datatype types[6], kinds[PARTS];
    int whole[] = {COUNT / 64, 64}, none[] = {0, 0};
    for (int i = 0; i < PARTS; i++) {
        lengths[i] = COUNT / PARTS, at[i] = i * lengths[i], places[i] = 8 * (MPI_Aint)at[i], kinds[i] = MPI_DOUBLE;
    }
    MPI_Type_contiguous(COUNT, MPI_DOUBLE, &types[0]);
    MPI_Type_vector(COUNT / 64, 64, 64, MPI_DOUBLE, &types[1]);
    MPI_Type_indexed(PARTS, lengths, at, MPI_DOUBLE, &types[2]);
    MPI_Type_create_hindexed(PARTS, lengths, places, MPI_DOUBLE, &types[3]);
    MPI_Type_create_struct(PARTS, lengths, places, kinds, &types[4]);
    MPI_Type_create_subarray(2, whole, whole, none, MPI_ORDER_C, MPI_DOUBLE, &types[5]);
    for (int t = 0; t < 6; t++) {
        int other = 1 - check_rank;
        unsigned char *out = pages(NULL, LENGTH);
        MPI_Type_commit(&types[t]);
        for (int i = 0; i < 3 * REPEATS; i++) {
            seed += 2;
            check_fill(out, LENGTH, seed + (uint64_t)check_rank);
            memset(in, 0x5a, LENGTH);
            /* The receiver knows it as it does, and otherwise. */
            MPI_Sendrecv(out, 1, types[t], other, 1, in, i % 2 ? COUNT : 1, i % 2 ? MPI_DOUBLE : types[t], other, 1,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_equal(in, LENGTH, seed + (uint64_t)other);
        }
        MPI_Type_free(&types[t]);
        munmap(out, LENGTH);
    }
}

/* Elements with holes between them: what is beside them moves nowhere, and nothing arrives between them. */
static void with_holes(void) {
    enum { ROWS = 40, ROW = 3 * PAGE, STRIDE = 4 * PAGE };
    MPI_Datatype rows;
    MPI_Type_vector(ROWS, ROW, STRIDE, MPI_BYTE, &rows);
    MPI_Type_commit(&rows);
    unsigned char *out = pages(NULL, LENGTH);
    for (int i = 0; i < 3 * REPEATS; i++) {
        int other = 1 - check_rank;
        seed += 2;
        check_fill(out, LENGTH, seed + (uint64_t)check_rank);
        memset(in, 0x5a, LENGTH);
        MPI_Sendrecv(out, 1, rows, other, 1, in, 1, rows, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (size_t j = 0; j < LENGTH; j++)
            CHECK(in[j] == (j % STRIDE < ROW ? check_byte(seed + (uint64_t)other, j) : 0x5a));
    }
    MPI_Type_free(&rows);
    munmap(out, LENGTH);
}

int main(int argc, char **argv) {
    static const struct way ways[] = {
        {"ordinary", ordinary}, {"advised", advised}, {"wished_later", wished_later},
        {"discarded_later", discarded_later}, {"dont_fork", dont_fork}, {"wipe_on_fork", wipe_on_fork},
        {"ordinary_before", before}, {"on_the_stack", on_the_stack}, {"grown", grown}, {"dont_fork_before", before},
        {"dont_dump", dont_dump}, {"mergeable", mergeable}, {"locked", locked}, {"executable", executable},
        {"private_file", private_file}, {"shared_file", shared_file}, {"shared_memory", shared_memory},
        {"huge_page", huge_page}, {"watched_over", watched_over}, {"device", device}, {"device_later", device_later},
        {"device_between", device_between}, {"locked_between", locked_between},
        {"ring", ring}, {"locked_at_once", locked_at_once}, {"locked_before", locked_before}, {"dumped", dumped},
        {"crowded", crowded},
        {"written_beside", written_beside}, {"written_between", written_between},
        {"without_holes", without_holes}, {"with_holes", with_holes}};
    CHECK(argc > 1);
    if (strncmp(argv[1], "locked_", 7) == 0) {
        /* So much the shim's file can be at most, lest a fault here take the machine's memory. */
        struct rlimit limit = {64 << 20, 64 << 20};
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    }
    if (strcmp(argv[1], "ordinary_before") == 0) from_before(MADV_NORMAL);
    if (strcmp(argv[1], "dont_fork_before") == 0) from_before(MADV_DONTFORK);
    if (strcmp(argv[1], "grown") == 0) {
        /* Where nobody else maps anything. */
        early = (unsigned char *)(1ul << 40);
        pages(early + LENGTH, LENGTH)[0] = 1;
    }
    check_init(&argc, &argv);
    CHECK(check_size == 2);
    in = malloc(LENGTH);
    run_way(ways, sizeof ways / sizeof *ways, argv[1]);
    return check_finish();
}
