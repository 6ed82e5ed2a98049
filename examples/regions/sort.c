/* sort: a radix sort, from the lowest digit to the highest; copytune chooses the width of the digits.

   Wide digits need few passes over the keys, but so many buckets that their ends do not stay in the cache. */
#include "copytune.h"
#include "example.h"

#include <stdint.h>

enum { KEY_BITS = 32, CHOICES = 6, WIDEST = 16 };

/* The default is a byte, as it would be written first. */
static const char *const names[CHOICES] = {"8", "4", "6", "11", "13", "16"};
static const int widths[CHOICES] = {8, 4, 6, 11, 13, 16};

static uint32_t *numbers(long count)
{
    return zeroed("sort", count, sizeof(uint32_t));
}

/* Sorts the keys by the digit that begins at that bit, and leaves those with equal digits in their order. */
static void pass(const uint32_t *restrict from, uint32_t *restrict to, long count, int shift, int width)
{
    static uint32_t ends[1 << WIDEST];
    uint32_t buckets = 1u << width, mask = buckets - 1, sum = 0;
    memset(ends, 0, buckets * sizeof *ends);
    for (long i = 0; i < count; i++)
        ends[from[i] >> shift & mask]++;
    for (uint32_t b = 0; b < buckets; b++) {
        uint32_t size = ends[b];
        ends[b] = sum;
        sum += size;
    }
    for (long i = 0; i < count; i++)
        to[ends[from[i] >> shift & mask]++] = from[i];
}

/* Sorts the keys; where they lie then, one of the two. */
static uint32_t *sort(uint32_t *keys, uint32_t *room, long count, int width)
{
    for (int shift = 0; shift < KEY_BITS; shift += width) {
        pass(keys, room, count, shift, width);
        uint32_t *swapped = keys;
        keys = room;
        room = swapped;
    }
    return keys;
}

/* Seconds of a sort on a processor that takes a nanosecond for a key or a bucket in a pass, more for many buckets. */
static double model(int width, long count)
{
    int passes = (KEY_BITS + width - 1) / width;
    double slower = width > 8 ? 1 + 0.03 * (width - 8) : 1;
    return 1e-9 * passes * ((double)count * slower + (double)(1 << width));
}

/* New keys each time: no sort finds them in order. Their sum. */
static uint64_t draw(uint32_t *keys, long count, uint64_t *state)
{
    uint64_t sum = 0;
    for (long i = 0; i < count; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        keys[i] = (uint32_t)(*state >> 32);
        sum += keys[i];
    }
    return sum;
}

static bool is_right(const uint32_t *keys, long count, uint64_t sum)
{
    for (long i = 0; i < count; i++) {
        if (i > 0 && keys[i - 1] > keys[i])
            return false;
        sum -= keys[i];
    }
    return sum == 0;
}

int main(int argc, char **argv)
{
    struct settings settings = {.choice = -1, .executions = 2000, .size = 65536};
    if (!read_settings(argc, argv, CHOICES, &settings))
        return 2;
    long count = settings.size, chosen = 0;
    uint32_t *keys = numbers(count), *room = numbers(count);
    uint64_t state = 1;
    bool verified = true;

    struct costs costs = {0};
    int region = copytune_region("sort");
    int digit = copytune_variable(region, "digit", CHOICES, names);
    for (long execution = 0; execution < settings.executions; execution++) {
        uint64_t sum = draw(keys, count, &state);
        double start = now();
        copytune_begin(region);
        chosen = settings.choice >= 0 ? settings.choice : copytune_choice(region, digit);
        const uint32_t *sorted = sort(keys, room, count, widths[chosen]);
        /* What copytune has not chosen teaches it nothing. */
        if (settings.choice >= 0)
            copytune_drop(region);
        else if (settings.modelled)
            copytune_end_with(region, measured(&costs, model(widths[chosen], count)));
        else
            copytune_end(region);
        costs.seconds += now() - start;
        add_model(&costs, &settings, execution, model(widths[chosen], count));
        verified = verified && is_right(sorted, count, sum);
    }

    char last[40];
    snprintf(last, sizeof last, "%ld (%s)", chosen, names[chosen]);
    printf("sort in C: %ld sorts of %ld keys\n", settings.executions, count);
    report(&settings, &costs, last, verified);
    return verified ? 0 : 1;
}
