/* Keys to be sorted: what the sorting workloads share. */
#ifndef KEYS_H
#define KEYS_H

#include "workload.h"

/* A process's keys, with memory for `room` of them. */
struct keys {
    uint32_t *key;
    long count, room;
};

/* An order-independent summary of keys, by which lost, doubled and changed ones show. */
struct multiset {
    uint64_t count, sum;
};

struct keys make_keys(long room);
void free_keys(struct keys *keys);
/* Puts this process's share of `total` random keys of `width` bits there; they depend on `seed` and
   their position alone. */
void fill_keys(struct keys *keys, long total, long width, uint64_t seed);

/* The multiset of the keys of all processes. */
struct multiset multiset_of(const struct keys *keys);

/* Sorts keys of `width` bits by their digits, the last first; `scratch` has the same room. */
void sort_keys(struct keys *keys, struct keys *scratch, long width);

/* Whether the keys are sorted over all processes and the same as before. */
bool verify_sorted(const struct keys *keys, struct multiset before);
/* A sum over the keys of all processes and their positions. */
uint64_t order_sum(const struct keys *keys);

#endif
