/* The large-count variants of MPI 4: 64-bit counts through every kind of call. */
#include "check.h"

enum { LENGTH = 50000, ROUNDS = 25 };

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    unsigned char *out = check_allocate(LENGTH), *in = check_allocate(LENGTH);
    MPI_Count n = LENGTH, got;
    int peer = check_rank ^ 1;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request pair[2];
    MPI_Status status;
    MPI_Send_init_c(out, n, MPI_BYTE, peer, 4, world, &pair[0]);
    MPI_Recv_init_c(in, n, MPI_BYTE, peer, 4, world, &pair[1]);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t mine = round * 2 + (uint64_t)check_rank, other = round * 2 + (uint64_t)peer;
        MPI_Request request;
        check_fill(out, LENGTH, mine);
        if (check_rank == 0) {
            MPI_Send_c(out, n, MPI_BYTE, peer, 1, world);
            MPI_Recv_c(in, n, MPI_BYTE, peer, 1, world, &status);
        } else {
            MPI_Recv_c(in, n, MPI_BYTE, peer, 1, world, &status);
            MPI_Ssend_c(out, n, MPI_BYTE, peer, 1, world);
        }
        MPI_Get_count_c(&status, MPI_BYTE, &got);
        CHECK(got == n);
        check_equal(in, LENGTH, other);
        MPI_Irecv_c(in, n, MPI_BYTE, peer, 2, world, &request);
        MPI_Request send;
        MPI_Isend_c(out, n, MPI_BYTE, peer, 2, world, &send);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        check_equal(in, LENGTH, other);
        memset(in, 0, LENGTH);
        MPI_Sendrecv_c(out, n, MPI_BYTE, peer, 3, in, n, MPI_BYTE, peer, 3, world, MPI_STATUS_IGNORE);
        check_equal(in, LENGTH, other);
        MPI_Sendrecv_replace_c(in, n, MPI_BYTE, peer, 3, peer, 3, world, MPI_STATUS_IGNORE);
        check_equal(in, LENGTH, mine);
        MPI_Startall(2, pair);
        MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
        check_equal(in, LENGTH, other);
        MPI_Message message;
        MPI_Isend_c(out, n, MPI_BYTE, peer, 5, world, &send);
        MPI_Mprobe(peer, 5, world, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv_c(in, n, MPI_BYTE, &message, MPI_STATUS_IGNORE);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        check_equal(in, LENGTH, other);
        MPI_Bcast_c(in, n, MPI_BYTE, 1, world);
        check_take(in, LENGTH);
        MPI_Allreduce_c(out, in, n / 4, MPI_INT, MPI_BXOR, world);
        check_take(in, LENGTH);
        MPI_Ibcast_c(in, n, MPI_BYTE, 0, world, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_take(in, LENGTH);
    }
    MPI_Request_free(&pair[0]);
    MPI_Request_free(&pair[1]);
    return check_finish();
}
