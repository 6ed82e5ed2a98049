/* A timer's signal handler copies memory while messages are copied. */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/time.h>

enum { LENGTH = 60000, ROUNDS = 400, OWN = 3000 };

static unsigned char from[OWN];
static volatile sig_atomic_t ticks, wrong;

static void tick(int number) {
    unsigned char to[OWN + 1]; /* the handler may run in several threads at once */
    (void)number;
    memset(to, 0, sizeof to);
    memcpy(to, from, OWN);
    memmove(to + 1, to, OWN);
    for (size_t i = 0; i < OWN; i++)
        if (to[i + 1] != check_byte(8, i)) wrong = 1;
    ticks++;
}

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    unsigned char *out = check_allocate(LENGTH), *in = check_allocate(LENGTH);
    int peer = check_rank ^ 1;
    check_fill(from, OWN, 8);
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 700}, {0, 700}}, off = {{0, 0}, {0, 0}};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        int length = (int)(round * 151 % LENGTH);
        check_fill(out, (size_t)length, round + (uint64_t)check_rank);
        MPI_Sendrecv(out, length, MPI_BYTE, peer, 1, in, length, MPI_BYTE, peer, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        check_equal(in, (size_t)length, round + (uint64_t)peer);
    }
    CHECK(setitimer(ITIMER_REAL, &off, NULL) == 0);
    CHECK(ticks > 0 && !wrong);
    return check_finish();
}
