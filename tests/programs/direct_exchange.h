/* What the programs about direct copies share: two ranks that send each other a buffer, and check every byte. */
#ifndef DIRECT_EXCHANGE_H
#define DIRECT_EXCHANGE_H

#include "check.h"
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
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

/* Whether the shim's file of this process is open there; if so, what memory it takes. */
__attribute__((unused)) static int is_arena(int file, long *bytes) {
    char name[64], target[64];
    struct stat status;
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ssize_t length = readlink(name, target, sizeof target - 1);
    if (length < 0 || fstat(file, &status) != 0) return 0;
    target[length] = 0;
    if (strstr(target, "copytune-arena") == NULL) return 0;
    *bytes = (long)status.st_blocks * 512;
    return 1;
}

/* The descriptor that leads to the shim's file of this process: a socket, in whose queue that waits, or itself; -1: none. */
__attribute__((unused)) static int arena_with(long *bytes) {
    for (int number = 0; number < 2048; number++) {
        union {
            struct cmsghdr header;
            char room[CMSG_SPACE(sizeof(int))];
        } control;
        char byte;
        struct stat status;
        struct iovec piece = {&byte, 1};
        struct msghdr letter = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        if (is_arena(number, bytes)) return number;
        if (fstat(number, &status) != 0 || !S_ISSOCK(status.st_mode)) continue;
        if (recvmsg(number, &letter, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1) continue;
        struct cmsghdr *header = CMSG_FIRSTHDR(&letter);
        if (header == NULL || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int))) continue;
        int file;
        memcpy(&file, CMSG_DATA(header), sizeof file);
        int found = is_arena(file, bytes);
        close(file);
        if (found) return number;
    }
    return -1;
}

/* Bytes of memory that it takes. */
__attribute__((unused)) static long arena(void) {
    long bytes = 0;
    arena_with(&bytes);
    return bytes;
}

/* Where it is. */
__attribute__((unused)) static int arena_at(void) {
    long bytes;
    return arena_with(&bytes);
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
