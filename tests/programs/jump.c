/* An error handler jumps from a call in main back into main; everything afterwards is called from deeper
 * functions, so that the stack never again is as short as it was in the abandoned call. */
#include "check.h"
#include <setjmp.h>

enum { LENGTH = 5000, ROUNDS = 100 };

static jmp_buf escape;
static unsigned char *out, *in;

static void jumping(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    longjmp(escape, 1);
}

__attribute__((noinline)) static void deeper(int levels, uint64_t seed) {
    volatile unsigned char room[200];
    room[levels] = (unsigned char)levels;
    if (levels > 0) {
        deeper(levels - 1, seed);
    } else {
        int peer = check_rank ^ 1;
        check_fill(out, LENGTH, seed + (uint64_t)check_rank);
        MPI_Sendrecv(out, LENGTH, MPI_BYTE, peer, 2, in, LENGTH, MPI_BYTE, peer, 2, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        check_equal(in, LENGTH, seed + (uint64_t)peer);
    }
    CHECK(room[levels] == levels);
}

int main(int argc, char **argv) {
    MPI_Errhandler jump_out;
    check_init(&argc, &argv);
    out = check_allocate(LENGTH);
    in = check_allocate(LENGTH);
    MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)jumping, &jump_out);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, jump_out);
    if (check_rank == 1) {
        MPI_Send(out, LENGTH, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    } else if (setjmp(escape) == 0) {
        MPI_Recv(in, 1000, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(!"the handler has jumped");
    }
    for (uint64_t round = 0; round < ROUNDS; round++) deeper(10, round);
    return check_finish();
}
