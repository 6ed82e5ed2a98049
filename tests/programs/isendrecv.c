/* MPI 4: Isendrecv, Isendrecv_replace, and partitioned communication. */
#include "check.h"

enum { ROUNDS = 30, PARTS = 4, PART = 5000 };

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    unsigned char *out = check_allocate(PARTS * PART), *in = check_allocate(PARTS * PART);
    int peer = check_rank ^ 1;
    MPI_Request parts;
    if (check_rank == 0)
        MPI_Psend_init(out, PARTS, PART, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &parts);
    else
        MPI_Precv_init(in, PARTS, PART, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &parts);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        int length = 100 + (int)round * 600;
        check_fill(out, PARTS * PART, round + (uint64_t)check_rank);
        MPI_Isendrecv(out, length, MPI_BYTE, peer, 1, in, length, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_equal(in, (size_t)length, round + (uint64_t)peer);
        MPI_Isendrecv_replace(in, length, MPI_BYTE, peer, 2, peer, 2, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_equal(in, (size_t)length, round + (uint64_t)check_rank);

        MPI_Start(&parts);
        if (check_rank == 0)
            for (int part = PARTS - 1; part >= 0; part--) MPI_Pready(part, parts);
        MPI_Wait(&parts, MPI_STATUS_IGNORE);
        if (check_rank == 1) check_equal(in, PARTS * PART, round);
    }
    MPI_Request_free(&parts);
    return check_finish();
}
