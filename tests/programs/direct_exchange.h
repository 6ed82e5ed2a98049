/* What the programs about direct copies share: two ranks that send each other a buffer, and check every byte. */
#ifndef DIRECT_EXCHANGE_H
#define DIRECT_EXCHANGE_H

#include "check.h"
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A program may set it: from 512 KiB on messages are copied in other ways. */
#ifndef LENGTH_IN_PAGES
#define LENGTH_IN_PAGES 160
#endif

enum { PAGE = 4096, REPEATS = 8, LENGTH = LENGTH_IN_PAGES * PAGE, ROUNDS = 6 };

static unsigned char *in;
static uint64_t seed = 1;

/* Both ranks send `out` to each other; what arrives is checked. */
static void swap_as_is(const unsigned char *out, size_t length, uint64_t expected) {
    int other = 1 - check_rank;
    MPI_Request request;
    memset(in, 0x5a, length);
    MPI_Irecv(in, (int)length, MPI_BYTE, other, 1, MPI_COMM_WORLD, &request);
    MPI_Send(out, (int)length, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_equal(in, length, expected + (uint64_t)other);
}

/* With other bytes than before. */
__attribute__((unused)) static void swap_once(unsigned char *out, size_t length) {
    seed += 2;
    check_fill(out, length, seed + (uint64_t)check_rank);
    swap_as_is(out, length, seed);
}

/* Until it is promoted and read directly. */
__attribute__((unused)) static void swap(unsigned char *out, size_t length) {
    for (int i = 0; i < REPEATS; i++) swap_once(out, length);
}

/* Fresh private memory, at `place` if that is given. */
__attribute__((unused)) static unsigned char *pages(void *place, size_t length) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (place ? MAP_FIXED : 0);
    unsigned char *map = mmap(place, length, PROT_READ | PROT_WRITE, flags, -1, 0);
    CHECK(map != MAP_FAILED);
    return map;
}

/* Bytes of memory that the shim's file of this process takes; without the shim none. */
__attribute__((unused)) static long arena(void) {
    char name[64], target[64];
    for (int file = 0; file < 1024; file++) {
        struct stat status;
        snprintf(name, sizeof name, "/proc/self/fd/%d", file);
        ssize_t length = readlink(name, target, sizeof target - 1);
        if (length < 0) continue;
        target[length] = 0;
        if (strstr(target, "copytune-arena") && fstat(file, &status) == 0) return (long)status.st_blocks * 512;
    }
    return 0;
}

/* A way through a program, by the name of its first argument. */
struct way {
    const char *name;
    void (*run)(void);
};

__attribute__((unused)) static void run_way(const struct way *ways, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(ways[i].name, name) == 0) {
            ways[i].run();
            return;
        }
    CHECK(!"a known way");
}
#endif
