/* is: NAS IS, ranks of integers by a bucket sort (NASA report RNR-94-007).

   In each iteration two keys change, every process counts its keys by bucket, the counts are summed up
   over all processes, which gives each a range of buckets, and all keys go to the process whose range
   they are in. Five ranks are compared with the official ones in each iteration, and after the last
   all keys are checked to be sorted and the same as before. */
#include "keys.h"
#include "nas_random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITERATIONS = 10, TESTS = 5, BUCKET_BITS = 10, BUCKETS = 1 << BUCKET_BITS };

/* A class of the suite: keys from 0 to below 2**key_bits, the places of the tested keys, and the ranks
   that these begin with. The official rank of test t in iteration i is rank[t] + direction[t] * i + shift[t]. */
static const struct {
    int total_bits, key_bits;
    long place[TESTS], rank[TESTS];
    int direction[TESTS], shift[TESTS];
} classes[CLASSES] = {
    {16, 11, {48427, 17148, 23627, 62548, 4431}, {0, 18, 346, 64917, 65463}, {1, 1, 1, -1, -1}, {0}},
    {20, 16, {357773, 934767, 875723, 898999, 404505}, {1249, 11698, 1039987, 1043896, 1048018}, {1, 1, -1, -1, -1},
     {-2, -2, 0, 0, 0}},
    {23, 19, {2112377, 662041, 5336171, 3642833, 4250760}, {104, 17523, 123928, 8288932, 8388264}, {1, 1, 1, -1, -1},
     {-1, -1, -1, 1, 1}},
    {25, 21, {41869, 812306, 5102857, 18232239, 26860214}, {33422937, 10244, 59149, 33135281, 99}, {-1, 1, 1, -1, 1},
     {0}},
};

struct sorter {
    int class, processes, rank;
    long total, begin;
    struct keys keys, by_bucket, arrived;
    uint32_t first, last; /* this process's range of keys, the last not included */
    int64_t before;       /* keys of all processes that are less than the first */
    int64_t *below;       /* for each key of the range the number of keys there that are less, and one more entry */
    int *send_counts, *send_places, *receive_counts, *receive_places;
};

static void make_all_keys(struct sorter *sorter)
{
    uint64_t state = nas_state(4 * (uint64_t)sorter->begin);
    double quarter = (double)(1 << classes[sorter->class].key_bits) / 4;
    for (long i = 0; i < sorter->keys.count; i++) {
        double sum = nas_next(&state);
        sum += nas_next(&state);
        sum += nas_next(&state);
        sum += nas_next(&state);
        sorter->keys.key[i] = (uint32_t)(quarter * sum);
    }
}

/* The process of each bucket: the sums over all processes are cut where the keys are evenly shared. */
static void share_buckets(struct sorter *sorter, const int64_t *own, const int64_t *all)
{
    int shift = classes[sorter->class].key_bits - BUCKET_BITS, process = 0;
    int64_t keys = 0;
    memset(sorter->send_counts, 0, (size_t)sorter->processes * sizeof *sorter->send_counts);
    sorter->first = sorter->last = 0;
    for (int b = 0; b < BUCKETS; b++) {
        /* The next process begins where those before have their share; few keys may leave one without a bucket. */
        while (process + 1 < sorter->processes && keys >= share_begin(sorter->total, sorter->processes, process + 1))
            process++;
        if (process == sorter->rank) {
            if (sorter->last == 0) {
                sorter->first = (uint32_t)b << shift;
                sorter->before = keys;
            }
            sorter->last = (uint32_t)(b + 1) << shift;
        }
        sorter->send_counts[process] += (int)own[b];
        keys += all[b];
    }
}

static void rank_keys(struct sorter *sorter)
{
    int shift = classes[sorter->class].key_bits - BUCKET_BITS;
    int64_t own[BUCKETS] = {0}, all[BUCKETS];
    long start[BUCKETS];
    for (long i = 0; i < sorter->keys.count; i++)
        own[sorter->keys.key[i] >> shift]++;
    for (long b = 0, sum = 0; b < BUCKETS; sum += own[b++])
        start[b] = sum;
    for (long i = 0; i < sorter->keys.count; i++)
        sorter->by_bucket.key[start[sorter->keys.key[i] >> shift]++] = sorter->keys.key[i];
    MPI_Allreduce(own, all, BUCKETS, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    share_buckets(sorter, own, all);
    MPI_Alltoall(sorter->send_counts, 1, MPI_INT, sorter->receive_counts, 1, MPI_INT, MPI_COMM_WORLD);
    sorter->arrived.count = 0;
    for (int p = 0; p < sorter->processes; p++) {
        sorter->send_places[p] = p == 0 ? 0 : sorter->send_places[p - 1] + sorter->send_counts[p - 1];
        sorter->receive_places[p] = (int)sorter->arrived.count;
        sorter->arrived.count += sorter->receive_counts[p];
    }
    if (sorter->arrived.count > sorter->arrived.room) {
        free_keys(&sorter->arrived);
        long count = sorter->arrived.count;
        sorter->arrived = make_keys(count + count / 8);
        sorter->arrived.count = count;
    }
    MPI_Alltoallv(sorter->by_bucket.key, sorter->send_counts, sorter->send_places, MPI_UINT32_T, sorter->arrived.key,
                  sorter->receive_counts, sorter->receive_places, MPI_UINT32_T, MPI_COMM_WORLD);
    memset(sorter->below, 0, (sorter->last - sorter->first + 1) * sizeof *sorter->below);
    for (long i = 0; i < sorter->arrived.count; i++)
        sorter->below[sorter->arrived.key[i] - sorter->first + 1]++;
    for (uint32_t k = 0; k < sorter->last - sorter->first; k++)
        sorter->below[k + 1] += sorter->below[k];
}

/* Changes the two keys of an iteration. */
static void change_keys(struct sorter *sorter, int iteration)
{
    long places[] = {iteration, iteration + ITERATIONS};
    uint32_t values[] = {(uint32_t)iteration,
                         (uint32_t)((1 << classes[sorter->class].key_bits) - iteration)};
    for (int i = 0; i < 2; i++)
        if (places[i] >= sorter->begin && places[i] < sorter->begin + sorter->keys.count)
            sorter->keys.key[places[i] - sorter->begin] = values[i];
}

/* How many of the tested keys have the official rank, on this process. */
static int right_ranks(const struct sorter *sorter, int iteration, const uint32_t *tested)
{
    int right = 0;
    for (int t = 0; t < TESTS; t++) {
        if (tested[t] < sorter->first || tested[t] >= sorter->last)
            continue;
        long official = classes[sorter->class].rank[t] + classes[sorter->class].direction[t] * iteration +
                        classes[sorter->class].shift[t];
        right += sorter->before + sorter->below[tested[t] - sorter->first] == official;
    }
    return right;
}

/* The tested keys' values. */
static void find_tested(const struct sorter *sorter, uint32_t *tested)
{
    memset(tested, 0, TESTS * sizeof *tested);
    for (int t = 0; t < TESTS; t++) {
        long place = classes[sorter->class].place[t];
        if (place >= sorter->begin && place < sorter->begin + sorter->keys.count)
            tested[t] = sorter->keys.key[place - sorter->begin];
    }
    MPI_Allreduce(MPI_IN_PLACE, tested, TESTS, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
}

static void make_sorter(struct sorter *sorter, int class)
{
    sorter->class = class;
    sorter->processes = process_count();
    sorter->rank = process_rank();
    if (sorter->processes > BUCKETS / 2)
        refuse("%d processes are too many for %d buckets; use %d or fewer", sorter->processes, BUCKETS, BUCKETS / 2);
    sorter->total = 1L << classes[class].total_bits;
    sorter->begin = share_begin(sorter->total, sorter->processes, sorter->rank);
    long share = share_begin(sorter->total, sorter->processes, sorter->rank + 1) - sorter->begin;
    const size_t counts = (size_t)sorter->processes * sizeof(int);
    sorter->keys = make_keys(share);
    sorter->keys.count = share;
    sorter->by_bucket = make_keys(share);
    sorter->arrived = make_keys(share + share / 4);
    sorter->below = allocate(((size_t)(1 << classes[class].key_bits) + 1) * sizeof *sorter->below);
    sorter->send_counts = allocate(counts);
    sorter->send_places = allocate(counts);
    sorter->receive_counts = allocate(counts);
    sorter->receive_places = allocate(counts);
    make_all_keys(sorter);
}

static void free_sorter(struct sorter *sorter)
{
    free_keys(&sorter->keys);
    free_keys(&sorter->by_bucket);
    free_keys(&sorter->arrived);
    free(sorter->below);
    free(sorter->send_counts);
    free(sorter->send_places);
    free(sorter->receive_counts);
    free(sorter->receive_places);
}

/* Puts the arrived keys in order by their ranks and checks them against the keys before. */
static bool verify_order(struct sorter *sorter, uint64_t *sum)
{
    struct multiset before = multiset_of(&sorter->keys);
    struct keys sorted = make_keys(sorter->arrived.count);
    sorted.count = sorter->arrived.count;
    for (long i = 0; i < sorted.count; i++) {
        uint32_t key = sorter->arrived.key[i];
        sorted.key[sorter->below[key - sorter->first]++] = key;
    }
    bool right = verify_sorted(&sorted, before);
    *sum = order_sum(&sorted);
    free_keys(&sorted);
    return right;
}

int main(int argc, char **argv)
{
    int class = CLASS_A, right = 0;
    const struct option_entry options[] = {CLASS_OPTION(&class), {0}};
    struct sorter sorter = {0};
    struct outcome outcome = {.program = "NAS IS (written anew from the published problem)", .unit = "keys"};
    uint32_t tested[TESTS];
    uint64_t sum;

    MPI_Init(&argc, &argv);
    read_options(argc, argv, options);
    make_sorter(&sorter, class);
    /* One iteration outside the time touches all memory and opens all connections. */
    change_keys(&sorter, 1);
    rank_keys(&sorter);
    for (int iteration = 1; iteration <= ITERATIONS; iteration++) {
        change_keys(&sorter, iteration);
        find_tested(&sorter, tested);
        double start = clock_start();
        rank_keys(&sorter);
        outcome.seconds += clock_stop(start);
        right += right_ranks(&sorter, iteration, tested);
    }
    MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    outcome.verified = verify_order(&sorter, &sum) && right == TESTS * ITERATIONS;
    outcome.class = class;
    outcome.operations = (double)sorter.total * ITERATIONS;
    snprintf(outcome.size, sizeof outcome.size, "2**%d keys below 2**%d, %d iterations", classes[class].total_bits,
             classes[class].key_bits, ITERATIONS);
    snprintf(outcome.result, sizeof outcome.result, "%d of %d ranks official, checksum %016llx", right,
             TESTS * ITERATIONS, (unsigned long long)sum);
    free_sorter(&sorter);
    return finish(&outcome);
}
