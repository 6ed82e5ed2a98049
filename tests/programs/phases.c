/* phases SHORT LONG HOW: rank 0 sends SHORT messages of 1 KiB, which no library has the kernel copy, then LONG ones of 64 KiB, which
   both do. It receives none and rank 1 sends none: who sends learns from nothing else that its buffer is wanted, who
   receives from nothing else that there is something to choose. HOW is send, or sendrecv, whose arguments do not fit into
   registers. */
#include "check.h"

enum { SHORT = 1024, LONG = 65536, TAG = 3 };

static int is_combined;

static void phase(unsigned char *data, int bytes, int rounds) {
    for (int round = 0; round < rounds; round++) {
        if (check_rank == 0) {
            data[round % bytes] = (unsigned char)round;
            if (is_combined)
                MPI_Sendrecv(data, bytes, MPI_BYTE, 1, TAG, NULL, 0, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
            else
                MPI_Send(data, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        } else {
            MPI_Recv(data, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(data[round % bytes] == (unsigned char)round);
        }
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    is_combined = strcmp(argv[3], "sendrecv") == 0;
    check_init(&argc, &argv);
    unsigned char *data = check_allocate(LONG);
    check_fill(data, LONG, 1);
    phase(data, SHORT, atoi(argv[1]));
    phase(data, LONG, atoi(argv[2]));
    check_take(data, LONG);
    free(data);
    return check_finish();
}
