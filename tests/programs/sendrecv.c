/* Sendrecv and Sendrecv_replace round a ring, with ANY_SOURCE, with PROC_NULL at the ends. */
#include "check.h"

enum { ROUNDS = 25 };

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    unsigned char *out = check_allocate(CHECK_LONGEST), *in = check_allocate(CHECK_LONGEST);
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < CHECK_LENGTHS; i++) {
            size_t length = check_lengths[i], shift = round % 17;
            uint64_t seed = round * 1000 + i * 16;
            MPI_Status status;
            check_fill(out + shift, length, seed + (uint64_t)check_rank);
            MPI_Sendrecv(out + shift, (int)length, MPI_BYTE, right, 4, in, CHECK_LONGEST, MPI_BYTE,
                         MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            check_status(&status, left, 4, (int)length);
            check_equal(in, length, seed + (uint64_t)left);

            MPI_Sendrecv_replace(in, (int)length, MPI_BYTE, right, 5, left, 5, MPI_COMM_WORLD,
                                 MPI_STATUS_IGNORE);
            int before = (left + check_size - 1) % check_size;
            check_equal(in, length, seed + (uint64_t)before);
        }
        /* An open chain: the ends talk to nobody. */
        int up = check_rank + 1 < check_size ? check_rank + 1 : MPI_PROC_NULL;
        int down = check_rank > 0 ? check_rank - 1 : MPI_PROC_NULL;
        check_fill(out, 5000, round + (uint64_t)check_rank);
        check_fill(in, 5000, 1);
        MPI_Sendrecv(out, 5000, MPI_BYTE, up, 6, in, 5000, MPI_BYTE, down, 6, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        check_equal(in, 5000, down == MPI_PROC_NULL ? 1 : round + (uint64_t)down);
    }
    return check_finish();
}
