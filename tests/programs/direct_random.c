/* Memory that comes, goes, moves and is sent at random: direct_random SEED STEPS. Both ranks do the same things. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, BUFFERS = 24, LONGEST = 80 * PAGE, OWN = 8 };

static struct {
    unsigned char *data;
    size_t length;
    uint64_t seed; /* of its content */
    int mapped;
} buffers[BUFFERS];

static unsigned char *in;
static uint64_t state, stamp;

static size_t draw(size_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % limit;
}

static void fill(int b) {
    buffers[b].seed = stamp += 2;
    check_fill(buffers[b].data, buffers[b].length, buffers[b].seed + (uint64_t)check_rank);
}

static void intact(int b) {
    for (size_t i = 0; i < buffers[b].length; i++)
        CHECK(buffers[b].data[i] == check_byte(buffers[b].seed + (uint64_t)check_rank, i));
}

static void make(int b) {
    size_t length = 3 * PAGE + draw(LONGEST - 3 * PAGE);
    buffers[b].mapped = (int)draw(2);
    if (buffers[b].mapped) {
        length = (length + PAGE - 1) / PAGE * PAGE;
        buffers[b].data = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(buffers[b].data != MAP_FAILED);
    } else {
        buffers[b].data = draw(2) ? malloc(length) : calloc(length, 1);
        CHECK(buffers[b].data != NULL);
    }
    buffers[b].length = length;
    fill(b);
}

static void drop(int b) {
    intact(b);
    if (buffers[b].mapped)
        CHECK(munmap(buffers[b].data, buffers[b].length) == 0);
    else
        free(buffers[b].data);
}

static void resize(int b) {
    size_t old = buffers[b].length, length = 3 * PAGE + draw(LONGEST - 3 * PAGE);
    unsigned char *moved;
    if (buffers[b].mapped) {
        length = (length + PAGE - 1) / PAGE * PAGE;
        moved = mremap(buffers[b].data, old, length, MREMAP_MAYMOVE);
        CHECK(moved != MAP_FAILED);
        for (size_t i = old; i < length; i++) CHECK(moved[i] == 0);
    } else {
        moved = realloc(buffers[b].data, length);
        CHECK(moved != NULL);
    }
    buffers[b].data = moved;
    buffers[b].length = old < length ? old : length;
    intact(b);
    buffers[b].length = length;
    fill(b);
}

/* Whole pages of a mapping are given back and got again, or discarded. */
static void punch(int b) {
    if (!buffers[b].mapped) return;
    size_t pages = buffers[b].length / PAGE, first = draw(pages), count = 1 + draw(pages - first);
    unsigned char *place = buffers[b].data + first * PAGE;
    if (draw(2))
        CHECK(mmap(place, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == place);
    else
        CHECK(madvise(place, count * PAGE, MADV_DONTNEED) == 0);
    for (size_t i = 0; i < count * PAGE; i++) CHECK(place[i] == 0);
    fill(b);
}

static void branch(void) {
    fflush(NULL);
    int go[2];
    char token = 0;
    CHECK(pipe(go) == 0);
    pid_t child = fork();
    if (child == 0) {
        CHECK(read(go[0], &token, 1) == 1);
        for (int b = 0; b < BUFFERS; b++) intact(b);
        for (int b = 0; b < BUFFERS; b++) memset(buffers[b].data, 0, buffers[b].length);
        _exit(3);
    }
    for (int b = 0; b < BUFFERS; b += 2) fill(b);
    CHECK(write(go[1], &token, 1) == 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    for (int b = 0; b < BUFFERS; b++) intact(b);
    close(go[0]);
    close(go[1]);
}

static void exchange(int b) {
    int other = 1 - check_rank, way = (int)draw(3);
    size_t length = buffers[b].length;
    memset(in, 0x5a, length);
    if (way == 0) {
        MPI_Sendrecv(buffers[b].data, (int)length, MPI_BYTE, other, 1, in, (int)length, MPI_BYTE, other, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Request requests[2];
        MPI_Irecv(in, (int)length, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(buffers[b].data, (int)length, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[1]);
        /* Other memory may come and go while this one is sent. */
        int another = (b + 1) % BUFFERS;
        if (way == 2) drop(another), make(another);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    check_equal(in, length, buffers[b].seed + (uint64_t)other);
}

/* Another thread has memory of its own, which comes and goes on the same heap all the while. */
static volatile int over;
static void *live_beside(void *argument) {
    unsigned char *own[OWN] = {NULL};
    size_t lengths[OWN] = {0};
    uint64_t random = *(const uint64_t *)argument;
    for (uint64_t round = 0; !over; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t i = round % OWN, length = 1 + (size_t)(random >> 33) % (20 * PAGE);
        for (size_t j = 0; j < lengths[i]; j++) CHECK(own[i][j] == check_byte(round - OWN, j));
        if (random >> 63)
            own[i] = realloc(own[i], length);
        else
            free(own[i]), own[i] = malloc(length);
        CHECK(own[i] != NULL);
        lengths[i] = length;
        check_fill(own[i], length, round);
    }
    for (size_t i = 0; i < OWN; i++) free(own[i]);
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    state = strtoull(argv[1], NULL, 10);
    long steps = atol(argv[2]);
    check_init(&argc, &argv);
    CHECK(check_size == 2);
    in = malloc(LONGEST + PAGE);
    pthread_t thread;
    uint64_t start = state;
    CHECK(pthread_create(&thread, NULL, live_beside, &start) == 0);
    for (int b = 0; b < BUFFERS; b++) make(b);
    for (long step = 0; step < steps; step++) {
        int b = (int)draw(BUFFERS);
        size_t what = draw(100);
        if (what < 8) drop(b), make(b);
        else if (what < 14) resize(b);
        else if (what < 20) punch(b);
        else if (what < 21) branch();
        else {
            size_t times = 1 + draw(8);
            for (size_t i = 0; i < times; i++) {
                if (draw(2)) fill(b);
                exchange(b);
            }
        }
    }
    over = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    for (int b = 0; b < BUFFERS; b++) drop(b);
    return check_finish();
}
