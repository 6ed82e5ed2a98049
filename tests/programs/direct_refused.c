/* Direct copies where the system refuses something: direct_refused WAY WHEN, where WHEN is `early` (before MPI_Init) or
   `late` (after messages were read directly). `direct_refused WAY can` ends with 0 if it can be refused here, else 77. What the
   program does with its memory afterwards, and with processes, is what it is without the shim. */
#define _GNU_SOURCE
#include "direct_exchange.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIP = 77 };
#define PROCMAP_QUERY 0xc0686611u
#define POPULATE_WRITE 23

/* False: that cannot be done here. */
typedef int refusal(void);

/* From now on the system call fails; if `request` is not 0, only with that argument at that place, from 0 on. */
static int refuse_at(unsigned place, unsigned number, unsigned request, unsigned error) {
    /* Any number is at least 0. */
    unsigned short matches = BPF_JMP | (request ? BPF_JEQ : BPF_JGE) | BPF_K;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * place),
        BPF_JUMP(matches, request, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int refuse(unsigned number, unsigned request, unsigned error) { return refuse_at(1, number, request, error); }

static int no_query(void) { return refuse(SYS_ioctl, PROCMAP_QUERY, EPERM); }
static int no_memfd(void) { return refuse(SYS_memfd_create, 0, EPERM); }
/* As where memory is exhausted, and as before Linux 5.14. */
static int no_room(void) { return refuse_at(2, SYS_madvise, POPULATE_WRITE, ENOMEM); }
static int no_populate(void) { return refuse_at(2, SYS_madvise, POPULATE_WRITE, EINVAL); }
static int no_handover(void) { return refuse(SYS_pidfd_getfd, 0, EPERM); }
static int no_read(void) { return refuse(SYS_process_vm_readv, 0, EPERM); }
static int no_exchange(void) { return refuse(SYS_mremap, 0, ENOMEM); }

/* An empty /proc. */
static int no_proc(void) {
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/proc", "tmpfs", 0, NULL) == 0;
}

/* Nobody may look into this process: it is not dumpable, and no capability helps. */
static int no_trace(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) != 0) return 0;
    data[0].effective &= ~(1u << CAP_SYS_PTRACE);
    data[0].permitted &= ~(1u << CAP_SYS_PTRACE);
    return syscall(SYS_capset, &header, data) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
}

/* Address space for what the library and the C library's heaps take (64 MiB for each thread), and none to spare. */
static int no_space(void) {
    unsigned long used = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu", &used) != 1) return 0;
    fclose(file);
    struct rlimit limit = {used * PAGE + (512u << 20), used * PAGE + (512u << 20)};
    return setrlimit(RLIMIT_AS, &limit) == 0;
}

/* No further descriptor. */
static int no_files(void) {
    int next = dup(0);
    struct rlimit limit = {(rlim_t)next, (rlim_t)next};
    return next >= 0 && close(next) == 0 && setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static const struct {
    const char *name;
    refusal *refuse;
} ways[] = {{"query", no_query}, {"memfd", no_memfd}, {"room", no_room},   {"read", no_read},  {"exchange", no_exchange},
            {"proc", no_proc},   {"trace", no_trace}, {"space", no_space}, {"files", no_files},
            {"populate", no_populate}, {"handover", no_handover}};

/* A child has what was there when it was made, and neither sees the other's stores. (A pipe would take descriptors.) */
static void branch(unsigned char *out) {
    volatile int *go = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(go != MAP_FAILED);
    swap(out, LENGTH);
    uint64_t before = seed + (uint64_t)check_rank;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        while (!*go) usleep(100);
        for (size_t i = 0; i < LENGTH; i++)
            if (out[i] != check_byte(before, i)) _exit(9);
        memset(out, 0, LENGTH);
        _exit(7);
    }
    CHECK(child > 0);
    check_fill(out, LENGTH, before + 100);
    *go = 1;
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    check_equal(out, LENGTH, before + 100);
    munmap((void *)go, PAGE);
}

/* Pages that are discarded hold zeroes, also those that a buffer gets in addition. */
static void discard(unsigned char *out) {
    swap(out, LENGTH);
    CHECK(madvise(out + 3 * PAGE, 9 * PAGE, MADV_DONTNEED) == 0);
    for (size_t i = 0; i < 9 * PAGE; i++) CHECK(out[3 * PAGE + i] == 0);
    swap(out, LENGTH);
}

/* A buffer that grows keeps what it holds, and has zeroes behind. Where that is refused nothing changes. */
static void grow(void) {
    unsigned char *out = pages(NULL, LENGTH), *beside = pages(NULL, LENGTH);
    swap(out, LENGTH);
    swap(beside, LENGTH);
    swap(out, LENGTH);
    unsigned char *more = mremap(out, LENGTH, 2 * LENGTH, MREMAP_MAYMOVE);
    if (more != MAP_FAILED) {
        check_equal(more, LENGTH, seed + (uint64_t)check_rank);
        for (size_t i = LENGTH; i < 2 * LENGTH; i++) CHECK(more[i] == 0);
        out = more;
    }
    swap(beside, LENGTH);
    swap(out, LENGTH);
    munmap(out, more == MAP_FAILED ? LENGTH : 2 * LENGTH);
    munmap(beside, LENGTH);
}

int main(int argc, char **argv) {
    refusal *way = NULL;
    CHECK(argc == 3);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, argv[1]) == 0) way = ways[i].refuse;
    CHECK(way != NULL);
    int late = strcmp(argv[2], "late") == 0;
    if (strcmp(argv[2], "can") == 0) return way() ? 0 : SKIP;
    if (!late) CHECK(way());
    check_init(&argc, &argv);
    CHECK(check_size == 2);
    in = malloc(LENGTH);
    unsigned char *mapped = pages(NULL, LENGTH), *allocated = malloc(LENGTH);
    CHECK(in != NULL && allocated != NULL);
    if (late) {
        swap(mapped, LENGTH);
        swap(allocated, LENGTH);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK(way());
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int round = 0; round < ROUNDS; round++) {
        swap(mapped, LENGTH);
        swap(allocated, LENGTH - 100 * (size_t)round);
        if (round % 2) {
            CHECK(munmap(mapped, LENGTH) == 0);
            mapped = pages(NULL, LENGTH);
        }
    }
    branch(mapped);
    discard(mapped);
    grow();
    free(allocated);
    return check_finish();
}
