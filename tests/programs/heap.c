/* How much of the heap is used after MPI_Init, and how often the shim has asked the C library for memory until the end, which a library
   that is preloaded counts: after messages of all lengths, from known and new buffers. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <malloc.h>

enum { ROUNDS = 40, LONGEST = 1 << 20 };

static void exchange(unsigned char *out, unsigned char *in, int length) {
    MPI_Request requests[2];
    int other = 1 - check_rank;
    MPI_Irecv(in, length, MPI_BYTE, other, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, length, MPI_BYTE, other, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Sendrecv(out, length, MPI_BYTE, other, 1, in, length, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    CHECK(check_size == 2);
    long used = (long)mallinfo2().uordblks, most, asked = 0, sum;
    for (int length = 16; length <= LONGEST; length *= 4) {
        unsigned char *out = malloc((size_t)length), *in = malloc((size_t)length);
        CHECK(out != NULL && in != NULL);
        check_fill(out, (size_t)length, (uint64_t)length);
        for (int i = 0; i < ROUNDS; i++) exchange(out, in, length);
        check_equal(in, (size_t)length, (uint64_t)length);
        free(out);
        free(in);
    }
    long (*count)(void) = (long (*)(void))dlsym(RTLD_DEFAULT, "shim_allocations");
    if (count != NULL) asked = count();
    MPI_Reduce(&used, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&asked, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (check_rank == 0) printf("used %ld\nasked %ld\n", most, sum);
    return check_finish();
}
