/* superstep: the three sorts of J. Perdue's thesis (1998) as bulk-synchronous programs.

   A program is a sequence of supersteps: every process reads its share of the keys, computes, writes
   the keys, exchanges them, and waits at a barrier. The keys lie well, next to each other, or badly,
   each in a cache line of its own, from where they are sent as they lie. */
#include "keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALGORITHM_COLUMN, ALGORITHM_RADIX, ALGORITHM_SAMPLE };
enum { PLACE_WELL, PLACE_BADLY };
enum { EXCHANGE_COLLECTIVE, EXCHANGE_PAIRS };
static const char *const algorithm_names[] = {"column", "radix", "sample", NULL};
static const char *const place_names[] = {"well", "badly", NULL};
static const char *const exchange_names[] = {"collective", "pairs", NULL};

/* The thesis counts 64 numerals and takes 100 keys of a process as its sample. */
enum { DIGIT = 6, NUMERALS = 1 << DIGIT, SAMPLE = 100, WIDTH = 30 };
enum { CACHE_LINE = 64 };

static const struct {
    long keys, repetitions;
} classes[CLASSES] = {{1 << 14, 2}, {1 << 19, 8}, {1 << 21, 8}, {1 << 23, 8}};

struct settings {
    int class, algorithm, place, exchange;
};

struct machine {
    const struct settings *settings;
    int processes, rank;
    long total;
    struct keys keys, scratch; /* what this process computes on */
    long stride;               /* from key to key in the two below */
    uint32_t *out, *in;        /* what it exchanges */
    MPI_Datatype type;         /* of a key there */
    int *send_counts, *send_places, *receive_counts, *receive_places;
};

static void end_superstep(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static int *make_counts(const struct machine *m)
{
    int *counts = allocate((size_t)m->processes * sizeof *counts);
    memset(counts, 0, (size_t)m->processes * sizeof *counts);
    return counts;
}

static void make_machine(struct machine *m, long room)
{
    const size_t bytes = (size_t)room * (size_t)m->stride * sizeof(uint32_t);
    m->keys = make_keys(room);
    m->scratch = make_keys(room);
    m->out = allocate(bytes);
    m->in = allocate(bytes);
    m->send_counts = make_counts(m);
    m->send_places = make_counts(m);
    m->receive_counts = make_counts(m);
    m->receive_places = make_counts(m);
    MPI_Type_create_resized(MPI_UINT32_T, 0, m->stride * (MPI_Aint)sizeof(uint32_t), &m->type);
    MPI_Type_commit(&m->type);
}

static void free_machine(struct machine *m)
{
    free_keys(&m->keys);
    free_keys(&m->scratch);
    free(m->out);
    free(m->in);
    free(m->send_counts);
    free(m->send_places);
    free(m->receive_counts);
    free(m->receive_places);
    MPI_Type_free(&m->type);
}

/* Copies keys to where they are sent from, and from where they have arrived. */
static void copy_out(struct machine *m, long place, const uint32_t *keys, long count)
{
    for (long i = 0; i < count; i++)
        m->out[(place + i) * m->stride] = keys[i];
}

static void copy_in(const struct machine *m, long place, uint32_t *keys, long count)
{
    for (long i = 0; i < count; i++)
        keys[i] = m->in[(place + i) * m->stride];
}

/* Sends and receives keys, as many as the counts say; they lie in the order of the processes. */
static void exchange(struct machine *m)
{
    for (int p = 1; p < m->processes; p++) {
        m->send_places[p] = m->send_places[p - 1] + m->send_counts[p - 1];
        m->receive_places[p] = m->receive_places[p - 1] + m->receive_counts[p - 1];
    }
    if (m->settings->exchange == EXCHANGE_COLLECTIVE) {
        MPI_Alltoallv(m->out, m->send_counts, m->send_places, m->type, m->in, m->receive_counts, m->receive_places,
                      m->type, MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < m->processes; i++) {
        int to = (m->rank + i) % m->processes, from = (m->rank - i + m->processes) % m->processes;
        MPI_Sendrecv(m->out + m->send_places[to] * m->stride, m->send_counts[to], m->type, to, 0,
                     m->in + m->receive_places[from] * m->stride, m->receive_counts[from], m->type, from, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* The rows of a column of Leighton's matrix, which has a column for each process: even, a multiple of
   the columns, and at least twice the square of one less. */
static long column_length(long total, int processes)
{
    long unit = processes % 2 == 0 ? processes : 2L * processes;
    long least = 2L * (processes - 1) * (processes - 1);
    long rows = (total + processes - 1) / processes;
    rows = rows > least ? rows : least;
    return (rows + unit - 1) / unit * unit;
}

/* One superstep: sorts the column and sends an equal part of it to each process, by turns (the matrix
   transposed) or in blocks (transposed back). In what order keys arrive does not matter: they are sorted. */
static void sort_and_transpose(struct machine *m, bool back)
{
    long rows = m->keys.count, part = rows / m->processes;
    sort_keys(&m->keys, &m->scratch, 32);
    if (back)
        copy_out(m, 0, m->keys.key, rows);
    else
        for (long k = 0; k < rows; k++)
            m->out[(k % m->processes * part + k / m->processes) * m->stride] = m->keys.key[k];
    for (int p = 0; p < m->processes; p++)
        m->send_counts[p] = m->receive_counts[p] = (int)part;
    exchange(m);
    copy_in(m, 0, m->keys.key, rows);
    end_superstep();
}

/* The last superstep: sorts the lower half of each column with the upper half of the next. */
static void sort_across_columns(struct machine *m)
{
    const int half = (int)(m->keys.count / 2);
    const size_t bytes = (size_t)half * sizeof(uint32_t);
    int left = m->rank > 0 ? m->rank - 1 : MPI_PROC_NULL;
    int right = m->rank + 1 < m->processes ? m->rank + 1 : MPI_PROC_NULL;
    copy_out(m, 0, m->keys.key + half, half);
    MPI_Sendrecv(m->out, half, m->type, right, 0, m->in, half, m->type, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (left != MPI_PROC_NULL) {
        struct keys joint = make_keys(2L * half);
        joint.count = 2L * half;
        copy_in(m, 0, joint.key, half);
        memcpy(joint.key + half, m->keys.key, bytes);
        sort_keys(&joint, &m->scratch, 32);
        copy_out(m, 0, joint.key, half);
        memcpy(m->keys.key, joint.key + half, bytes);
        free_keys(&joint);
    }
    MPI_Sendrecv(m->out, half, m->type, left, 0, m->in, half, m->type, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (right != MPI_PROC_NULL)
        copy_in(m, 0, m->keys.key + half, half);
    end_superstep();
}

static void column_sort(struct machine *m)
{
    long rows = column_length(m->total, m->processes);
    /* The largest numbers fill the columns up; they come last, and what comes last is dropped. */
    for (long i = m->keys.count; i < rows; i++)
        m->keys.key[i] = UINT32_MAX;
    m->keys.count = rows;
    end_superstep();
    sort_and_transpose(m, false);
    sort_and_transpose(m, true);
    sort_keys(&m->keys, &m->scratch, 32);
    end_superstep();
    sort_across_columns(m);
    long left = m->total - m->rank * rows;
    m->keys.count = left < 0 ? 0 : left < rows ? left : rows;
}

/* Supersteps 2 and 3 of a digit: for each numeral and process the place of its first key over all
   processes. Each process sums up a share of the numerals. */
static void add_up_counts(const struct machine *m, const int64_t *counts, int64_t *places)
{
    int *lengths = make_counts(m), *starts = make_counts(m);
    int64_t *totals = allocate(NUMERALS * sizeof *totals), before = 0;
    for (int p = 0; p < m->processes; p++) {
        starts[p] = (int)share_begin(NUMERALS, m->processes, p) * m->processes;
        lengths[p] = (int)share_begin(NUMERALS, m->processes, p + 1) * m->processes - starts[p];
    }
    for (int n = starts[m->rank] / m->processes; n * m->processes < starts[m->rank] + lengths[m->rank]; n++) {
        int64_t sum = 0;
        for (int p = 0; p < m->processes; p++) {
            places[n * m->processes + p] = sum;
            sum += counts[p * NUMERALS + n];
        }
    }
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, places, lengths, starts, MPI_INT64_T, MPI_COMM_WORLD);
    end_superstep();

    for (int n = 0; n < NUMERALS; n++) {
        int last = m->processes - 1;
        totals[n] = places[n * m->processes + last] + counts[last * NUMERALS + n];
        for (int p = 0; p < m->processes; p++)
            places[n * m->processes + p] += before;
        before += totals[n];
    }
    end_superstep();
    free(totals);
    free(lengths);
    free(starts);
}

/* Of the `count` places from `place` on, those that the share from `begin` to `end` has. */
static int overlap(int64_t place, int64_t count, int64_t begin, int64_t end)
{
    int64_t first = place > begin ? place : begin, last = place + count < end ? place + count : end;
    return last > first ? (int)(last - first) : 0;
}

/* Superstep 4: keys sorted by the digit go to where their places are. */
static void move_by_digit(struct machine *m, long shift, const int64_t *counts, const int64_t *places)
{
    long start[NUMERALS + 1] = {0}, read = 0;
    int64_t begin = share_begin(m->total, m->processes, m->rank);
    int64_t end = share_begin(m->total, m->processes, m->rank + 1);
    for (int n = 0; n < NUMERALS; n++)
        start[n + 1] = start[n] + counts[m->rank * NUMERALS + n];
    for (long i = 0; i < m->keys.count; i++)
        copy_out(m, start[m->keys.key[i] >> shift & (NUMERALS - 1)]++, &m->keys.key[i], 1);
    for (int p = 0; p < m->processes; p++) {
        int64_t their_begin = share_begin(m->total, m->processes, p);
        int64_t their_end = share_begin(m->total, m->processes, p + 1);
        m->send_counts[p] = m->receive_counts[p] = 0;
        for (int n = 0; n < NUMERALS; n++) {
            m->send_counts[p] += overlap(places[n * m->processes + m->rank], counts[m->rank * NUMERALS + n],
                                         their_begin, their_end);
            m->receive_counts[p] += overlap(places[n * m->processes + p], counts[p * NUMERALS + n], begin, end);
        }
    }
    exchange(m);
    for (int p = 0; p < m->processes; p++) {
        for (int n = 0; n < NUMERALS; n++) {
            int64_t place = places[n * m->processes + p];
            int count = overlap(place, counts[p * NUMERALS + n], begin, end);
            copy_in(m, read, m->keys.key + ((place > begin ? place : begin) - begin), count);
            read += count;
        }
    }
    m->keys.count = end - begin;
    end_superstep();
}

static void radix_sort(struct machine *m)
{
    const size_t bytes = (size_t)(m->processes * NUMERALS) * sizeof(int64_t);
    int64_t *counts = allocate(bytes), *places = allocate(bytes);
    for (long shift = 0; shift < WIDTH; shift += DIGIT) {
        int64_t *own = counts + m->rank * NUMERALS;
        memset(own, 0, NUMERALS * sizeof *own);
        for (long i = 0; i < m->keys.count; i++)
            own[m->keys.key[i] >> shift & (NUMERALS - 1)]++;
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, counts, NUMERALS, MPI_INT64_T, MPI_COMM_WORLD);
        end_superstep();
        add_up_counts(m, counts, places);
        move_by_digit(m, shift, counts, places);
    }
    free(counts);
    free(places);
}

/* The bucket of a key: the number of splitters that are not greater. */
static int bucket_of(const uint32_t *splitters, int buckets, uint32_t key)
{
    int low = 0, high = buckets - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (key < splitters[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void sample_sort(struct machine *m, uint64_t seed)
{
    struct keys sample = make_keys((long)SAMPLE * m->processes), scratch = make_keys((long)SAMPLE * m->processes);
    uint32_t *own = sample.key + SAMPLE * m->rank;
    int *start = make_counts(m);
    sample.count = sample.room;
    for (int i = 0; i < SAMPLE; i++) {
        uint64_t random = mix(seed ^ mix((uint64_t)(m->rank * SAMPLE + i)));
        own[i] = m->keys.count > 0 ? m->keys.key[random % (uint64_t)m->keys.count] : UINT32_MAX;
    }
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, sample.key, SAMPLE, MPI_UINT32_T, MPI_COMM_WORLD);
    end_superstep();

    sort_keys(&sample, &scratch, 32);
    uint32_t *splitters = scratch.key;
    for (int p = 1; p < m->processes; p++)
        splitters[p - 1] = sample.key[p * SAMPLE];
    memset(m->send_counts, 0, (size_t)m->processes * sizeof *m->send_counts);
    for (long i = 0; i < m->keys.count; i++)
        m->send_counts[bucket_of(splitters, m->processes, m->keys.key[i])]++;
    end_superstep();

    MPI_Alltoall(m->send_counts, 1, MPI_INT, m->receive_counts, 1, MPI_INT, MPI_COMM_WORLD);
    long arriving = 0;
    for (int p = 0; p < m->processes; p++)
        arriving += m->receive_counts[p];
    for (int p = 1; p < m->processes; p++)
        start[p] = start[p - 1] + m->send_counts[p - 1];
    end_superstep();

    for (long i = 0; i < m->keys.count; i++)
        copy_out(m, start[bucket_of(splitters, m->processes, m->keys.key[i])]++, &m->keys.key[i], 1);
    if (arriving > m->keys.room)
        fail("process %d is to sort %ld keys and has room for %ld; the sample was bad", m->rank, arriving,
             m->keys.room);
    exchange(m);
    m->keys.count = arriving;
    copy_in(m, 0, m->keys.key, arriving);
    end_superstep();

    sort_keys(&m->keys, &m->scratch, WIDTH);
    end_superstep();
    free(start);
    free_keys(&sample);
    free_keys(&scratch);
}

int main(int argc, char **argv)
{
    struct settings s = {.class = CLASS_A};
    const struct option_entry options[] = {
        CLASS_OPTION(&s.class),
        {"--algorithm", "how to sort", OPTION_CHOICE, &s.algorithm, 0, 0, algorithm_names},
        {"--place", "how keys lie in memory", OPTION_CHOICE, &s.place, 0, 0, place_names},
        {"--exchange", "calls that exchange keys", OPTION_CHOICE, &s.exchange, 0, 0, exchange_names},
        {0}};
    struct machine m = {.settings = &s};
    struct outcome outcome = {.program = "SUPERSTEP: sorts with a barrier after each step", .unit = "keys",
                              .verified = true};
    uint64_t sum = 0;

    MPI_Init(&argc, &argv);
    read_options(argc, argv, options);
    m.processes = process_count();
    m.rank = process_rank();
    m.total = classes[s.class].keys;
    m.stride = s.place == PLACE_WELL ? 1 : CACHE_LINE / (long)sizeof(uint32_t);
    if (m.processes > m.total / SAMPLE)
        refuse("%d processes are too many for the sample of %ld keys; use %ld or fewer", m.processes, m.total,
               m.total / SAMPLE);
    /* Twice a share: no sample of 100 keys a process misses by so much. */
    long rows = column_length(m.total, m.processes);
    make_machine(&m, s.algorithm == ALGORITHM_SAMPLE ? 2 * rows : rows);
    for (long repetition = 0; repetition < classes[s.class].repetitions; repetition++) {
        fill_keys(&m.keys, m.total, WIDTH, (uint64_t)repetition);
        struct multiset before = multiset_of(&m.keys);
        double start = clock_start();
        switch (s.algorithm) {
        case ALGORITHM_COLUMN:
            column_sort(&m);
            break;
        case ALGORITHM_RADIX:
            radix_sort(&m);
            break;
        case ALGORITHM_SAMPLE:
            sample_sort(&m, (uint64_t)repetition);
            break;
        }
        outcome.seconds += clock_stop(start);
        outcome.verified = verify_sorted(&m.keys, before) && outcome.verified;
        sum = mix(sum ^ order_sum(&m.keys));
    }
    free_machine(&m);
    outcome.class = s.class;
    outcome.operations = (double)m.total * (double)classes[s.class].repetitions;
    snprintf(outcome.size, sizeof outcome.size, "%ld keys, %ld times, %s sort, keys placed %s, %s", m.total,
             classes[s.class].repetitions, algorithm_names[s.algorithm], place_names[s.place],
             exchange_names[s.exchange]);
    snprintf(outcome.result, sizeof outcome.result, "checksum %016llx", (unsigned long long)sum);
    return finish(&outcome);
}
