/* Three messages of 64 KiB from rank 0 to each other rank and back, from one buffer of whole pages each. */
#include "check.h"

enum { BYTES = 65536, PAGE = 4096, MESSAGES = 3 };

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    unsigned char *out = NULL, *in = check_allocate(BYTES);
    CHECK(posix_memalign((void **)&out, PAGE, BYTES) == 0);
    for (int other = 1; other < check_size; other++) {
        if (check_rank != 0 && check_rank != other) continue;
        int peer = check_rank == 0 ? other : 0;
        for (uint64_t message = 0; message < MESSAGES; message++) {
            check_fill(out, BYTES, 2 * message + (check_rank == 0));
            if (check_rank == 0) MPI_Send(out, BYTES, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
            MPI_Recv(in, BYTES, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (check_rank != 0) MPI_Send(out, BYTES, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
            check_equal(in, BYTES, 2 * message + (check_rank != 0));
        }
    }
    free(in);
    free(out);
    return check_finish();
}
