/* Messages whose lengths and places do not recur: direct_varying WAY. Before each one the buffer is written anew. */
#define _GNU_SOURCE
#define LENGTH_IN_PAGES 120
#include "direct_exchange.h"

enum { MESSAGES = 400, WINDOW = 8, LEAST = 12 * PAGE, LEAST_SHORT = 2 * PAGE, SHORT = 7 * PAGE };

/* The same numbers on both ranks. */
static uint64_t drawn = 88172645463325252u;
static size_t draw(size_t below) {
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return (size_t)(drawn % below);
}

/* The first bytes of one buffer. */
static void lengths(void) {
    unsigned char *out = pages(NULL, LENGTH);
    for (int i = 0; i < MESSAGES; i++) swap_once(out + 16, LEAST + draw(LENGTH - LEAST - 16));
}

/* Any part of it. */
static void places(void) {
    unsigned char *out = pages(NULL, LENGTH);
    for (int i = 0; i < MESSAGES; i++) {
        size_t start = draw(LENGTH / 4);
        swap_once(out + start, LENGTH / 2 + draw(LENGTH / 4));
    }
}

/* One rank sends at a time, so that the sender waits and tells where its message lies. */
static void turn(unsigned char *out, size_t length) {
    for (int sender = 0; sender < 2; sender++) {
        seed += 2;
        if (check_rank == sender) {
            check_fill(out, length, seed);
            MPI_Send(out, (int)length, MPI_BYTE, 1 - sender, 2, MPI_COMM_WORLD);
        } else {
            memset(in, 0x5a, length);
            MPI_Recv(in, (int)length, MPI_BYTE, sender, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check_equal(in, length, seed);
        }
    }
}

/* Both ranks send at once, without waiting. */
static void send_unshown(unsigned char *out, size_t length) {
    int other = 1 - check_rank;
    MPI_Request requests[2];
    seed += 2;
    check_fill(out, length, seed + (uint64_t)check_rank);
    memset(in, 0x5a, length);
    MPI_Irecv(in, (int)length, MPI_BYTE, other, 3, MPI_COMM_WORLD, requests);
    MPI_Isend(out, (int)length, MPI_BYTE, other, 3, MPI_COMM_WORLD, requests + 1);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check_equal(in, length, seed + (uint64_t)other);
}

/* Lengths that are read directly only where the sender shows them. */
static void short_lengths(void) {
    unsigned char *out = pages(NULL, LENGTH);
    for (int i = 0; i < MESSAGES; i++) turn(out + 16, LEAST_SHORT + draw(SHORT - LEAST_SHORT));
}

/* Of a notice's messages some are too short for one, too long, or longer than what is promoted. */
static void other_lengths(void) {
    const size_t bytes[] = {1, PAGE - 16, PAGE, 3 * PAGE, SHORT, LEAST, LENGTH / 2, LENGTH - 16, 520 * 1024};
    unsigned char *out = pages(NULL, 1024 * 1024);
    in = realloc(in, 1024 * 1024);
    CHECK(in);
    for (int i = 0; i < MESSAGES; i++) turn(out + 16, i % 2 ? LEAST_SHORT + draw(SHORT) : bytes[draw(sizeof bytes / sizeof *bytes)]);
}

/* A length that is first sent by calls that no notice shows, from where other lengths had one. */
static void later(void) {
    unsigned char *out = pages(NULL, LENGTH);
    for (int i = 0; i < 40; i++) turn(out + 16, LEAST);
    for (int i = 0; i < 40; i++) send_unshown(out + 16, LEAST + PAGE);
    for (int i = 0; i < MESSAGES; i++) turn(out + 16, LEAST + PAGE);
}

/* The buffer is given back and mapped anew now and then, whole or a page of it: what was known of it is wrong then. */
static void mapped_anew(void (*send)(unsigned char *, size_t), size_t least, size_t most) {
    unsigned char *out = pages(NULL, LENGTH);
    for (int i = 0; i < MESSAGES; i++) {
        if (i % 64 == 63) {
            int whole = i % 128 == 127;
            size_t start = whole ? 0 : draw(most / PAGE) * PAGE, length = whole ? LENGTH : PAGE;
            CHECK(munmap(out + start, length) == 0);
            pages(out + start, length);
        }
        send(out + 16, least + draw(most - least - 16));
    }
}

static void remapped(void) {
    mapped_anew(swap_once, LEAST, LENGTH);
}

static void short_remapped(void) {
    mapped_anew(turn, LEAST_SHORT, SHORT);
}

/* Parts that follow each other, all under way at once. */
static void windows(void) {
    int other = 1 - check_rank;
    unsigned char *out = pages(NULL, LENGTH * WINDOW), *into = pages(NULL, LENGTH * WINDOW);
    for (int i = 0; i < MESSAGES / WINDOW; i++) {
        MPI_Request requests[2 * WINDOW];
        size_t starts[WINDOW], sizes[WINDOW], start = 0;
        seed += 2;
        check_fill(out, LENGTH * WINDOW, seed + (uint64_t)check_rank);
        memset(into, 0x5a, LENGTH * WINDOW);
        for (int k = 0; k < WINDOW; k++) {
            starts[k] = start;
            sizes[k] = LEAST + draw(LENGTH - LEAST);
            start += sizes[k];
            MPI_Irecv(into + starts[k], (int)sizes[k], MPI_BYTE, other, k, MPI_COMM_WORLD, requests + k);
        }
        for (int k = 0; k < WINDOW; k++)
            MPI_Isend(out + starts[k], (int)sizes[k], MPI_BYTE, other, k, MPI_COMM_WORLD, requests + WINDOW + k);
        MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
        check_equal(into, start, seed + (uint64_t)other);
    }
}

int main(int argc, char **argv) {
    const struct way ways[] = {
        {"later", later},
        {"lengths", lengths},
        {"other", other_lengths},
        {"places", places},
        {"remapped", remapped},
        {"short", short_lengths},
        {"short-remapped", short_remapped},
        {"windows", windows},
    };
    CHECK(argc > 1);
    check_init(&argc, &argv);
    CHECK(check_size == 2);
    in = malloc(LENGTH);
    run_way(ways, sizeof ways / sizeof *ways, argv[1]);
    return check_finish();
}
