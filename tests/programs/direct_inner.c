/* direct_inner WAY ROUNDS LIFE: calls inside which the MPI library sends what no argument of a blocking call names: memory of its own, or
   parts of a nonblocking collective. The buffers are given back and allocated anew after LIFE rounds. Every byte is checked in every
   round. */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

static const size_t block = 40 * 4096 + 100;
static int life;
static unsigned char *out, *in;

static void renew(void) {
    free(out);
    free(in);
    out = malloc(block * (size_t)check_size);
    in = malloc(block * (size_t)check_size);
    CHECK(out != NULL && in != NULL);
}

static uint64_t seed(int round, int rank) { return (uint64_t)(round * 100 + rank) + 1; }

/* What rank `from` sends to rank `to`. */
static uint64_t pair(int round, int from, int to) { return seed(round, from * 10 + to); }

static unsigned char *part(unsigned char *data, int rank) { return data + block * (size_t)rank; }

static void fill(int round) {
    check_fill(out, block, seed(round, check_rank));
    memset(in, 0x5a, block * (size_t)check_size);
}

static void fill_pairs(int round) {
    for (int rank = 0; rank < check_size; rank++) check_fill(part(out, rank), block, pair(round, check_rank, rank));
    memset(in, 0x5a, block * (size_t)check_size);
}

/* The sum of ranks `first` to `last` of `bytes` bytes from the `at`th on. */
static void expect_sum(int round, int first, int last, size_t at, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        unsigned char all = 0;
        for (int rank = first; rank <= last; rank++) all ^= check_byte(seed(round, rank), at + i);
        CHECK(in[i] == all);
    }
}

static void expect_all(int round) {
    for (int rank = 0; rank < check_size; rank++) check_equal(part(in, rank), block, seed(round, rank));
}

static void expect_pairs(int round) {
    for (int rank = 0; rank < check_size; rank++) check_equal(part(in, rank), block, pair(round, rank, check_rank));
}

static void await(MPI_Request *request) { MPI_Wait(request, MPI_STATUS_IGNORE); }

static void reduce(int round) {
    fill(round);
    MPI_Reduce(out, in, (int)block, MPI_BYTE, MPI_BXOR, 0, MPI_COMM_WORLD);
    if (check_rank == 0) expect_sum(round, 0, check_size - 1, 0, block);
}

static void scan(int round) {
    fill(round);
    MPI_Scan(out, in, (int)block, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect_sum(round, 0, check_rank, 0, block);
}

static void exscan(int round) {
    fill(round);
    MPI_Exscan(out, in, (int)block, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    if (check_rank > 0) expect_sum(round, 0, check_rank - 1, 0, block);
}

static void reduce_scatter(int round) {
    size_t share = block / (size_t)check_size;
    fill(round);
    MPI_Reduce_scatter_block(out, in, (int)share, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect_sum(round, 0, check_size - 1, share * (size_t)check_rank, share);
}

static void ireduce(int round) {
    MPI_Request request;
    fill(round);
    MPI_Ireduce(out, in, (int)block, MPI_BYTE, MPI_BXOR, 0, MPI_COMM_WORLD, &request);
    await(&request);
    if (check_rank == 0) expect_sum(round, 0, check_size - 1, 0, block);
}

static void iallreduce(int round) {
    MPI_Request request;
    fill(round);
    MPI_Iallreduce(out, in, (int)block, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD, &request);
    await(&request);
    expect_sum(round, 0, check_size - 1, 0, block);
}

static void ibcast(int round) {
    int root = round / life % check_size;
    MPI_Request request;
    if (check_rank == root) check_fill(out, block, seed(round, root));
    else memset(out, 0x5a, block);
    MPI_Ibcast(out, (int)block, MPI_BYTE, root, MPI_COMM_WORLD, &request);
    await(&request);
    check_equal(out, block, seed(round, root));
}

static void iallgather(int round) {
    MPI_Request request;
    fill(round);
    MPI_Iallgather(out, (int)block, MPI_BYTE, in, (int)block, MPI_BYTE, MPI_COMM_WORLD, &request);
    await(&request);
    expect_all(round);
}

static void ialltoall(int round) {
    MPI_Request request;
    fill_pairs(round);
    MPI_Ialltoall(out, (int)block, MPI_BYTE, in, (int)block, MPI_BYTE, MPI_COMM_WORLD, &request);
    await(&request);
    expect_pairs(round);
}

static void igather(int round) {
    MPI_Request request;
    fill(round);
    MPI_Igather(out, (int)block, MPI_BYTE, in, (int)block, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    await(&request);
    if (check_rank == 0) expect_all(round);
}

/* Each part by a datatype of its own. */
static void alltoallw(int round) {
    int counts[10], at[10];
    MPI_Datatype types[10];
    for (int rank = 0; rank < check_size; rank++)
        counts[rank] = (int)block, at[rank] = (int)block * rank, types[rank] = MPI_BYTE;
    fill_pairs(round);
    MPI_Alltoallw(out, counts, at, types, in, counts, at, types, MPI_COMM_WORLD);
    expect_pairs(round);
}

static void neighbors(int round) {
    static MPI_Comm ring = MPI_COMM_NULL;
    int size = check_size, periodic = 1;
    if (round == 0) MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    fill(round);
    MPI_Neighbor_allgather(out, (int)block, MPI_BYTE, in, (int)block, MPI_BYTE, ring);
    for (int side = 0; side < 2; side++) {
        int rank = (check_rank + (side == 0 ? check_size - 1 : 1)) % check_size;
        check_equal(part(in, side), block, seed(round, rank));
    }
    if (life > 0 && round == 89) MPI_Comm_free(&ring);
}

/* Two bytes at a time between which there is one that is not sent: another type than the library's own. */
static void gaps(int round) {
    MPI_Datatype pairs;
    MPI_Request request;
    int root = round / life % check_size, count = (int)(block / 3);
    MPI_Type_create_resized(MPI_SHORT, 0, 3, &pairs);
    MPI_Type_commit(&pairs);
    if (check_rank == root) check_fill(out, block, seed(round, root));
    else memset(out, 0x5a, block);
    MPI_Ibcast(out, count, pairs, root, MPI_COMM_WORLD, &request);
    await(&request);
    for (size_t i = 0; i < (size_t)count; i++)
        for (size_t j = 0; j < 3; j++) {
            unsigned char expected = check_byte(seed(round, root), 3 * i + j);
            CHECK(out[3 * i + j] == (check_rank == root || j < 2 ? expected : 0x5a));
        }
    MPI_Type_free(&pairs);
}

/* Another thread writes the buffer while sends of it are prepared, which begin none: nothing may move now, or what it writes is lost. Each
   buffer is new, is sent once, and is asked for by its receiver. */
static unsigned char *shared, written[40 * 4096 + 100];
static volatile int writes_on, writes_begun;

static void *write_on(void *unused) {
    (void)unused;
    for (; writes_on; writes_begun = 1)
        for (size_t i = 0; i < block; i += 64) {
            *(volatile unsigned char *)&shared[i] += 1;
            written[i]++;
        }
    return NULL;
}

static void prepared(int round) {
    pthread_t writer;
    if (check_rank == 1) {
        MPI_Recv(in, (int)block, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (size_t i = 0; i < block; i++) CHECK(in[i] == (unsigned char)round);
    }
    if (check_rank == 0) {
        shared = mmap(NULL, block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(shared != MAP_FAILED);
        memset(shared, round, block);
        memset(written, round, block);
        MPI_Send(shared, (int)block, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank != 0) return;
    writes_on = 1;
    writes_begun = 0;
    CHECK(pthread_create(&writer, NULL, write_on, NULL) == 0);
    while (!writes_begun) sched_yield();
    for (int i = 0; i < 20; i++) {
        MPI_Request request;
        MPI_Send_init(shared, (int)block, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
    writes_on = 0;
    CHECK(pthread_join(writer, NULL) == 0);
    CHECK(memcmp(shared, written, block) == 0);
}

static const struct {
    const char *name;
    void (*run)(int round);
} ways[] = {{"reduce", reduce},         {"scan", scan},           {"exscan", exscan},
            {"reduce_scatter", reduce_scatter}, {"ireduce", ireduce}, {"iallreduce", iallreduce},
            {"ibcast", ibcast},         {"iallgather", iallgather}, {"ialltoall", ialltoall},
            {"igather", igather},       {"alltoallw", alltoallw}, {"neighbors", neighbors},
            {"gaps", gaps},             {"prepared", prepared}};

int main(int argc, char **argv) {
    CHECK(argc == 4);
    life = atoi(argv[3]);
    CHECK(life > 0);
    int rounds = atoi(argv[2]), known = 0;
    check_init(&argc, &argv);
    CHECK(check_size <= 10);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(ways[i].name, argv[1]) != 0) continue;
        known = 1;
        for (int round = 0; round < rounds; round++) {
            if (round % life == 0) renew();
            ways[i].run(round);
        }
    }
    CHECK(known);
    return check_finish();
}
