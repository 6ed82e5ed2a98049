/* Thousands of signatures: every message comes from another place or has another length, so that no loop ever closes, and then
 * loops that share their first calls and part later. */
#include "check.h"
#include "places.h"

enum { SIGNATURES = 6000, ROUNDS = 200 };

static unsigned char *out, *in;

static void shift(size_t length, uint64_t seed) {
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    check_fill(out, length, seed + (uint64_t)check_rank);
    switch (length % PLACES) {
        PLACES_1000(MPI_Sendrecv(out, (int)length, MPI_BYTE, right, 1, in, (int)length, MPI_BYTE, left, 1, MPI_COMM_WORLD,
                                 MPI_STATUS_IGNORE))
    }
    check_equal(in, length, seed + (uint64_t)left);
}

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    out = check_allocate(SIGNATURES);
    in = check_allocate(SIGNATURES);
    for (size_t length = 0; length < SIGNATURES; length++) shift(length, length);
    uint64_t random = 99;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        int path = (int)(random >> 62);
        shift(5000, round);
        shift(4500, round);
        if (path == 0) shift(100, round);
        for (int i = 0; i < path; i++) shift((size_t)(2000 * (i + 1)) % SIGNATURES, round);
        if (path == 2) MPI_Barrier(MPI_COMM_WORLD);
    }
    return check_finish();
}
