/* repeated ROUNDS BYTES: a ping-pong from the same buffers again and again. Each round changes three places of the
   message, and the last one's is looked at as a whole. */
#include "check.h"

static size_t length;

static void stamp(unsigned char *data, uint64_t round) {
    for (int third = 0; third < 3; third++)
        data[third * (length - 1) / 2] = (unsigned char)(round * 7 + (uint64_t)third);
}

static void expect(const unsigned char *data, uint64_t round) {
    for (int third = 0; third < 3; third++)
        CHECK(data[third * (length - 1) / 2] == (unsigned char)(round * 7 + (uint64_t)third));
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    int rounds = atoi(argv[1]), bytes = atoi(argv[2]);
    length = (size_t)bytes;
    check_init(&argc, &argv);
    unsigned char *out = check_allocate(length), *in = check_allocate(length), *same = check_allocate(length);
    check_fill(out, length, 5);
    check_fill(same, length, 5);
    for (int round = 0; round < rounds; round++) {
        stamp(out, (uint64_t)(2 * round + check_rank));
        if (check_rank == 0)
            MPI_Send(out, bytes, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_BYTE, 1 - check_rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (check_rank == 1)
            MPI_Send(out, bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
        expect(in, (uint64_t)(2 * round + 1 - check_rank));
    }
    stamp(same, (uint64_t)(2 * (rounds - 1) + 1 - check_rank));
    CHECK(memcmp(in, same, length) == 0);
    check_take(in, length);
    free(out);
    free(in);
    free(same);
    return check_finish();
}
