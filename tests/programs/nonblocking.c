/* Nonblocking sends in every mode; receives that complete in another order than they were posted, or
 * inside another call; a window of many messages in flight. */
#include "check.h"

enum { ROUNDS = 12, WINDOW = 8 };

typedef int isend_function(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    isend_function *const sends[] = {MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Irsend};
    /* Open MPI gives room back late: enough for several windows. */
    int room = 8 * WINDOW * (70001 + MPI_BSEND_OVERHEAD) + 65536;
    void *attached = malloc((size_t)room);
    MPI_Buffer_attach(attached, room);
    unsigned char *out[WINDOW], *in[WINDOW];
    for (int w = 0; w < WINDOW; w++) {
        out[w] = check_allocate(70001);
        in[w] = check_allocate(70001);
    }
    int peer = check_rank ^ 1;

    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (int mode = 0; mode < 4; mode++) {
            for (size_t i = 0; i < CHECK_LENGTHS && check_lengths[i] <= 70001; i++) {
                MPI_Request requests[2 * WINDOW];
                MPI_Status statuses[2 * WINDOW];
                int length = (int)check_lengths[i];
                uint64_t seed = round * 100 + i;
                for (int w = 0; w < WINDOW; w++)
                    MPI_Irecv(in[w] + w, length, MPI_BYTE, peer, w, MPI_COMM_WORLD, &requests[w]);
                /* Ready mode needs the receives to be posted on the other side. */
                if (mode == 3) MPI_Barrier(MPI_COMM_WORLD);
                for (int k = 0; k < WINDOW; k++) {
                    int w = (k * 5 + (int)round) % WINDOW;
                    check_fill(out[w] + 3, (size_t)length, seed + (uint64_t)(w * 10 + check_rank));
                    sends[mode](out[w] + 3, length, MPI_BYTE, peer, w, MPI_COMM_WORLD, &requests[WINDOW + w]);
                }
                MPI_Waitall(2 * WINDOW, requests, statuses);
                for (int w = 0; w < WINDOW; w++) {
                    check_status(&statuses[w], peer, w, length);
                    check_equal(in[w] + w, (size_t)length, seed + (uint64_t)(w * 10 + peer));
                    CHECK(requests[w] == MPI_REQUEST_NULL && requests[WINDOW + w] == MPI_REQUEST_NULL);
                }
            }
        }
        /* The Recv of tag 2 makes the library fill the Irecv of tag 1. */
        MPI_Request early;
        if (check_rank == 0) {
            MPI_Irecv(in[0], 20000, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &early);
            MPI_Recv(in[1], 20000, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Wait(&early, MPI_STATUS_IGNORE);
            check_equal(in[0], 20000, round);
            check_equal(in[1], 20000, round + 1);
        } else if (check_rank == 1) {
            check_fill(out[0], 20000, round);
            check_fill(out[1], 20000, round + 1);
            MPI_Isend(out[0], 20000, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &early);
            MPI_Send(out[1], 20000, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
            MPI_Wait(&early, MPI_STATUS_IGNORE);
        }
        /* Overlapping windows of one buffer: neighbours that differ by one byte. */
        MPI_Request parts[3];
        if (check_rank == 0) {
            for (int p = 0; p < 3; p++)
                MPI_Irecv(in[2] + p * 1001, 1001, MPI_BYTE, 1, 20 + p, MPI_COMM_WORLD, &parts[p]);
            MPI_Waitall(3, parts, MPI_STATUSES_IGNORE);
            check_equal(in[2], 3003, round + 9);
        } else if (check_rank == 1) {
            check_fill(out[2], 3003, round + 9);
            for (int p = 2; p >= 0; p--)
                MPI_Isend(out[2] + p * 1001, 1001, MPI_BYTE, 0, 20 + p, MPI_COMM_WORLD, &parts[p]);
            MPI_Waitall(3, parts, MPI_STATUSES_IGNORE);
        }
    }
    void *detached;
    int size;
    MPI_Buffer_detach(&detached, &size);
    return check_finish();
}
