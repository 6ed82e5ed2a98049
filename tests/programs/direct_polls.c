/* direct_polls POLLS: rank 0 begins to send a message that a notice holds whole and that is too short to be promoted, makes so many tests of another request that find nothing,
   and lets rank 1 receive only then. */
#include "check.h"

enum { BYTES = 6000, ROUNDS = 60, MESSAGE = 1, GO = 2, LATER = 3 };

int main(int argc, char **argv) {
    static unsigned char data[BYTES];
    CHECK(argc == 2);
    int polls = atoi(argv[1]);
    check_init(&argc, &argv);
    if (check_rank == 0) {
        MPI_Request later, request;
        MPI_Irecv(NULL, 0, MPI_BYTE, 1, LATER, MPI_COMM_WORLD, &later);
        for (int round = 0; round < ROUNDS; round++) {
            check_fill(data, BYTES, (uint64_t)round);
            MPI_Isend(data, BYTES, MPI_BYTE, 1, MESSAGE, MPI_COMM_WORLD, &request);
            for (int i = 0; i < polls; i++) {
                int over;
                MPI_Test(&later, &over, MPI_STATUS_IGNORE);
                CHECK(!over);
            }
            MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Wait(&later, MPI_STATUS_IGNORE);
    } else {
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(data, BYTES, MPI_BYTE, 0, MESSAGE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_equal(data, BYTES, (uint64_t)round);
        }
        MPI_Send(NULL, 0, MPI_BYTE, 0, LATER, MPI_COMM_WORLD);
    }
    return check_finish();
}
