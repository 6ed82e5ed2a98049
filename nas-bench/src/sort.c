/* sort: radix sort and sample sort of random keys, as one of the libraries of E. Brewer's thesis (1994).

   Radix sort moves every key once for each digit, to a place that the counts of all processes give;
   sample sort moves every key once, to the process whose range it is in. Keys go in buffers by
   destination, sent when full and received from any source. */
#include "keys.h"
#include "mail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALGORITHM_RADIX, ALGORITHM_SAMPLE };
static const char *const algorithm_names[] = {"radix", "sample", NULL};

static const struct {
    long keys, repetitions;
} classes[CLASSES] = {{1 << 14, 2}, {1 << 20, 6}, {1 << 22, 6}, {1 << 24, 6}};

struct settings {
    int class, algorithm;
    long keys, width, digit, oversampling, buffer;
};

/* A key on its way; sample sort does not use the place. */
struct item {
    uint32_t key, place;
};

struct sort {
    const struct settings *settings;
    struct mail *mail;
    long total;
    struct keys keys, arriving; /* the second is also scratch memory */
};

/* Puts keys that have arrived into their places. */
static void place_keys(void *owner, int source, const void *items, long count)
{
    struct sort *sort = owner;
    const struct item *item = items;
    (void)source;
    for (long i = 0; i < count; i++)
        sort->arriving.key[item[i].place] = item[i].key;
}

/* Takes keys that have arrived, in any order. */
static void append_keys(void *owner, int source, const void *items, long count)
{
    struct keys *arriving = &((struct sort *)owner)->arriving;
    const struct item *item = items;
    (void)source;
    if (arriving->count + count > arriving->room) {
        arriving->room = 2 * arriving->room + count;
        uint32_t *larger = allocate((size_t)arriving->room * sizeof *larger);
        memcpy(larger, arriving->key, (size_t)arriving->count * sizeof *larger);
        free(arriving->key);
        arriving->key = larger;
    }
    for (long i = 0; i < count; i++)
        arriving->key[arriving->count++] = item[i].key;
}

static void take_arrived(struct sort *sort)
{
    struct keys keys = sort->keys;
    sort->keys = sort->arriving;
    sort->arriving = keys;
}

/* Where this process's first key of each numeral goes, counted over all processes. */
static void find_places(const struct sort *sort, long shift, long numerals, int64_t *place, int64_t *totals)
{
    int64_t before = 0;
    memset(totals, 0, (size_t)numerals * sizeof *totals);
    for (long i = 0; i < sort->keys.count; i++)
        totals[sort->keys.key[i] >> shift & (numerals - 1)]++;
    MPI_Exscan(totals, place, (int)numerals, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (process_rank() == 0)
        memset(place, 0, (size_t)numerals * sizeof *place);
    MPI_Allreduce(MPI_IN_PLACE, totals, (int)numerals, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (long n = 0; n < numerals; n++) {
        place[n] += before;
        before += totals[n];
    }
}

static void radix_sort(struct sort *sort)
{
    const struct settings *s = sort->settings;
    int processes = process_count(), rank = process_rank();
    long numerals = 1L << s->digit;
    int64_t *place = allocate((size_t)numerals * sizeof *place), *totals = allocate((size_t)numerals * sizeof *totals);
    long *begin = allocate((size_t)(processes + 1) * sizeof *begin);
    for (int p = 0; p <= processes; p++)
        begin[p] = share_begin(sort->total, processes, p);
    for (long shift = 0; shift < s->width; shift += s->digit) {
        find_places(sort, shift, numerals, place, totals);
        for (long i = 0; i < sort->keys.count; i++) {
            uint32_t key = sort->keys.key[i];
            long to = place[key >> shift & (numerals - 1)]++;
            int owner = share_owner(sort->total, processes, to);
            mail_post(sort->mail, owner, &(struct item){key, (uint32_t)(to - begin[owner])});
        }
        mail_end_phase(sort->mail);
        sort->arriving.count = begin[rank + 1] - begin[rank];
        take_arrived(sort);
    }
    free(place);
    free(totals);
    free(begin);
}

/* The first key of each process but the first, from a sample of all keys. */
static void find_splitters(struct sort *sort, uint64_t seed, uint32_t *splitters)
{
    long own = sort->settings->oversampling;
    int processes = process_count(), rank = process_rank();
    struct keys sample = make_keys(own * processes), scratch = make_keys(own * processes);
    sample.count = own * processes;
    for (long i = 0; i < own; i++) {
        uint64_t random = mix(seed ^ mix((uint64_t)(rank * own + i)));
        /* A process without keys adds nothing but the largest number. */
        uint32_t key = sort->keys.count > 0 ? sort->keys.key[random % (uint64_t)sort->keys.count] : UINT32_MAX;
        scratch.key[i] = key;
    }
    MPI_Gather(scratch.key, (int)own, MPI_UINT32_T, sample.key, (int)own, MPI_UINT32_T, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        sort_keys(&sample, &scratch, 32);
        for (int p = 1; p < processes; p++)
            splitters[p - 1] = sample.key[p * own];
    }
    MPI_Bcast(splitters, processes - 1, MPI_UINT32_T, 0, MPI_COMM_WORLD);
    free_keys(&sample);
    free_keys(&scratch);
}

static void sample_sort(struct sort *sort, uint64_t seed)
{
    int processes = process_count();
    uint32_t *splitters = allocate((size_t)processes * sizeof *splitters);
    find_splitters(sort, seed, splitters);
    sort->arriving.count = 0;
    for (long i = 0; i < sort->keys.count; i++) {
        uint32_t key = sort->keys.key[i];
        int low = 0, high = processes - 1;
        while (low < high) {
            int middle = (low + high) / 2;
            if (key < splitters[middle])
                high = middle;
            else
                low = middle + 1;
        }
        mail_post(sort->mail, low, &(struct item){key, 0});
    }
    mail_end_phase(sort->mail);
    take_arrived(sort);
    if (sort->arriving.room < sort->keys.count) {
        free_keys(&sort->arriving);
        sort->arriving = make_keys(sort->keys.room);
    }
    sort_keys(&sort->keys, &sort->arriving, sort->settings->width);
    free(splitters);
}

int main(int argc, char **argv)
{
    struct settings s = {.class = CLASS_A, .width = 28, .digit = 8, .oversampling = 64, .buffer = 512};
    const struct option_entry options[] = {
        CLASS_OPTION(&s.class),
        {"--algorithm", "how to sort", OPTION_CHOICE, &s.algorithm, 0, 0, algorithm_names},
        {"--keys", "keys of each process (0: as the class says)", OPTION_NUMBER, &s.keys, 0, 1 << 28, NULL},
        {"--width", "bits of a key", OPTION_NUMBER, &s.width, 4, 32, NULL},
        {"--digit", "bits of a digit of radix sort", OPTION_NUMBER, &s.digit, 1, 16, NULL},
        {"--oversample", "keys of each process in the sample of sample sort", OPTION_NUMBER, &s.oversampling, 1, 4096,
         NULL},
        {"--buffer", "keys in a message", OPTION_NUMBER, &s.buffer, 1, 1 << 20, NULL},
        {0}};
    struct sort sort = {.settings = &s};
    struct outcome outcome = {.program = "SORT: keys in buffers by destination", .unit = "keys", .verified = true};
    uint64_t sum = 0;

    MPI_Init(&argc, &argv);
    read_options(argc, argv, options);
    int processes = process_count();
    long repetitions = classes[s.class].repetitions;
    sort.total = s.keys > 0 ? s.keys * processes : classes[s.class].keys;
    long room = sort.total / processes + 1;
    sort.keys = make_keys(room);
    sort.arriving = make_keys(room);
    sort.mail = mail_open(sizeof(struct item), s.buffer, s.algorithm == ALGORITHM_RADIX ? place_keys : append_keys,
                          &sort);
    for (long repetition = 0; repetition < repetitions; repetition++) {
        if (sort.keys.room < room) {
            free_keys(&sort.keys);
            sort.keys = make_keys(room);
        }
        fill_keys(&sort.keys, sort.total, s.width, (uint64_t)repetition);
        struct multiset before = multiset_of(&sort.keys);
        double start = clock_start();
        if (s.algorithm == ALGORITHM_RADIX)
            radix_sort(&sort);
        else
            sample_sort(&sort, (uint64_t)repetition);
        outcome.seconds += clock_stop(start);
        outcome.verified = verify_sorted(&sort.keys, before) && outcome.verified;
        sum = mix(sum ^ order_sum(&sort.keys));
    }
    mail_close(sort.mail);
    free_keys(&sort.keys);
    free_keys(&sort.arriving);
    outcome.class = s.class;
    outcome.operations = (double)sort.total * (double)repetitions;
    snprintf(outcome.size, sizeof outcome.size, "%ld keys of %ld bits, %ld times, %s sort", sort.total, s.width,
             repetitions, algorithm_names[s.algorithm]);
    snprintf(outcome.result, sizeof outcome.result, "checksum %016llx", (unsigned long long)sum);
    return finish(&outcome);
}
