/* Persistent requests in every mode, started alone and together, freed, and their handles reused. */
#include "check.h"

enum { LENGTH = 9001, ROUNDS = 40, MODES = 3 };

typedef int init_function(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    init_function *const inits[] = {MPI_Send_init, MPI_Ssend_init, MPI_Rsend_init};
    int room = 4 * (LENGTH + MPI_BSEND_OVERHEAD) + 65536;
    void *attached = malloc((size_t)room);
    MPI_Buffer_attach(attached, room);
    unsigned char *out[MODES], *in[MODES];
    for (int m = 0; m < MODES; m++) {
        out[m] = check_allocate(LENGTH);
        in[m] = check_allocate(LENGTH);
    }
    int peer = check_rank ^ 1;

    for (int generation = 0; generation < 3; generation++) {
        MPI_Request sends[MODES], receives[MODES];
        MPI_Status statuses[MODES];
        for (int m = 0; m < MODES; m++) {
            inits[m](out[m] + m, LENGTH, MPI_BYTE, peer, m, MPI_COMM_WORLD, &sends[m]);
            MPI_Recv_init(in[m] + 1, LENGTH, MPI_BYTE, peer, m, MPI_COMM_WORLD, &receives[m]);
        }
        for (uint64_t round = 0; round < ROUNDS; round++) {
            for (int m = 0; m < MODES; m++)
                check_fill(out[m] + m, LENGTH, round * 10 + (uint64_t)(m * 2 + check_rank));
            MPI_Startall(MODES, receives);
            MPI_Barrier(MPI_COMM_WORLD); /* for the ready mode */
            for (int m = 0; m < MODES; m++) MPI_Start(&sends[m]);
            MPI_Waitall(MODES, sends, MPI_STATUSES_IGNORE);
            if (round % 2) {
                MPI_Waitall(MODES, receives, statuses);
            } else {
                for (int m = 0; m < MODES; m++) MPI_Wait(&receives[m], &statuses[m]);
            }
            for (int m = 0; m < MODES; m++) {
                CHECK(sends[m] != MPI_REQUEST_NULL && receives[m] != MPI_REQUEST_NULL);
                check_status(&statuses[m], peer, m, LENGTH);
                check_equal(in[m] + 1, LENGTH, round * 10 + (uint64_t)(m * 2 + peer));
            }
        }
        for (int m = 0; m < MODES; m++) {
            MPI_Request_free(&sends[m]);
            MPI_Request_free(&receives[m]);
            CHECK(sends[m] == MPI_REQUEST_NULL);
        }
        /* A buffered one is started once: Open MPI 4.1 sends rubbish at its second start. */
        MPI_Request buffered;
        check_fill(out[0], LENGTH, (uint64_t)(check_rank + 7));
        MPI_Bsend_init(out[0], LENGTH, MPI_BYTE, peer, 40, MPI_COMM_WORLD, &buffered);
        MPI_Start(&buffered);
        MPI_Recv(in[0], LENGTH, MPI_BYTE, peer, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&buffered, MPI_STATUS_IGNORE);
        MPI_Request_free(&buffered);
        check_equal(in[0], LENGTH, (uint64_t)(peer + 7));
        /* The handles and the addresses now belong to ordinary requests of another length. */
        MPI_Request request;
        check_fill(out[0], 100, (uint64_t)check_rank);
        MPI_Isend(out[0], 100, MPI_BYTE, peer, 50, MPI_COMM_WORLD, &request);
        MPI_Recv(in[0], 100, MPI_BYTE, peer, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_equal(in[0], 100, (uint64_t)peer);
    }
    void *detached;
    int size;
    MPI_Buffer_detach(&detached, &size);
    return check_finish();
}
