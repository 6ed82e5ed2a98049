/* Messages of so many buffers that each is sent too seldom to be promoted, then of one that is sent often: direct_passing BYTES.
   Every byte is checked. */
#define _GNU_SOURCE
#include "direct_exchange.h"

enum { BUFFERS = 4096, WINDOW = 64, TURNS = 2, OFTEN = 512 };

/* Rank 0 sends windows of `bytes` bytes from `buffers` buffers in turn. */
static void send_windows(unsigned char *memory, int buffers, int windows, int bytes) {
    MPI_Request requests[WINDOW];
    for (int first = 0; first < windows * WINDOW; first += WINDOW) {
        for (int k = 0; k < WINDOW; k++) {
            unsigned char *buffer = memory + (size_t)((first + k) % buffers) * (size_t)bytes;
            uint64_t expected = (uint64_t)(first + k) + 7;
            if (check_rank == 0) {
                /* Of one buffer all messages of a window are the same. */
                if (buffers > 1 || k == 0) check_fill(buffer, (size_t)bytes, expected);
                MPI_Isend(buffer, bytes, MPI_BYTE, 1, k, MPI_COMM_WORLD, requests + k);
            } else {
                unsigned char *into = in + (size_t)k * (size_t)bytes;
                memset(into, 0x5a, (size_t)bytes);
                MPI_Irecv(into, bytes, MPI_BYTE, 0, k, MPI_COMM_WORLD, requests + k);
            }
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        for (int k = 0; check_rank == 1 && k < WINDOW; k++) {
            int filled = buffers > 1 ? k : 0;
            check_equal(in + (size_t)k * (size_t)bytes, (size_t)bytes, (uint64_t)(first + filled) + 7);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    check_init(&argc, &argv);
    CHECK(check_size == 2);
    int bytes = atoi(argv[1]);
    unsigned char *memory = pages(NULL, (size_t)BUFFERS * (size_t)bytes);
    in = pages(NULL, (size_t)WINDOW * (size_t)bytes);
    send_windows(memory, BUFFERS, TURNS * BUFFERS / WINDOW, bytes);
    send_windows(memory, 1, OFTEN / WINDOW, bytes);
    return check_finish();
}
