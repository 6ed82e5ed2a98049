/* Cancelled receives and requests freed while active: their buffers are the program's again. */
#include "check.h"

enum { LENGTH = 20000, ROUNDS = 30 };

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    unsigned char *out = check_allocate(LENGTH), *in = check_allocate(LENGTH), *old = check_allocate(LENGTH);
    int peer = check_rank ^ 1;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        MPI_Status status;
        int cancelled = 0;
        check_fill(old, LENGTH, 1);
        MPI_Irecv(old, LENGTH, MPI_BYTE, peer, 99, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled);

        /* The same memory is now used for the program's own copies and for another message. */
        memcpy(in, old, LENGTH);
        check_equal(in, LENGTH, 1);
        check_fill(out, LENGTH, round + (uint64_t)check_rank);
        MPI_Sendrecv(out, LENGTH, MPI_BYTE, peer, 1, old, LENGTH, MPI_BYTE, peer, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        check_equal(old, LENGTH, round + (uint64_t)peer);

        /* A send whose request is freed before it is over; the answer tells that it arrived. */
        if (check_rank == 0) {
            MPI_Isend(out, LENGTH, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
            CHECK(request == MPI_REQUEST_NULL);
            MPI_Recv(in, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (check_rank == 1) {
            MPI_Recv(in, LENGTH, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_equal(in, LENGTH, round);
            MPI_Send(out, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
        }
        /* A receive freed while active, into memory that is given back after the message came. */
        unsigned char *brief = check_allocate(LENGTH);
        if (check_rank == 0) {
            MPI_Irecv(brief, LENGTH, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (check_rank == 1) {
            check_fill(brief, LENGTH, round + 5);
            MPI_Ssend(brief, LENGTH, MPI_BYTE, 0, 4, MPI_COMM_WORLD);
            MPI_Send(brief, 1, MPI_BYTE, 0, 5, MPI_COMM_WORLD);
        } else if (check_rank == 0) {
            MPI_Recv(in, 1, MPI_BYTE, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_equal(brief, LENGTH, round + 5);
        }
        free(brief);
    }
    return check_finish();
}
