/* Derived datatypes: vector, indexed, struct, subarray, negative lower bound, MPI_BOTTOM with absolute
 * addresses, zero size, huge extent; freed while in use and their handles reused for other shapes. */
#include "check.h"

enum { ROUNDS = 25, LENGTH = 60000 };

static unsigned char *out, *in, *packed;

/* Sends `count` of `type` and receives the same bytes in the same places; everything else stays. */
static void exchange(const void *from, void *to, int count, MPI_Datatype type, uint64_t seed) {
    int peer = check_rank ^ 1, size = 0;
    MPI_Status status;
    MPI_Request request;
    check_fill(out, LENGTH, seed + (uint64_t)check_rank);
    memset(in, 0xee, LENGTH);
    MPI_Irecv(to, count, type, peer, 1, MPI_COMM_WORLD, &request);
    MPI_Send(from, count, type, peer, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    MPI_Type_size(type, &size);
    check_status(&status, peer, 1, size * count);
    for (size_t i = 0; i < LENGTH; i++)
        CHECK(in[i] == 0xee || in[i] == check_byte(seed + (uint64_t)peer, i));
    check_take(in, LENGTH);

    /* Contiguous on one side, scattered on the other. */
    memset(in, 0xee, LENGTH);
    memset(packed, 0, LENGTH);
    MPI_Sendrecv(from, count, type, peer, 2, packed, size * count, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &status);
    check_take(packed, (size_t)(size * count));
    MPI_Sendrecv(packed, size * count, MPI_BYTE, peer, 3, to, count, type, peer, 3, MPI_COMM_WORLD, &status);
    for (size_t i = 0; i < LENGTH; i++)
        CHECK(in[i] == 0xee || in[i] == check_byte(seed + (uint64_t)check_rank, i));
    check_take(in, LENGTH);
}

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    out = check_allocate(LENGTH);
    in = check_allocate(LENGTH);
    packed = check_allocate(LENGTH);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        MPI_Datatype type, base;
        uint64_t seed = round * 50;

        MPI_Type_vector(400, 3, 7, MPI_DOUBLE, &type);
        MPI_Type_commit(&type);
        exchange(out, in, 1, type, seed);
        MPI_Type_free(&type);

        MPI_Type_vector(3, 9000, 15000, MPI_BYTE, &type); /* the handle may be the freed one */
        MPI_Type_commit(&type);
        exchange(out + 1, in + 1, 1, type, seed + 1);
        MPI_Type_free(&type);

        int lengths[3] = {5, 0, 4000}, starts[3] = {9000, 20, 100};
        MPI_Type_indexed(3, lengths, starts, MPI_INT, &type);
        MPI_Type_commit(&type);
        exchange(out, in, 1, type, seed + 2);
        MPI_Type_free(&type);

        MPI_Aint offsets[3] = {4, 64, 5000};
        MPI_Datatype members[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
        int blocks[3] = {3, 100, 50};
        MPI_Type_create_struct(3, blocks, offsets, members, &type);
        MPI_Type_commit(&type);
        exchange(out, in, 4, type, seed + 3);
        MPI_Type_free(&type);

        int whole[2] = {200, 300}, part[2] = {50, 120}, corner[2] = {10, 33};
        MPI_Type_create_subarray(2, whole, part, corner, MPI_ORDER_C, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        exchange(out, in, 1, type, seed + 4);
        MPI_Type_free(&type);

        /* The data begins 1000 bytes before the buffer's address. */
        MPI_Aint before[1] = {-1000};
        int bytes[1] = {8100};
        MPI_Type_create_hindexed(1, bytes, before, MPI_BYTE, &base);
        MPI_Type_create_resized(base, -1000, 9000, &type);
        MPI_Type_commit(&type);
        exchange(out + 1000, in + 1000, 3, type, seed + 5);
        MPI_Type_free(&base);
        MPI_Type_free(&type);

        /* Zero bytes of a type with an extent. */
        MPI_Type_contiguous(0, MPI_INT, &base);
        MPI_Type_create_resized(base, 0, 4000, &type);
        MPI_Type_commit(&type);
        exchange(out, in, 5, type, seed + 6);
        MPI_Type_free(&base);
        MPI_Type_free(&type);

        /* Absolute addresses of two buffers, on MPI_BOTTOM; the type is freed while in use. */
        int peer = check_rank ^ 1, pieces[2] = {12000, 700};
        MPI_Aint from[2], to[2];
        MPI_Datatype send_type, receive_type;
        MPI_Request requests[2];
        MPI_Get_address(out, &from[0]);
        MPI_Get_address(packed, &from[1]);
        MPI_Get_address(in + 100, &to[0]);
        MPI_Get_address(in + 30000, &to[1]);
        MPI_Type_create_hindexed(2, pieces, from, MPI_BYTE, &send_type);
        MPI_Type_create_hindexed(2, pieces, to, MPI_BYTE, &receive_type);
        MPI_Type_commit(&send_type);
        MPI_Type_commit(&receive_type);
        check_fill(out, 12000, seed + 7 + (uint64_t)check_rank);
        check_fill(packed, 700, seed + 9 + (uint64_t)check_rank);
        MPI_Irecv(MPI_BOTTOM, 1, receive_type, peer, 5, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(MPI_BOTTOM, 1, send_type, peer, 5, MPI_COMM_WORLD, &requests[1]);
        MPI_Type_free(&send_type);
        MPI_Type_free(&receive_type);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check_equal(in + 100, 12000, seed + 7 + (uint64_t)peer);
        check_equal(in + 30000, 700, seed + 9 + (uint64_t)peer);
    }
    return check_finish();
}
