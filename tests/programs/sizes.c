/* sizes ROUNDS: exchanges between two processes, one size after the other, by one loop whose calls have one place each. The
   sizes share their MPI_Wait, which has none. The longest comes first: what is promoted for it can be read directly in all sizes. */
#include "check.h"

static const size_t sizes[] = {65536, 32768, 16384};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

int main(int argc, char **argv) {
    CHECK(argc == 2);
    int rounds = atoi(argv[1]);
    check_init(&argc, &argv);
    size_t longest = sizes[0];
    unsigned char *out = check_allocate(longest), *in = check_allocate(longest);
    int other = 1 - check_rank;
    for (int size = 0; size < SIZES; size++) {
        size_t length = sizes[size];
        check_fill(out, length, (uint64_t)(2 * size + check_rank));
        for (int round = 0; round < rounds; round++) {
            MPI_Request request;
            MPI_Irecv(in, (int)length, MPI_BYTE, other, 3, MPI_COMM_WORLD, &request);
            MPI_Send(out, (int)length, MPI_BYTE, other, 3, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        check_equal(in, length, (uint64_t)(2 * size + other));
    }
    free(out);
    free(in);
    return check_finish();
}
