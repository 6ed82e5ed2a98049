/* Buffers that come and go at the same addresses with other meanings, on heap, stack and mappings. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>

enum { ROUNDS = 300 };

static void ring(unsigned char *out, unsigned char *in, size_t length, uint64_t seed) {
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    MPI_Request request;
    check_fill(out, length, seed + (uint64_t)check_rank);
    MPI_Irecv(in, (int)length, MPI_BYTE, left, 1, MPI_COMM_WORLD, &request);
    MPI_Send(out, (int)length, MPI_BYTE, right, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_equal(in, length, seed + (uint64_t)left);
}

static void on_stack(size_t length, uint64_t seed) {
    unsigned char out[length + 1], in[length + 1];
    ring(out, in, length, seed);
}

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    uint64_t random = 12345;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t length = (size_t)(random >> 40) % (round % 10 ? 9000 : 150000);
        unsigned char *out = malloc(length + 1), *in = malloc(length + 1);
        ring(out, in, length, round);
        free(in);
        free(out);
        on_stack(length / 3, round + 1);
        /* What was a receive buffer is sent next. */
        unsigned char *a = malloc(length + 1), *b = malloc(length + 1);
        ring(a, b, length, round + 2);
        ring(b, a, length, round + 3);
        /* Part of the buffer's memory is copied about by the program itself. */
        memmove(a + length / 4, a, length / 2);
        check_take(a, length);
        free(a);
        free(b);
        size_t pages = 40960;
        unsigned char *map = mmap(NULL, 2 * pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(map != MAP_FAILED);
        ring(map, map + pages, pages, round + 4);
        CHECK(munmap(map, 2 * pages) == 0);
    }
    return check_finish();
}
