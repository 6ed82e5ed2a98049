/* What a program may ask of the system past the C library's own functions, and how little memory it may have: the receiver
   checks every byte. direct_system WAY [MEBIBYTES] */
#define _GNU_SOURCE
#include "direct_exchange.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static long mebibytes;

static void discarded(void) {
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char *out = pages(NULL, LENGTH);
        swap(out, LENGTH);
        uint64_t before = seed + (uint64_t)check_rank;
        CHECK(syscall(SYS_madvise, out + 3 * PAGE, (size_t)(9 * PAGE), MADV_DONTNEED) == 0);
        for (int i = 0; i < 9 * PAGE; i++) CHECK(out[3 * PAGE + i] == 0);
        CHECK(out[2 * PAGE] == check_byte(before, 2 * PAGE));
        CHECK(out[12 * PAGE] == check_byte(before, 12 * PAGE));
        check_fill(out, LENGTH, before);
        swap_as_is(out, LENGTH, seed);
        CHECK(syscall(SYS_madvise, out + 1, (size_t)PAGE, MADV_DONTNEED) == -1 && errno == EINVAL);
        out = (unsigned char *)syscall(SYS_mremap, out, (size_t)LENGTH, (size_t)(2 * LENGTH), MREMAP_MAYMOVE, NULL);
        CHECK(out != MAP_FAILED);
        check_equal(out, LENGTH, before);
        for (size_t i = LENGTH; i < 2 * LENGTH; i++) CHECK(out[i] == 0);
        munmap(out, 2 * LENGTH);
    }
}

/* Neither sees the other's stores. */
static void apart(unsigned char *out, long child, int go[2], int done[2]) {
    uint64_t before = seed + (uint64_t)check_rank;
    char token = 0;
    CHECK(child >= 0);
    if (child == 0) {
        if (read(go[0], &token, 1) != 1) _exit(8);
        for (size_t i = 0; i < LENGTH; i++)
            if (out[i] != check_byte(before, i)) _exit(9);
        memset(out, 0, LENGTH);
        if (write(done[1], &token, 1) != 1) _exit(8);
        _exit(7);
    }
    int status = 0;
    check_fill(out, LENGTH, 3);
    CHECK(write(go[1], &token, 1) == 1);
    CHECK(waitpid((pid_t)child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    check_equal(out, LENGTH, 3);
}

static void forked(void) {
    unsigned char *out = malloc(LENGTH);
    int go[2], done[2];
    CHECK(out != NULL && pipe(go) == 0 && pipe(done) == 0);
    fflush(NULL);
    for (int round = 0; round < ROUNDS; round++) {
        swap(out, LENGTH);
        apart(out, syscall(SYS_fork), go, done);
        swap(out, LENGTH);
        apart(out, syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL), go, done);
    }
    free(out);
}

static volatile sig_atomic_t forks, nested_forks, alarms;

/* Meanwhile the call that it has interrupted waits for its own child. */
static void alarmed(int number) {
    (void)number;
    alarms++;
    if (forks == 0) return;
    forks--, nested_forks++;
    int before = errno, status = 0;
    long child = syscall(SYS_fork);
    if (child == 0) _exit(3);
    if (child < 0 || waitpid((pid_t)child, &status, 0) != child || status != 3 << 8) _exit(72);
    errno = before;
}

/* Signals come while a process waits for its child's copy of a long buffer, and write to it as soon as the call returns. */
static void interrupted_by(int handler_forks) {
    size_t length = 48u << 20;
    unsigned char *out = pages(NULL, length);
    free(in);
    in = pages(NULL, length);
    swap(out, length);
    struct sigaction action = {.sa_handler = alarmed};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    fflush(NULL);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t before = seed + (uint64_t)check_rank;
        struct itimerval often = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};
        forks = handler_forks;
        CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
        long child = syscall(SYS_fork);
        if (child == 0) {
            for (size_t i = 0; i < length; i++)
                if (out[i] != check_byte(before, i)) _exit(9);
            _exit(7);
        }
        memset(out, 0, length);
        forks = 0;
        CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
        int status = 0;
        CHECK(child > 0 && waitpid((pid_t)child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        swap_once(out, length);
    }
    CHECK(alarms > 0 && (nested_forks > 0 || handler_forks == 0));
    munmap(out, length);
    in = malloc(2 * LENGTH);
}

static void interrupted(void) { interrupted_by(0); }

static void nested(void) { interrupted_by(2); }

/* Any other call by number comes through, with all its arguments. */
static void others(void) {
    unsigned char *out = malloc(LENGTH);
    swap(out, LENGTH);
    for (int round = 0; round < ROUNDS; round++) {
        int file = memfd_create("numbered", 0);
        CHECK(file >= 0 && ftruncate(file, 2 * PAGE) == 0);
        CHECK(syscall(SYS_gettid) == gettid());
        CHECK(syscall(SYS_pwrite64, file, "x", (size_t)1, (long)PAGE) == 1);
        unsigned char *map = (unsigned char *)syscall(SYS_mmap, NULL, (size_t)PAGE, PROT_READ, MAP_SHARED, file, (long)PAGE);
        CHECK(map != MAP_FAILED && map[0] == 'x');
        CHECK(syscall(SYS_munmap, map, (size_t)PAGE) == 0);
        CHECK(syscall(SYS_close, -1) == -1 && errno == EBADF);
        close(file);
        swap(out, LENGTH);
    }
    free(out);
}

static int put(const char *directory, const char *name, long long number) {
    char path[700], text[32];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int length = snprintf(text, sizeof text, "%lld", number);
    int file = open(path, O_WRONLY);
    int done = file >= 0 && write(file, text, (size_t)length) == length;
    if (file >= 0) close(file);
    return done;
}

/* The directory of this process's control group for memory, and the name of the file that limits one. */
static const char *find_group(char *directory, size_t room) {
    static char line[512];
    FILE *file = fopen("/proc/self/cgroup", "r");
    const char *name = NULL;
    while (file != NULL && name == NULL && fgets(line, sizeof line, file) != NULL) {
        char *path = strrchr(line, ':');
        if (path == NULL) continue;
        line[strcspn(line, "\n")] = 0;
        if (strstr(line, ":memory:") != NULL) {
            snprintf(directory, room, "/sys/fs/cgroup/memory%s", path + 1);
            name = "memory.limit_in_bytes";
        } else if (strncmp(line, "0::", 3) == 0 && access("/sys/fs/cgroup/cgroup.controllers", R_OK) == 0) {
            snprintf(directory, room, "/sys/fs/cgroup%s", path + 1);
            name = "memory.max";
        }
    }
    if (file != NULL) fclose(file);
    return name;
}

/* From now on this process gets so many mebibytes more, and is ended by the kernel if it takes more. */
static void small_group(void) {
    static char above[512], group[600];
    size_t length = 24u << 20;
    unsigned char *out = pages(NULL, length);
    free(in);
    in = pages(NULL, length);
    memset(out, 1, length), memset(in, 1, length);
    swap_once(out, LENGTH);
    const char *limit = find_group(above, sizeof above);
    snprintf(group, sizeof group, "%s/copytune-test-%d", above, (int)getpid());
    int can = limit != NULL && mkdir(group, 0700) == 0 && put(group, limit, (long long)mebibytes << 20) &&
              put(group, "cgroup.procs", getpid());
    int all = 0;
    MPI_Allreduce(&can, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all)
        for (int i = 0; i < REPEATS; i++) swap_once(out, length);
    else if (check_rank == 0)
        fprintf(stderr, "skipped: no control group can be made here (it takes root)\n");
    put(above, "cgroup.procs", getpid());
    rmdir(group);
    munmap(out, length);
}

/* Memory that is promoted but for its ends grows, by a length that ends within a page: whole pages move. */
static void widened(void) {
    enum { MISSING = 100 };
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char *place = pages(NULL, LENGTH);
        swap(place + PAGE, LENGTH - 2 * PAGE);
        check_fill(place, LENGTH, 7);
        unsigned char *wide = mremap(place, LENGTH - MISSING, 2 * LENGTH, MREMAP_MAYMOVE);
        CHECK(wide != MAP_FAILED);
        check_equal(wide, LENGTH, 7);
        swap(wide, 2 * LENGTH);
        CHECK(munmap(wide, 2 * LENGTH) == 0);
    }
}

int main(int argc, char **argv) {
    static const struct way ways[] = {
        {"discarded", discarded}, {"forked", forked}, {"others", others},
        {"interrupted", interrupted}, {"nested", nested}, {"small_group", small_group},
        {"widened", widened}};
    CHECK(argc > 1);
    if (argc > 2) mebibytes = strtol(argv[2], NULL, 10);
    check_init(&argc, &argv);
    CHECK(check_size == 2);
    in = malloc(2 * LENGTH);
    CHECK(in != NULL);
    run_way(ways, sizeof ways / sizeof *ways, argv[1]);
    return check_finish();
}
