/* stencil: heat in a rod, in blocks that stay in a cache; copytune chooses the length of the blocks.

   A sweep takes all cells STEPS time steps further. Each block is copied with STEPS cells on either side and advanced in the copy. There
   the cells at the ends go wrong, one more with each step, and the block's own stay right. Short blocks compute many cells twice, long
   ones do not fit into the cache. */
#include "copytune.h"
#include "example.h"

#include <math.h>

enum { STEPS = 16, CHOICES = 6, WAVES = 500 };
static const double DIFFUSION = 0.25, PI = 3.14159265358979323846;

/* The default is the whole rod at a time, as it would be written first. */
static const char *const names[CHOICES] = {"whole", "64", "256", "1024", "4096", "16384"};

static long block_length(long choice, long cells)
{
    long length = choice == 0 ? cells : atol(names[choice]);
    return length < cells ? length : cells;
}

struct rod {
    long cells;           /* between the two ends, which stay at 0 */
    double *now, *next;
    double *here, *there; /* a block and what surrounds it */
};

static double *numbers(long count)
{
    return zeroed("stencil", count, sizeof(double));
}

/* A time step of a block; the cells at its ends stay. */
static void advance(const double *restrict here, double *restrict there, long length)
{
    there[0] = here[0];
    for (long i = 1; i < length - 1; i++)
        there[i] = here[i] + DIFFUSION * (here[i - 1] - 2 * here[i] + here[i + 1]);
    there[length - 1] = here[length - 1];
}

static void sweep_block(const struct rod *rod, long first, long count)
{
    long from = first > STEPS ? first - STEPS : 0;
    long end = first + count + STEPS < rod->cells + 2 ? first + count + STEPS : rod->cells + 2;
    double *here = rod->here, *there = rod->there;
    memcpy(here, rod->now + from, (size_t)(end - from) * sizeof *here);
    for (int step = 0; step < STEPS; step++) {
        advance(here, there, end - from);
        double *swapped = here;
        here = there;
        there = swapped;
    }
    memcpy(rod->next + first, here + (first - from), (size_t)count * sizeof *here);
}

static void sweep(struct rod *rod, long block)
{
    for (long first = 1; first <= rod->cells; first += block) {
        long left = rod->cells + 1 - first;
        sweep_block(rod, first, block < left ? block : left);
    }
    double *swapped = rod->now;
    rod->now = rod->next;
    rod->next = swapped;
}

/* Seconds of a sweep on a processor that takes a nanosecond for a cell, more outside its caches of 32 KiB and 1 MiB. */
static double model(long block, long cells)
{
    double computed = 1 + 2.0 * STEPS / (double)block;
    double bytes = 2 * sizeof(double) * (double)(block + 2 * STEPS);
    double slower = bytes <= 32768 ? 1 : bytes <= 1048576 ? 1.5 : 2.5;
    return 1e-9 * STEPS * (double)cells * computed * slower;
}

/* A sine wave keeps its form and gets flatter by the same factor with each step. */
static double angle(const struct rod *rod)
{
    return PI * WAVES / (double)(rod->cells + 1);
}

static bool is_right(const struct rod *rod, long steps)
{
    double half = sin(angle(rod) / 2), height = pow(1 - 4 * DIFFUSION * half * half, (double)steps);
    for (long i = 1; i <= rod->cells; i++)
        if (!(fabs(rod->now[i] - height * sin(angle(rod) * (double)i)) < 1e-9))
            return false;
    return true;
}

int main(int argc, char **argv)
{
    struct settings settings = {.choice = -1, .executions = 1000, .size = 131072};
    if (!read_settings(argc, argv, CHOICES, &settings))
        return 2;
    long cells = settings.size, chosen = 0;
    struct rod rod = {cells, numbers(cells + 2), numbers(cells + 2), numbers(cells + 2), numbers(cells + 2)};
    for (long i = 1; i <= cells; i++)
        rod.now[i] = sin(angle(&rod) * (double)i);

    struct costs costs = {0};
    int region = copytune_region("stencil");
    int block = copytune_variable(region, "block", CHOICES, names);
    for (long execution = 0; execution < settings.executions; execution++) {
        double start = now();
        copytune_begin(region);
        chosen = settings.choice >= 0 ? settings.choice : copytune_choice(region, block);
        long length = block_length(chosen, cells);
        sweep(&rod, length);
        /* What copytune has not chosen teaches it nothing. */
        if (settings.choice >= 0)
            copytune_drop(region);
        else if (settings.modelled)
            copytune_end_with(region, measured(&costs, model(length, cells)));
        else
            copytune_end(region);
        costs.seconds += now() - start;
        add_model(&costs, &settings, execution, model(length, cells));
    }

    bool verified = is_right(&rod, settings.executions * STEPS);
    char last[40];
    snprintf(last, sizeof last, "%ld (%s)", chosen, names[chosen]);
    printf("stencil in C: %ld sweeps of %d steps over %ld cells\n", settings.executions, STEPS, cells);
    report(&settings, &costs, last, verified);
    return verified ? 0 : 1;
}
