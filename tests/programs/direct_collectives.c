/* direct_collectives WAY ROUNDS LIFE [BLOCK]: a collective again and again from the same buffers, which are given back and
   allocated anew after LIFE rounds; then another rank is the root of those that have one. Every byte is checked in every round. */
#include "check.h"

static int life;
static size_t block = 40 * 4096 + 100;
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

static void bcast(int round) {
    int root = round / life % check_size;
    if (check_rank == root) check_fill(out, block, seed(round, root));
    else memset(out, 0x5a, block);
    MPI_Bcast(out, (int)block, MPI_BYTE, root, MPI_COMM_WORLD);
    check_equal(out, block, seed(round, root));
}

static void expect_all(int round) {
    for (int rank = 0; rank < check_size; rank++) check_equal(part(in, rank), block, seed(round, rank));
}

static void allgather(int round) {
    check_fill(out, block, seed(round, check_rank));
    memset(in, 0x5a, block * (size_t)check_size);
    MPI_Allgather(out, (int)block, MPI_BYTE, in, (int)block, MPI_BYTE, MPI_COMM_WORLD);
    expect_all(round);
}

static void alltoall(int round) {
    for (int rank = 0; rank < check_size; rank++) check_fill(part(out, rank), block, pair(round, check_rank, rank));
    memset(in, 0x5a, block * (size_t)check_size);
    MPI_Alltoall(out, (int)block, MPI_BYTE, in, (int)block, MPI_BYTE, MPI_COMM_WORLD);
    for (int rank = 0; rank < check_size; rank++) check_equal(part(in, rank), block, pair(round, rank, check_rank));
}

static void gather(int round) {
    check_fill(out, block, seed(round, check_rank));
    /* The arguments of what is received mean nothing but at the root. */
    if (check_rank == 0) {
        MPI_Gather(out, (int)block, MPI_BYTE, in, (int)block, MPI_BYTE, 0, MPI_COMM_WORLD);
        expect_all(round);
    } else {
        MPI_Gather(out, (int)block, MPI_BYTE, NULL, -7, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
    }
}

static void scatter(int round) {
    memset(in, 0x5a, block);
    if (check_rank == 0) {
        for (int rank = 0; rank < check_size; rank++) check_fill(part(out, rank), block, seed(round, rank));
        MPI_Scatter(out, (int)block, MPI_BYTE, in, (int)block, MPI_BYTE, 0, MPI_COMM_WORLD);
    } else {
        MPI_Scatter(NULL, -7, MPI_DATATYPE_NULL, in, (int)block, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    check_equal(in, block, seed(round, check_rank));
}

static void expect_sum(int round) {
    for (size_t i = 0; i < block; i++) {
        unsigned char all = 0;
        for (int rank = 0; rank < check_size; rank++) all ^= check_byte(seed(round, rank), i);
        CHECK(in[i] == all);
    }
}

static void allreduce(int round) {
    check_fill(out, block, seed(round, check_rank));
    MPI_Allreduce(out, in, (int)block, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect_sum(round);
}

/* What is received means something at the root alone, which may leave out what it sends. (Other roots than 0 may not with
   MPICH 4.0.2, which then copies from that address.) */
static void reduce(int round) {
    int root = round / life % check_size, in_place = root == 0 && round % 2;
    check_fill(check_rank == root && in_place ? in : out, block, seed(round, check_rank));
    if (check_rank != root) MPI_Reduce(out, NULL, (int)block, MPI_BYTE, MPI_BXOR, root, MPI_COMM_WORLD);
    else MPI_Reduce(in_place ? MPI_IN_PLACE : out, in, (int)block, MPI_BYTE, MPI_BXOR, root, MPI_COMM_WORLD);
    if (check_rank == root) expect_sum(round);
    else check_equal(out, block, seed(round, check_rank));
}

/* Of collectives with a count for each rank, in ints: what `from` sends to `to`. From some rank to the next nothing. */
static int length(int from, int to) {
    return to == (from + 1) % check_size && from == 1 ? 0 : (int)(block / 4) - 1024 * from - 512 * to - 7;
}

static int counts[2][10], places[2][10];

/* What a rank sends to each and receives from each lies in its part, some ints behind its beginning. */
static void lay_out(int sent, int received) {
    for (int rank = 0; rank < check_size; rank++) {
        places[0][rank] = places[1][rank] = (int)(block / 4) * rank + 3 + rank;
        counts[0][rank] = length(sent < 0 ? check_rank : sent, rank);
        counts[1][rank] = length(rank, received < 0 ? check_rank : received);
    }
}

static unsigned char *placed(unsigned char *data, int which, int rank) { return data + 4 * (size_t)places[which][rank]; }

static void fill_each(int round) {
    for (int rank = 0; rank < check_size; rank++)
        check_fill(placed(out, 0, rank), 4 * (size_t)counts[0][rank], pair(round, check_rank, rank));
    memset(in, 0x5a, block * (size_t)check_size);
}

static void alltoallv(int round) {
    lay_out(-1, -1);
    fill_each(round);
    MPI_Alltoallv(out, counts[0], places[0], MPI_INT, in, counts[1], places[1], MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < check_size; rank++)
        check_equal(placed(in, 1, rank), 4 * (size_t)counts[1][rank], pair(round, rank, check_rank));
}

static void allgatherv(int round) {
    lay_out(-1, 0);
    int own = counts[1][check_rank];
    check_fill(out, 4 * (size_t)own, seed(round, check_rank));
    memset(in, 0x5a, block * (size_t)check_size);
    MPI_Allgatherv(out, own, MPI_INT, in, counts[1], places[1], MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < check_size; rank++)
        check_equal(placed(in, 1, rank), 4 * (size_t)counts[1][rank], seed(round, rank));
}

/* The counts and places of what is received mean nothing but at the root. */
static void gatherv(int round) {
    int root = round / life % check_size, is_root = check_rank == root;
    lay_out(-1, root);
    int own = length(check_rank, root);
    check_fill(out, 4 * (size_t)own, seed(round, check_rank));
    MPI_Gatherv(out, own, MPI_INT, in, is_root ? counts[1] : NULL, is_root ? places[1] : NULL, MPI_INT, root,
                MPI_COMM_WORLD);
    for (int rank = 0; is_root && rank < check_size; rank++)
        check_equal(placed(in, 1, rank), 4 * (size_t)counts[1][rank], seed(round, rank));
}

static void scatterv(int round) {
    int root = round / life % check_size, is_root = check_rank == root;
    lay_out(root, -1);
    if (is_root) fill_each(round);
    int own = length(root, check_rank);
    MPI_Scatterv(out, is_root ? counts[0] : NULL, is_root ? places[0] : NULL, MPI_INT, in, own, MPI_INT, root,
                 MPI_COMM_WORLD);
    check_equal(in, 4 * (size_t)own, pair(round, root, check_rank));
}

/* What is not given may be anything. */
static void in_place(int round) {
    memset(in, 0x5a, block * (size_t)check_size);
    check_fill(part(in, check_rank), block, seed(round, check_rank));
    MPI_Allgather(MPI_IN_PLACE, -7, MPI_DATATYPE_NULL, in, (int)block, MPI_BYTE, MPI_COMM_WORLD);
    expect_all(round);
    check_fill(in, block, seed(round, check_rank));
    MPI_Allreduce(MPI_IN_PLACE, in, (int)block, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
    expect_sum(round);
    for (int rank = 0; rank < check_size; rank++) check_fill(part(in, rank), block, pair(round, check_rank, rank));
    MPI_Alltoall(MPI_IN_PLACE, -7, MPI_DATATYPE_NULL, in, (int)block, MPI_BYTE, MPI_COMM_WORLD);
    for (int rank = 0; rank < check_size; rank++) check_equal(part(in, rank), block, pair(round, rank, check_rank));
    int sizes[10], at[10];
    for (int rank = 0; rank < check_size; rank++) sizes[rank] = (int)block, at[rank] = (int)block * rank;
    for (int rank = 0; rank < check_size; rank++) check_fill(part(in, rank), block, pair(round, check_rank, rank));
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, in, sizes, at, MPI_BYTE, MPI_COMM_WORLD);
    for (int rank = 0; rank < check_size; rank++) check_equal(part(in, rank), block, pair(round, rank, check_rank));
}

/* Elements with holes, which other code may write at any time. */
static void holes(int round) {
    MPI_Datatype vector;
    int rows = 9, row = 8192, stride = 16384;
    MPI_Type_vector(rows, row, stride, MPI_BYTE, &vector);
    MPI_Type_commit(&vector);
    int root = round / life % check_size;
    if (check_rank == root) check_fill(out, block, seed(round, root));
    else memset(out, 0x5a, block);
    MPI_Bcast(out, 1, vector, root, MPI_COMM_WORLD);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < row; j++)
            CHECK(out[i * stride + j] == check_byte(seed(round, root), (size_t)(i * stride + j)));
    MPI_Type_free(&vector);
}

static const struct {
    const char *name;
    void (*run)(int round);
} ways[] = {{"bcast", bcast},     {"allgather", allgather}, {"alltoall", alltoall}, {"gather", gather},
            {"scatter", scatter}, {"allreduce", allreduce}, {"reduce", reduce},       {"in_place", in_place},
            {"holes", holes},     {"alltoallv", alltoallv}, {"allgatherv", allgatherv}, {"gatherv", gatherv},
            {"scatterv", scatterv}};

int main(int argc, char **argv) {
    CHECK(argc == 4 || argc == 5);
    life = atoi(argv[3]);
    if (argc == 5) block = strtoul(argv[4], NULL, 10);
    CHECK(life > 0 && block > 4000);
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
