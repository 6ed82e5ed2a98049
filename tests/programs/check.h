/*
 * What the test programs share: data whose every byte depends on its position and on a seed, so that
 * a misplaced byte cannot go unseen, and a checksum per rank over everything that was received.
 *
 * A wrong byte ends the program at once with a message; otherwise check_finish() lets rank 0 print one
 * checksum per rank, in order. The output is the same in every run, under every MPI library.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef CHECK_WITHOUT_MPI
#include <mpi.h>
#endif

__attribute__((unused)) static int check_rank = 0, check_size = 1;
static uint64_t check_sum = 0xcbf29ce484222325u;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: rank %d: failed: %s\n", __FILE__, __LINE__, check_rank,        \
                    #condition);                                                                   \
            fflush(stderr);                                                                        \
            _Exit(70);                                                                             \
        }                                                                                          \
    } while (0)

/* Lengths on both sides of every switch of copy path in the two libraries. */
static const size_t check_lengths[] = {0,    1,    7,     64,    92,    93,    256,    257,
                                       1024, 1025, 4040,  4041,  8192,  8248,  8256,   12289,
                                       32736, 65536, 70001, 262147};
enum {
    CHECK_LENGTHS = sizeof check_lengths / sizeof check_lengths[0],
    CHECK_LONGEST = 262147,
    CHECK_SLACK = 64 /* room for misaligned starts */
};

/* Eight bytes of the data. */
__attribute__((unused)) static uint64_t check_word(uint64_t seed, size_t number) {
    uint64_t x = (number + 1) * 0x9e3779b97f4a7c15u + seed * 0xbf58476d1ce4e5b9u;
    x ^= x >> 29;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 32;
}

__attribute__((unused)) static unsigned char check_byte(uint64_t seed, size_t position) {
    return (unsigned char)(check_word(seed, position / 8) >> position % 8 * 8);
}

__attribute__((unused)) static void check_fill(void *data, size_t length, uint64_t seed) {
    unsigned char *bytes = data;
    size_t i = 0;
    for (; i + 8 <= length; i += 8) {
        uint64_t word = check_word(seed, i / 8);
        memcpy(bytes + i, &word, 8);
    }
    for (; i < length; i++) bytes[i] = check_byte(seed, i);
}

/* Adds bytes to the checksum. */
__attribute__((unused)) static void check_take(const void *data, size_t length) {
    const unsigned char *bytes = data;
    size_t i = 0;
    for (; i + 8 <= length; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        check_sum = (check_sum ^ word) * 0x9e3779b97f4a7c15u;
        check_sum ^= check_sum >> 32;
    }
    for (; i < length; i++) check_sum = (check_sum ^ bytes[i]) * 0x100000001b3u;
}

/* The bytes are those that check_fill made with this seed. Adds them to the checksum. */
__attribute__((unused)) static void check_equal(const void *data, size_t length, uint64_t seed) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < length;) {
        if (i % 8 == 0 && i + 8 <= length) {
            uint64_t word;
            memcpy(&word, bytes + i, 8);
            if (word == check_word(seed, i / 8)) {
                i += 8;
                continue;
            }
        }
        if (bytes[i] != check_byte(seed, i)) {
            fprintf(stderr, "rank %d: byte %zu of %zu with seed %llu is wrong\n", check_rank, i,
                    length, (unsigned long long)seed);
            fflush(stderr);
            _Exit(71);
        }
        i++;
    }
    check_take(data, length);
}

__attribute__((unused)) static unsigned char *check_allocate(size_t length) {
    unsigned char *data = malloc(length + CHECK_SLACK);
    CHECK(data != NULL);
    memset(data, 0xa5, length + CHECK_SLACK);
    return data;
}

#ifndef CHECK_WITHOUT_MPI
__attribute__((unused)) static void check_init(int *argc, char ***argv) {
    CHECK(MPI_Init(argc, argv) == MPI_SUCCESS);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
}

/* Rank 0 prints the checksums of all ranks. */
__attribute__((unused)) static void check_print(void) {
    uint64_t *sums = calloc((size_t)check_size, sizeof *sums);
    CHECK(sums != NULL);
    MPI_Gather(&check_sum, 1, MPI_UINT64_T, sums, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (check_rank == 0)
        for (int i = 0; i < check_size; i++)
            printf("rank %d: %016llx\n", i, (unsigned long long)sums[i]);
    fflush(stdout);
    free(sums);
}

__attribute__((unused)) static int check_finish(void) {
    check_print();
    CHECK(MPI_Finalize() == MPI_SUCCESS);
    return 0;
}

/* A status that is not the ignored one tells where the message came from and how long it was. */
__attribute__((unused)) static void check_status(MPI_Status *status, int source, int tag, int bytes) {
    int count = -1;
    CHECK(status->MPI_SOURCE == source);
    CHECK(status->MPI_TAG == tag);
    CHECK(MPI_Get_count(status, MPI_BYTE, &count) == MPI_SUCCESS);
    CHECK(count == bytes);
}
#else
__attribute__((unused)) static int check_finish(void) {
    printf("checksum: %016llx\n", (unsigned long long)check_sum);
    fflush(stdout);
    return 0;
}
#endif
#endif
