/* Ways for a process to live and end. The first argument names the way; messages are exchanged first. */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <unistd.h>

enum { LENGTH = 20000, ROUNDS = 60 };

static unsigned char *out, *in;

static void work(void) {
    for (uint64_t round = 0; round < ROUNDS; round++) {
        int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
        check_fill(out, LENGTH, round + (uint64_t)check_rank);
        MPI_Sendrecv(out, LENGTH, MPI_BYTE, right, 1, in, LENGTH, MPI_BYTE, left, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        check_equal(in, LENGTH, round + (uint64_t)left);
    }
}

static void own_copies(void) {
    for (uint64_t round = 0; round < ROUNDS; round++) {
        check_fill(out, LENGTH, round);
        memcpy(in, out, LENGTH);
        check_equal(in, LENGTH, round);
    }
}

/* Runs at exit, when the MPI library may be gone. */
static void last_copies(void) {
    own_copies();
    if (check_rank == 0) printf("at exit: %016llx\n", (unsigned long long)check_sum);
    fflush(stdout);
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    const char *way = argv[1];
    int yes = 1;
    out = check_allocate(LENGTH);
    in = check_allocate(LENGTH);
    if (strcmp(way, "never_init") == 0) {
        MPI_Initialized(&yes);
        CHECK(!yes);
        MPI_Finalized(&yes);
        CHECK(!yes);
        char version[MPI_MAX_LIBRARY_VERSION_STRING];
        MPI_Get_library_version(version, &yes);
        own_copies();
        printf("%016llx\n", (unsigned long long)check_sum);
        return 0;
    }
    check_init(&argc, &argv);
    work();
    check_print();
    MPI_Barrier(MPI_COMM_WORLD); /* the checksums are out before any rank ends */
    if (strcmp(way, "return") == 0) return 0;
    if (strcmp(way, "exit") == 0) exit(0);
    if (strcmp(way, "quick_exit") == 0) _exit(0);
    if (strcmp(way, "abort") == 0 && check_rank == check_size - 1) abort();
    if (strcmp(way, "kill") == 0 && check_rank == check_size - 1) kill(getpid(), SIGKILL);
    if (strcmp(way, "terminate") == 0 && check_rank == check_size - 1) kill(getpid(), SIGTERM);
    if (strcmp(way, "mpi_abort") == 0 && check_rank == check_size - 1) MPI_Abort(MPI_COMM_WORLD, 3);
    if (strcmp(way, "segv") == 0 && check_rank == check_size - 1) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    if (strcmp(way, "late") == 0) {
        own_copies();
        for (int i = 0; i < 20; i++) work();
        check_print();
    }
    if (strcmp(way, "at_exit") == 0) atexit(last_copies);
    MPI_Pcontrol(1);
    MPI_Pcontrol(2, out, 7);
    double begin = MPI_Wtime();
    CHECK(MPI_Wtime() >= begin && MPI_Wtick() > 0.0 && MPI_Wtick() < 1.0);
    MPI_Finalize();
    own_copies();
    MPI_Finalized(&yes);
    CHECK(yes);
    if (check_rank == 0) printf("after the end: %016llx\n", (unsigned long long)check_sum);
    if (strcmp(way, "exec") == 0) {
        fflush(stdout);
        execlp("echo", "echo", "another program", (char *)NULL);
        return 1;
    }
    return 0;
}
