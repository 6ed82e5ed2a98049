/* Blocking sends in every mode, lengths across all copy paths, misaligned buffers, self and null. */
#include "check.h"

enum { ROUNDS = 12 };

static unsigned char *out, *in;

/* One message from rank 0 to rank 1 and one back, sent with the given function. */
static void exchange(int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm), int ready,
                     size_t length, uint64_t seed) {
    size_t shift = seed % 33;
    int token = 0;
    for (int sender = 0; sender < 2; sender++) {
        if (check_rank == sender) {
            check_fill(out + shift, length, seed + (uint64_t)sender);
            if (ready) MPI_Recv(&token, 0, MPI_BYTE, 1 - sender, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(send(out + shift, (int)length, MPI_BYTE, 1 - sender, 7, MPI_COMM_WORLD) == MPI_SUCCESS);
        } else if (check_rank == 1 - sender) {
            MPI_Status status;
            if (ready) {
                MPI_Request request;
                MPI_Irecv(in + shift, (int)length, MPI_BYTE, sender, 7, MPI_COMM_WORLD, &request);
                MPI_Send(&token, 0, MPI_BYTE, sender, 1, MPI_COMM_WORLD);
                MPI_Wait(&request, &status);
            } else {
                MPI_Recv(in + shift, CHECK_LONGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                         &status);
            }
            check_status(&status, sender, 7, (int)length);
            check_equal(in + shift, length, seed + (uint64_t)sender);
        }
    }
}

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    out = check_allocate(CHECK_LONGEST);
    in = check_allocate(CHECK_LONGEST);
    int room = CHECK_LONGEST + MPI_BSEND_OVERHEAD + 4096;
    void *attached = malloc((size_t)room);
    MPI_Buffer_attach(attached, room);

    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < CHECK_LENGTHS; i++) {
            size_t length = check_lengths[i];
            uint64_t seed = round * 100 + i * 3;
            exchange(MPI_Send, 0, length, seed);
            exchange(MPI_Ssend, 0, length, seed + 1);
            exchange(MPI_Rsend, 1, length, seed + 2);
            if (round < 3) exchange(MPI_Bsend, 0, length, seed + 3);
        }
        /* A send to oneself, eager, with the receive posted first. */
        MPI_Request request;
        MPI_Irecv(in, 3000, MPI_BYTE, check_rank, 9, MPI_COMM_WORLD, &request);
        check_fill(out, 3000, round + 77);
        MPI_Send(out, 3000, MPI_BYTE, check_rank, 9, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_equal(in, 3000, round + 77);
        /* Nobody: returns at once and leaves the buffer alone. */
        MPI_Status status;
        check_fill(in, 500, 5);
        MPI_Send(out, 100, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
        MPI_Recv(in, 500, MPI_BYTE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
        CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
        CHECK(status.MPI_TAG == MPI_ANY_TAG);
        check_equal(in, 500, 5);
    }
    void *detached;
    int size;
    MPI_Buffer_detach(&detached, &size);
    CHECK(detached == attached && size == room);
    return check_finish();
}
