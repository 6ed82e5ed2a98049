#include "keys.h"

#include <stdlib.h>
#include <string.h>

enum { DIGIT = 8, NUMERALS = 1 << DIGIT };

struct keys make_keys(long room)
{
    return (struct keys){allocate((size_t)room * sizeof(uint32_t)), 0, room};
}

void free_keys(struct keys *keys)
{
    free(keys->key);
    keys->key = NULL;
}

void fill_keys(struct keys *keys, long total, long width, uint64_t seed)
{
    long begin = share_begin(total, process_count(), process_rank());
    uint64_t sequence = mix(seed);
    keys->count = share_begin(total, process_count(), process_rank() + 1) - begin;
    for (long i = 0; i < keys->count; i++)
        keys->key[i] = (uint32_t)(mix(sequence + (uint64_t)(begin + i)) >> (64 - width));
}

struct multiset multiset_of(const struct keys *keys)
{
    struct multiset set = {(uint64_t)keys->count, 0};
    for (long i = 0; i < keys->count; i++)
        set.sum += mix(keys->key[i]);
    return (struct multiset){sum_of_all(set.count), sum_of_all(set.sum)};
}

void sort_keys(struct keys *keys, struct keys *scratch, long width)
{
    for (long shift = 0; shift < width; shift += DIGIT) {
        long start[NUMERALS + 1] = {0};
        for (long i = 0; i < keys->count; i++)
            start[(keys->key[i] >> shift) % NUMERALS + 1]++;
        for (int n = 0; n < NUMERALS; n++)
            start[n + 1] += start[n];
        for (long i = 0; i < keys->count; i++)
            scratch->key[start[(keys->key[i] >> shift) % NUMERALS]++] = keys->key[i];
        uint32_t *sorted = scratch->key;
        scratch->key = keys->key;
        keys->key = sorted;
    }
}

bool verify_sorted(const struct keys *keys, struct multiset before)
{
    int processes = process_count(), rank = process_rank();
    struct multiset after = multiset_of(keys);
    bool sorted = after.count == before.count && after.sum == before.sum;
    struct ends {
        uint32_t filled, first, last;
    } own = {0}, *all = allocate((size_t)processes * sizeof *all);

    for (long i = 1; i < keys->count; i++)
        sorted = sorted && keys->key[i - 1] <= keys->key[i];
    if (keys->count > 0)
        own = (struct ends){1, keys->key[0], keys->key[keys->count - 1]};
    MPI_Allgather(&own, 3, MPI_UINT32_T, all, 3, MPI_UINT32_T, MPI_COMM_WORLD);
    for (int p = 0; p < rank; p++)
        if (all[p].filled && own.filled)
            sorted = sorted && all[p].last <= own.first;
    free(all);
    return sorted;
}

uint64_t order_sum(const struct keys *keys)
{
    uint64_t position = 0, sum = 0, count = (uint64_t)keys->count;
    MPI_Exscan(&count, &position, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (process_rank() == 0)
        position = 0;
    for (long i = 0; i < keys->count; i++)
        sum += mix(keys->key[i] ^ mix(position + (uint64_t)i));
    return sum_of_all(sum);
}
