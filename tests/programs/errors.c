/* Truncated messages and wrong arguments with errors that return, that call back, and that jump out. */
#include "check.h"
#include <setjmp.h>

enum { ROUNDS = 30, LENGTH = 3000, SHORT = 1000 };

static jmp_buf escape;
static int called;

static void counting(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    called++;
}

static void jumping(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    longjmp(escape, *code != MPI_SUCCESS);
}

static unsigned char *out, *in;

/* Rank 1 sends more than rank 0 has room for; returns the class of the error. */
static int truncated(void) {
    int class = MPI_SUCCESS;
    if (check_rank == 1) {
        MPI_Send(out, LENGTH, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        return MPI_ERR_TRUNCATE;
    }
    int code = MPI_Recv(in, SHORT, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    return class;
}

static void ordinary(uint64_t seed) {
    int peer = check_rank ^ 1;
    check_fill(out, LENGTH, seed + (uint64_t)check_rank);
    MPI_Sendrecv(out, LENGTH, MPI_BYTE, peer, 2, in, LENGTH, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check_equal(in, LENGTH, seed + (uint64_t)peer);
}

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    out = check_allocate(LENGTH);
    in = check_allocate(LENGTH);
    MPI_Errhandler count_them, jump_out;
    MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)counting, &count_them);
    MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)jumping, &jump_out);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        CHECK(truncated() == MPI_ERR_TRUNCATE);
        for (size_t i = SHORT; check_rank == 0 && round == 0 && i < LENGTH; i++) CHECK(in[i] == 0xa5);
        CHECK(MPI_Send(out, 1, MPI_BYTE, check_size + 5, 1, MPI_COMM_WORLD) != MPI_SUCCESS);
        CHECK(MPI_Send(out, -1, MPI_BYTE, 0, 1, MPI_COMM_WORLD) != MPI_SUCCESS);
        ordinary(round);

        int before = called;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, count_them);
        CHECK(truncated() == MPI_ERR_TRUNCATE);
        CHECK(check_rank == 1 || called == before + 1);
        ordinary(round + 100);

        MPI_Comm_set_errhandler(MPI_COMM_WORLD, jump_out);
        if (setjmp(escape) == 0) {
            truncated();
            CHECK(check_rank == 1); /* rank 0 jumps */
        }
        ordinary(round + 200);

        /* Errors inside Waitall: the statuses tell which. */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        if (check_rank == 0) {
            MPI_Request requests[2];
            MPI_Status statuses[2];
            int class = 0;
            MPI_Irecv(in, SHORT, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &requests[0]);
            MPI_Irecv(in + SHORT, SHORT, MPI_BYTE, 1, 6, MPI_COMM_WORLD, &requests[1]);
            CHECK(MPI_Waitall(2, requests, statuses) == MPI_ERR_IN_STATUS);
            MPI_Error_class(statuses[0].MPI_ERROR, &class);
            CHECK(class == MPI_ERR_TRUNCATE);
            if (statuses[1].MPI_ERROR == MPI_ERR_PENDING) MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
            check_equal(in + SHORT, SHORT, round);
        } else if (check_rank == 1) {
            MPI_Send(out, LENGTH, MPI_BYTE, 0, 5, MPI_COMM_WORLD);
            check_fill(out, SHORT, round);
            MPI_Send(out, SHORT, MPI_BYTE, 0, 6, MPI_COMM_WORLD);
        }
        ordinary(round + 300);
    }
    MPI_Errhandler_free(&count_them);
    MPI_Errhandler_free(&jump_out);
    return check_finish();
}
