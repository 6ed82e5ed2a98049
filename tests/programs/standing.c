/* standing WAY ROUNDS: messages of 16 KiB there and back, all of one length, so that a copy's length and the code that makes it tell the
   call site; every byte is checked. WAY is
   one     one call site for sends, one for receives;
   own     the same, and the program copies as many bytes itself, several times a round;
   both    by turns with sends and receives at other call sites;
   window  nonblocking ones, in flight at most calls. */
#include "check.h"

enum { BYTES = 16384, TAG = 3, OWN = 16 };

static unsigned char *out, *in, *own;
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;

static void pass(int sends) {
    if (sends)
        MPI_Send(out, BYTES, MPI_BYTE, 1 - check_rank, TAG, MPI_COMM_WORLD);
    else
        MPI_Recv(in, BYTES, MPI_BYTE, 1 - check_rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void pass_elsewhere(int sends) {
    if (sends)
        MPI_Send(out, BYTES, MPI_BYTE, 1 - check_rank, TAG, MPI_COMM_WORLD);
    else
        MPI_Recv(in, BYTES, MPI_BYTE, 1 - check_rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* A receive is in flight at every call but the last one of a round. */
static void pass_both_ways(void) {
    MPI_Request requests[2];
    MPI_Irecv(in, BYTES, MPI_BYTE, 1 - check_rank, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, BYTES, MPI_BYTE, 1 - check_rank, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    int is_own = strcmp(argv[1], "own") == 0, has_both = strcmp(argv[1], "both") == 0;
    int is_window = strcmp(argv[1], "window") == 0;
    int rounds = atoi(argv[2]);
    check_init(&argc, &argv);
    out = check_allocate(BYTES);
    in = check_allocate(BYTES);
    own = check_allocate(BYTES);
    for (int round = 0; round < rounds; round++) {
        uint64_t seed = 2 * (uint64_t)round;
        check_fill(out, BYTES, seed + (uint64_t)check_rank);
        memset(in, 0x5a, BYTES);
        if (is_window)
            pass_both_ways();
        else
            for (int turn = 0; turn < 2; turn++) {
                int sends = check_rank == turn;
                if (has_both && round % 2)
                    pass_elsewhere(sends);
                else
                    pass(sends);
            }
        check_equal(in, BYTES, seed + (uint64_t)(1 - check_rank));
        for (int i = 0; is_own && i < OWN; i++) copy(own, in, BYTES);
        if (is_own) check_equal(own, BYTES, seed + (uint64_t)(1 - check_rank));
    }
    free(out);
    free(in);
    free(own);
    return check_finish();
}
