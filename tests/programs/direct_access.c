/* Who gets at a process's shared pages, whose files the shim touches, and what it leaves of the process's limits: direct_access WAY. */
#define _GNU_SOURCE
#include "direct_exchange.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { FILES = 2048 };

/* How many of the process's descriptors lead to a memory file of that name, for one who may look at it. */
static int leading_to(int process, const char *file) {
    int count = 0;
    for (int number = 0; number < FILES; number++) {
        char name[64], target[128];
        struct stat status;
        snprintf(name, sizeof name, "/proc/%d/fd/%d", process, number);
        ssize_t length = readlink(name, target, sizeof target - 1);
        /* A stat alone is no access, but what can be seen here a change of mode can open. */
        if (length < 0 || stat(name, &status) != 0) continue;
        target[length] = 0;
        count += S_ISREG(status.st_mode) && strstr(target, file) != NULL;
    }
    return count;
}

/* Other processes of the same user can open what is open here, but not the shared pages. */
static void looked_at(void) {
    int other = 1 - check_rank, own = getpid(), theirs, file = memfd_create("direct-open", 0);
    CHECK(file >= 0);
    unsigned char *out = malloc(LENGTH);
    swap(out, LENGTH);
    MPI_Sendrecv(&own, 1, MPI_INT, other, 2, &theirs, 1, MPI_INT, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    /* A process beside this one, as nothing that this one has open counts. */
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (leading_to(theirs, "direct-open") != 1) _exit(8);
        _exit(leading_to(theirs, "copytune") != 0 ? 9 : 7);
    }
    int ended = 0;
    CHECK(child > 0 && waitpid(child, &ended, 0) == child);
    CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 7);
    swap(out, LENGTH);
    close(file);
    free(out);
}

/* To another user the kernel neither copies from this process nor hands over anything. */
static void stranger(void) {
    unsigned char *out = malloc(LENGTH);
    swap(out, LENGTH);
    fflush(NULL);
    int parent = getpid(), ended = 0;
    pid_t child = fork();
    if (child == 0) {
        char byte;
        struct iovec to = {&byte, 1}, from = {out, 1};
        if (setresuid(65534, 65534, 65534) != 0 || process_vm_readv(parent, &to, 1, &from, 1, 0) == 1) _exit(6);
        int process = (int)syscall(SYS_pidfd_open, parent, 0);
        for (int number = 0; number < FILES; number++)
            if (syscall(SYS_pidfd_getfd, process, number, 0) >= 0) _exit(9);
        _exit(leading_to(parent, "copytune") != 0 ? 9 : 7);
    }
    CHECK(child > 0 && waitpid(child, &ended, 0) == child);
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 6) {
        if (check_rank == 0) fprintf(stderr, "skipped: no other user can be had here (it takes root)\n");
    } else {
        CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 7);
    }
    free(out);
}

/* A child that is no other program has no way to its parent's shared pages, whoever may look at it. */
static void child_alone(void) {
    unsigned char *out = malloc(LENGTH);
    swap(out, LENGTH);
    fflush(NULL);
    int ended = 0;
    pid_t child = fork();
    if (child == 0) {
        FILE *file = fopen("/proc/self/maps", "r");
        char line[512];
        while (file != NULL && fgets(line, sizeof line, file) != NULL)
            if (strstr(line, "copytune-arena") != NULL) _exit(9);
        _exit(file == NULL || arena() != 0 ? 9 : 7);
    }
    CHECK(child > 0 && waitpid(child, &ended, 0) == child);
    CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 7);
    swap(out, LENGTH);
    free(out);
}

/* Where the signpost stands that leads peers to a process's shared pages (src/preload/protocol/src/handover.rs). */
#define SIGNPOST ((void *)0x637074750000)

/* Before MPI_Init the launcher knows the rank. */
static int is_first(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (rank == NULL) rank = getenv("PMI_RANK");
    CHECK(rank != NULL);
    return atoi(rank) == 0;
}

/* On one rank the program has something else there, which begins like a way. */
static void occupy(void) {
    void **page = mmap(SIGNPOST, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(page == SIGNPOST);
    page[0] = page;
}

static void occupied(void) {
    unsigned char *out = malloc(LENGTH);
    swap(out, LENGTH);
    if (check_rank == 0) {
        void **page = SIGNPOST;
        CHECK(page[0] == page);
        page[1] = out;
        CHECK(munmap(page, PAGE) == 0);
    }
    swap(out, LENGTH);
    free(out);
}

static volatile int over;

/* Puts a file of the program in the place of each descriptor that leads to the shared pages, and that one back again. */
static void *exchange(void *argument) {
    int file = *(int *)argument, number = arena_at(), copy = number < 0 ? -1 : fcntl(number, F_DUPFD_CLOEXEC, 900);
    while (number >= 0 && !over) {
        CHECK(dup2(file, number) == number);
        CHECK(dup2(copy, number) == number);
    }
    if (copy >= 0) close(copy);
    return NULL;
}

/* A thread of the program closes descriptors that it does not know, and opens others: its files stay as they are. */
static void descriptors(void) {
    enum { SHORT = 24 * PAGE };
    static unsigned char content[64 * PAGE], now[sizeof content];
    unsigned char *warm = malloc(LENGTH);
    swap(warm, LENGTH);
    int file = memfd_create("own", MFD_CLOEXEC);
    check_fill(content, sizeof content, 99);
    CHECK(file >= 0 && write(file, content, sizeof content) == sizeof content);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, exchange, &file) == 0);
    for (int round = 0; round < 60; round++) {
        unsigned char *out = pages(NULL, SHORT);
        for (int i = 0; i < 4; i++) swap_once(out, SHORT);
        CHECK(munmap(out, SHORT) == 0);
    }
    over = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    struct stat status;
    CHECK(fstat(file, &status) == 0 && status.st_size == sizeof content);
    CHECK(pread(file, now, sizeof now, 0) == sizeof now && memcmp(now, content, sizeof now) == 0);
    swap(warm, LENGTH);
    close(file);
    free(warm);
}

static unsigned long left;

/* What remains of address space is the program's. */
static void limit_space(void) {
    unsigned long used = 0, most = 64ul << 30, memory = (unsigned long)sysconf(_SC_PHYS_PAGES) * PAGE;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%lu", &used) == 1);
    fclose(file);
    left = (memory < most ? memory : most) + (4ul << 30);
    struct rlimit limit = {used * PAGE + left, used * PAGE + left};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

static void space(void) {
    unsigned char *out = malloc(LENGTH);
    swap(out, LENGTH);
    void *room = mmap(NULL, left / 4 * 3, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(room != MAP_FAILED);
    CHECK(munmap(room, left / 4 * 3) == 0);
    swap(out, LENGTH);
    free(out);
}

/* A process that has nearly as many mappings as it may have gets those that are left. */
static void mappings(void) {
    enum { SHORT = 12 * PAGE, COUNT = 60, LEFT = 100 };
    static const size_t room = 400000ul * PAGE;
    unsigned char *warm = malloc(LENGTH), *many = pages(NULL, (size_t)COUNT * 2 * SHORT);
    swap(warm, LENGTH);
    unsigned char *crowd = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(crowd != MAP_FAILED);
    size_t at = 0;
    while (at < room && mprotect(crowd + at, PAGE, PROT_READ) == 0) at += 2 * PAGE;
    if (at >= room && check_rank == 0) fprintf(stderr, "skipped: a process may have too many mappings here\n");
    for (int i = 0; i < LEFT / 2; i++) {
        at -= 2 * PAGE;
        CHECK(mprotect(crowd + at, PAGE, PROT_NONE) == 0);
    }
    for (int i = 0; i < COUNT; i++)
        for (int times = 0; times < 4; times++) swap_once(many + (size_t)i * 2 * SHORT, SHORT);
    for (int i = 0; i < LEFT / 2 - 20; i++, at += 2 * PAGE) CHECK(mprotect(crowd + at, PAGE, PROT_READ) == 0);
    munmap(crowd, room);
    munmap(many, (size_t)COUNT * 2 * SHORT);
    swap(warm, LENGTH);
    free(warm);
}

enum { THREADS = 3 };
static pthread_barrier_t turn;

/* One after the other, and none ends before all have had their turn. */
static void *one_thread(void *argument) {
    unsigned char *out = malloc(LENGTH);
    CHECK(out != NULL);
    for (int i = 0; i < THREADS; i++) {
        if (i == *(int *)argument) swap(out, LENGTH);
        pthread_barrier_wait(&turn);
    }
    free(out);
    return NULL;
}

/* However many threads read from a process, what they need of it is there once, and beyond the numbers that select(2) knows. */
/* FDSize of proc_pid_status(5). */
static int table_size(void) {
    char line[256];
    int size = 0;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "FDSize: %d", &size) == 1) break;
    fclose(status);
    return size;
}

static void threads(void) {
    pthread_t all[THREADS];
    CHECK(pthread_barrier_init(&turn, NULL, THREADS) == 0);
    int numbers[THREADS], questions = 0;
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&all[i], NULL, one_thread, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(all[i], NULL) == 0);
    for (int number = 0; number < FILES; number++) {
        char name[64], target[128], own[64];
        snprintf(name, sizeof name, "/proc/self/fd/%d", number);
        snprintf(own, sizeof own, "/proc/%d/maps", (int)getpid());
        ssize_t length = readlink(name, target, sizeof target - 1);
        if (length < 0) continue;
        target[length] = 0;
        if (strstr(target, "/maps") == NULL) continue;
        questions += strcmp(target, own) != 0;
        struct rlimit limit;
        CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
        /* The smallest table of descriptors has 64. */
        CHECK(number >= 32 || (rlim_t)number >= limit.rlim_cur / 2);
    }
    CHECK(questions <= 1);
    /* The table has not grown for them, which takes a process with threads many milliseconds. */
    CHECK(table_size() < 1024);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Messages that are not mapped in one piece at their receiver. */
static void over_the_ends(void) {
    /* Short enough to be read without its sender's help. */
    enum { WINDOWS = 3, SHORT = 60 * PAGE };
    const size_t window = 32u << 20, place = (30u << 20) - SHORT / 2;
    unsigned char *room = pages(NULL, (WINDOWS + 1) * window);
    unsigned char *first = room + (window - (uintptr_t)room % window) % window;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < WINDOWS; i++)
            for (int misplaced = 0; misplaced < 2; misplaced++)
                for (int times = 0; times < 2 * REPEATS; times++) swap_once(first + i * window + place + 16 * misplaced, SHORT);
    munmap(room, (WINDOWS + 1) * window);
}

/* What both sides of a fork see. */
static volatile struct {
    int is_armed, is_born, may_go;
} *fork_words;

/* Before the shim's handlers, which were registered later: the child has copied nothing yet. */
static void wait_in_child(void) {
    if (!fork_words->is_armed) return;
    fork_words->is_born = 1;
    while (!fork_words->may_go) usleep(100);
}

static unsigned char *gone;

/* Unmaps a buffer while its process forks, and sends others, so that its pages could be given back. */
static void *unmap_meanwhile(void *argument) {
    unsigned char *other = argument;
    while (!fork_words->is_born) usleep(100);
    CHECK(munmap(gone, LENGTH) == 0);
    for (int i = 0; i < 4; i++) swap_once(other, LENGTH);
    fork_words->may_go = 1;
    return NULL;
}

/* A child has what its parent had when it forked, whatever that does while the child is being made. */
static void reclaimed(void) {
    for (int round = 0; round < 3; round++) {
        unsigned char *other = pages(NULL, LENGTH);
        pthread_t thread;
        gone = pages(NULL, LENGTH);
        swap(gone, LENGTH);
        uint64_t before = seed + (uint64_t)check_rank;
        fork_words->is_born = fork_words->may_go = 0;
        CHECK(pthread_create(&thread, NULL, unmap_meanwhile, other) == 0);
        fflush(NULL);
        fork_words->is_armed = 1;
        pid_t child = fork();
        if (child == 0) {
            for (size_t i = 0; i < LENGTH; i++)
                if (gone[i] != check_byte(before, i)) _exit(9);
            _exit(7);
        }
        int ended = 0;
        CHECK(child > 0 && waitpid(child, &ended, 0) == child);
        fork_words->is_armed = 0;
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 7);
        swap(other, LENGTH);
        CHECK(munmap(other, LENGTH) == 0);
    }
}

int main(int argc, char **argv) {
    static const struct way ways[] = {
        {"looked_at", looked_at}, {"stranger", stranger}, {"child_alone", child_alone}, {"occupied", occupied}, {"descriptors", descriptors},
        {"space", space},         {"mappings", mappings}, {"threads", threads},
        {"reclaimed", reclaimed}, {"over_the_ends", over_the_ends}};
    int level;
    CHECK(argc > 1);
    if (strcmp(argv[1], "space") == 0) limit_space();
    if (strcmp(argv[1], "occupied") == 0 && is_first()) occupy();
    fork_words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK((void *)fork_words != MAP_FAILED && pthread_atfork(NULL, NULL, wait_in_child) == 0);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    CHECK(check_size == 2);
    in = malloc(LENGTH);
    CHECK(in != NULL);
    run_way(ways, sizeof ways / sizeof *ways, argv[1]);
    return check_finish();
}
