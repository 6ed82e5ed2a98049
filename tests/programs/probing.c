/* Probe, Iprobe, and matched receives: Mprobe, Improbe, Mrecv, Imrecv. */
#include "check.h"

enum { ROUNDS = 15 };

static unsigned char *data;

static void receive(int way, int length, uint64_t seed) {
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    int flag = 0;
    switch (way) {
    case 0:
        MPI_Probe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        check_status(&status, 1, 3, length);
        MPI_Recv(data, length, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        break;
    case 1:
        while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &flag, &status);
        check_status(&status, 1, 3, length);
        MPI_Recv(data, length, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &status);
        break;
    case 2:
        MPI_Mprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &message, &status);
        check_status(&status, 1, 3, length);
        MPI_Mrecv(data, length, MPI_BYTE, &message, &status);
        CHECK(message == MPI_MESSAGE_NULL);
        check_status(&status, 1, 3, length);
        break;
    case 3:
        while (!flag) MPI_Improbe(1, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
        MPI_Imrecv(data, length, MPI_BYTE, &message, &request);
        MPI_Wait(&request, &status);
        check_status(&status, 1, 3, length);
        break;
    default:
        while (!flag) MPI_Iprobe(1, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Mprobe(1, 3, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(data, length, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    }
    check_equal(data, (size_t)length, seed);
}

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    data = check_allocate(CHECK_LONGEST);
    for (uint64_t round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < CHECK_LENGTHS; i++)
            for (int way = 0; way < 5; way++) {
                int length = (int)check_lengths[i];
                uint64_t seed = round * 200 + i * 5 + (uint64_t)way;
                if (check_rank == 0) {
                    receive(way, length, seed);
                } else if (check_rank == 1) {
                    check_fill(data, (size_t)length, seed);
                    MPI_Send(data, length, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
                }
            }
    /* The message of nobody. */
    MPI_Message message;
    MPI_Status status;
    MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &status);
    CHECK(message == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL);
    MPI_Mrecv(data, 10, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    CHECK(message == MPI_MESSAGE_NULL);
    return check_finish();
}
