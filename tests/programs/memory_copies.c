/* memcpy and memmove of every length and alignment, from before the first constructor to after main,
 * in threads that come and go; source and destination end at unmapped pages. */
#define _GNU_SOURCE
#define CHECK_WITHOUT_MPI
#include "check.h"
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

static void *(*volatile copy)(void *, const void *, size_t) = memcpy;
static void *(*volatile mover)(void *, const void *, size_t) = memmove;
static unsigned char early_from[5000], early_to[5000], early_moved[5000];

/* Runs before the constructors of every library, preloaded ones included. */
static void first_of_all(int argc, char **argv, char **environment) {
    (void)argc, (void)argv, (void)environment;
    for (size_t i = 0; i < sizeof early_from; i++) early_from[i] = check_byte(4, i);
    copy(early_to, early_from, sizeof early_to);
    mover(early_moved, early_to, sizeof early_moved);
}
__attribute__((section(".preinit_array"), used)) static void (*preinit)(int, char **, char **) = first_of_all;

__attribute__((constructor)) static void before_main(void) { copy(early_to, early_from, sizeof early_to); }

__attribute__((destructor)) static void after_main(void) {
    memset(early_to, 0, sizeof early_to);
    copy(early_to, early_from, sizeof early_to);
    for (size_t i = 0; i < sizeof early_to; i++) CHECK(early_to[i] == check_byte(4, i));
}

enum { ROOM = 1 << 20 };

/* ROOM bytes that end where an inaccessible page begins. */
static unsigned char *guarded(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *area = mmap(NULL, ROOM + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    CHECK(mprotect(area + ROOM, page, PROT_NONE) == 0);
    return area + ROOM;
}

static void *copies(void *argument) {
    uint64_t seed = *(uint64_t *)argument, sum = 0;
    unsigned char *from_end = guarded(), *to_end = guarded();
    for (size_t length = 0; length < 1200; length++)
        for (size_t shift = 0; shift < 5; shift++) {
            unsigned char *from = from_end - length - (shift * 13) % 64, *to = to_end - length - (shift * 7) % 64;
            check_fill(from, length, seed + length);
            to[-1] = 0x77;
            CHECK((length % 2 ? copy : mover)(to, from, length) == to);
            CHECK(to[-1] == 0x77);
            for (size_t i = 0; i < length; i++) CHECK(to[i] == check_byte(seed + length, i));
        }
    for (size_t length = 1200; length < ROOM; length = length * 5 / 3 + 7) {
        check_fill(from_end - length, length, seed);
        copy(to_end - length, from_end - length, length);
        for (size_t i = 0; i < length; i++) CHECK(to_end[-(long)length + (long)i] == check_byte(seed, i));
        sum = sum * 31 + to_end[-1];
    }
    munmap(from_end - ROOM, ROOM + 4096);
    munmap(to_end - ROOM, ROOM + 4096);
    *(uint64_t *)argument = sum;
    return NULL;
}

int main(void) {
    check_equal(early_to, sizeof early_to, 4);
    check_equal(early_moved, sizeof early_moved, 4);
    for (int generation = 0; generation < 3; generation++) {
        pthread_t threads[3];
        uint64_t seeds[3] = {1, 2, 3};
        for (int t = 0; t < 3; t++) CHECK(pthread_create(&threads[t], NULL, copies, &seeds[t]) == 0);
        for (int t = 0; t < 3; t++) {
            pthread_join(threads[t], NULL);
            check_take(&seeds[t], sizeof seeds[t]);
        }
    }
    return check_finish();
}
