/* ft: NAS FT, a partial differential equation solved by three-dimensional FFTs (NASA report RNR-94-007).

   A random field is transformed; in each iteration its coefficients are damped by their frequencies and
   transformed back, and a checksum of 1024 elements is compared with the official one. The field is cut
   in slabs: along z where x and y are transformed, along x where z is. Between them all processes
   exchange a block with each other. */
#include "nas_random.h"
#include "workload.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef double complex number;

enum { MOST_ITERATIONS = 20, SUMMED = 1024, LONGEST = 512 };
enum { EXCHANGE_COLLECTIVE, EXCHANGE_PAIRS };
static const char *const exchange_names[] = {"collective", "pairs", NULL};

static const double alpha = 1e-6, tolerance = 1e-12;

static const struct {
    int nx, ny, nz, iterations;
    double sums[MOST_ITERATIONS][2]; /* official, real and imaginary */
} classes[CLASSES] = {
    {64, 64, 64, 6,
     {{554.6087004964, 484.5363331978}, {554.6385409189, 486.5304269511}, {554.6148406171, 488.3910722336},
      {554.5423607415, 490.1273169046}, {554.4255039624, 491.7475857993}, {554.2683411902, 493.2597244941}}},
    {128, 128, 32, 6,
     {{567.3612178944, 529.3246849175}, {563.1436885271, 528.2149986629}, {559.4024089970, 527.0996558037},
      {556.0698047020, 526.0027904925}, {553.0898991250, 524.9400845633}, {550.4159734538, 523.9212247086}}},
    {256, 256, 128, 6,
     {{504.6735008193, 511.4047905510}, {505.9412319734, 509.8809666433}, {506.9376896287, 509.8144042213},
      {507.7892868474, 510.1336130759}, {508.5233095391, 510.4914655194}, {509.1487099959, 510.7917842803}}},
    {512, 256, 256, 20,
     {{517.7643571579, 507.7803458597}, {515.4521291263, 508.8249431599}, {514.6409228649, 509.6208912659},
      {514.2378756213, 510.1023387619}, {513.9626667737, 510.3976610617}, {513.7423460082, 510.5948019802},
      {513.5547056878, 510.7404165783}, {513.3910925466, 510.8576573661}, {513.2470705390, 510.9577278523},
      {513.1197729984, 511.0460304483}, {513.0070319283, 511.1252433800}, {512.9070537032, 511.1968077718},
      {512.8182883502, 511.2616233064}, {512.7393733383, 511.3203605551}, {512.6691062020, 511.3735928093},
      {512.6064276004, 511.4218460548}, {512.5504076570, 511.4656139760}, {512.5002331720, 511.5053595966},
      {512.4551951846, 511.5415130407}, {512.4146770029, 511.5744692211}}},
};

struct solver {
    int exchange, processes, rank;
    long nx, ny, nz;
    long x_begin, x_count, z_begin, z_count; /* this process's slabs */
    number *by_z;                            /* [z of the slab][y][x] */
    number *by_x;                            /* [x of the slab][y][z] */
    number *coefficients, *packed;           /* as by_x; scratch memory */
    int *z_counts, *z_places, *x_counts, *x_places;
    number roots[LONGEST]; /* roots[j] = exp(2 pi i j / LONGEST) */
};

/* Complex product without the special treatment of infinities that C's has. */
static inline number product(number a, number b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}

/* Transforms a line of n numbers, a power of two, with the sign of the exponent; Stockham's algorithm.
   The result is in `line`. */
static void transform_line(const struct solver *s, number *restrict line, number *restrict other, long n, int sign)
{
    number *from = line, *to = other;
    for (long half = n / 2, runs = 1; half >= 1; half /= 2, runs *= 2) {
        for (long j = 0; j < half; j++) {
            number root = s->roots[j * (LONGEST / (2 * half))];
            if (sign < 0)
                root = conj(root);
            for (long k = 0; k < runs; k++) {
                number a = from[j * runs + k], b = from[(j + half) * runs + k];
                to[2 * j * runs + k] = a + b;
                to[(2 * j + 1) * runs + k] = product(a - b, root);
            }
        }
        number *swap = from;
        from = to;
        to = swap;
    }
    if (from != line)
        for (long i = 0; i < n; i++)
            line[i] = from[i];
}

/* Transforms `lines` lines whose numbers are `step` apart, each beginning one after the other. */
static void transform_lines(const struct solver *s, number *first, long lines, long step, long n, int sign)
{
    enum { BLOCK = 8 };
    number line[BLOCK][LONGEST], other[LONGEST];
    for (long begin = 0; begin < lines; begin += BLOCK) {
        long count = lines - begin < BLOCK ? lines - begin : BLOCK;
        for (long i = 0; i < n; i++)
            for (long l = 0; l < count; l++)
                line[l][i] = first[i * step + begin + l];
        for (long l = 0; l < count; l++)
            transform_line(s, line[l], other, n, sign);
        for (long i = 0; i < n; i++)
            for (long l = 0; l < count; l++)
                first[i * step + begin + l] = line[l][i];
    }
}

static void transform_x_and_y(const struct solver *s, int sign)
{
    number other[LONGEST];
    for (long z = 0; z < s->z_count; z++) {
        number *plane = s->by_z + z * s->ny * s->nx;
        for (long y = 0; y < s->ny; y++)
            transform_line(s, plane + y * s->nx, other, s->nx, sign);
        transform_lines(s, plane, s->nx, s->nx, s->ny, sign);
    }
}

static void transform_z(const struct solver *s, int sign)
{
    number other[LONGEST];
    for (long line = 0; line < s->x_count * s->ny; line++)
        transform_line(s, s->by_x + line * s->nz, other, s->nz, sign);
}

static void exchange(const struct solver *s, const number *out, const int *out_counts, const int *out_places,
                     number *in, const int *in_counts, const int *in_places)
{
    if (s->exchange == EXCHANGE_COLLECTIVE) {
        MPI_Alltoallv(out, out_counts, out_places, MPI_C_DOUBLE_COMPLEX, in, in_counts, in_places,
                      MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < s->processes; i++) {
        int to = (s->rank + i) % s->processes, from = (s->rank - i + s->processes) % s->processes;
        MPI_Sendrecv(out + out_places[to], out_counts[to], MPI_C_DOUBLE_COMPLEX, to, 0, in + in_places[from],
                     in_counts[from], MPI_C_DOUBLE_COMPLEX, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* From slabs along z to slabs along x. A block is packed as [x][y][z]. */
static void transpose_forth(struct solver *s)
{
    for (int p = 0; p < s->processes; p++) {
        number *block = s->packed + s->z_places[p];
        long begin = share_begin(s->nx, s->processes, p), count = share_begin(s->nx, s->processes, p + 1) - begin;
        for (long z = 0; z < s->z_count; z++)
            for (long y = 0; y < s->ny; y++)
                for (long x = 0; x < count; x++)
                    block[(x * s->ny + y) * s->z_count + z] = s->by_z[(z * s->ny + y) * s->nx + begin + x];
    }
    exchange(s, s->packed, s->z_counts, s->z_places, s->by_z, s->x_counts, s->x_places);
    for (int p = 0; p < s->processes; p++) {
        const number *block = s->by_z + s->x_places[p];
        long begin = share_begin(s->nz, s->processes, p), count = share_begin(s->nz, s->processes, p + 1) - begin;
        for (long line = 0; line < s->x_count * s->ny; line++)
            for (long z = 0; z < count; z++)
                s->by_x[line * s->nz + begin + z] = block[line * count + z];
    }
}

static void transpose_back(struct solver *s)
{
    for (int p = 0; p < s->processes; p++) {
        number *block = s->packed + s->x_places[p];
        long begin = share_begin(s->nz, s->processes, p), count = share_begin(s->nz, s->processes, p + 1) - begin;
        for (long line = 0; line < s->x_count * s->ny; line++)
            for (long z = 0; z < count; z++)
                block[line * count + z] = s->by_x[line * s->nz + begin + z];
    }
    exchange(s, s->packed, s->x_counts, s->x_places, s->by_x, s->z_counts, s->z_places);
    for (int p = 0; p < s->processes; p++) {
        const number *block = s->by_x + s->z_places[p];
        long begin = share_begin(s->nx, s->processes, p), count = share_begin(s->nx, s->processes, p + 1) - begin;
        for (long z = 0; z < s->z_count; z++)
            for (long y = 0; y < s->ny; y++)
                for (long x = 0; x < count; x++)
                    s->by_z[(z * s->ny + y) * s->nx + begin + x] = block[(x * s->ny + y) * s->z_count + z];
    }
}

static void make_solver(struct solver *s, int class)
{
    s->nx = classes[class].nx;
    s->ny = classes[class].ny;
    s->nz = classes[class].nz;
    s->processes = process_count();
    s->rank = process_rank();
    if (s->processes > s->nz || s->processes > s->nx)
        refuse("%d processes are too many for class %s, which has %ld planes; use fewer", s->processes,
               class_names[class], s->nz < s->nx ? s->nz : s->nx);
    s->x_begin = share_begin(s->nx, s->processes, s->rank);
    s->x_count = share_begin(s->nx, s->processes, s->rank + 1) - s->x_begin;
    s->z_begin = share_begin(s->nz, s->processes, s->rank);
    s->z_count = share_begin(s->nz, s->processes, s->rank + 1) - s->z_begin;
    long by_z = s->z_count * s->ny * s->nx, by_x = s->x_count * s->ny * s->nz;
    /* Each of the two takes in the other's blocks for a while. */
    const size_t bytes = (size_t)(by_z > by_x ? by_z : by_x) * sizeof(number);
    s->by_z = allocate(bytes);
    s->by_x = allocate(bytes);
    s->packed = allocate(bytes);
    s->coefficients = allocate(bytes);
    const size_t counts = (size_t)s->processes * sizeof(int);
    s->z_counts = allocate(counts);
    s->z_places = allocate(counts);
    s->x_counts = allocate(counts);
    s->x_places = allocate(counts);
    for (int p = 0; p < s->processes; p++) {
        long x = share_begin(s->nx, s->processes, p), z = share_begin(s->nz, s->processes, p);
        s->z_places[p] = (int)(x * s->ny * s->z_count);
        s->x_places[p] = (int)(z * s->ny * s->x_count);
        s->z_counts[p] = (int)(share_begin(s->nx, s->processes, p + 1) * s->ny * s->z_count) - s->z_places[p];
        s->x_counts[p] = (int)(share_begin(s->nz, s->processes, p + 1) * s->ny * s->x_count) - s->x_places[p];
    }
    for (int j = 0; j < LONGEST; j++)
        s->roots[j] = CMPLX(cos(2 * M_PI * j / LONGEST), sin(2 * M_PI * j / LONGEST));
}

static void free_solver(struct solver *s)
{
    free(s->by_z);
    free(s->by_x);
    free(s->packed);
    free(s->coefficients);
    free(s->z_counts);
    free(s->z_places);
    free(s->x_counts);
    free(s->x_places);
}

static void fill_field(struct solver *s)
{
    uint64_t state = nas_state(2 * (uint64_t)(s->z_begin * s->ny * s->nx));
    for (long i = 0; i < s->z_count * s->ny * s->nx; i++) {
        double real = nas_next(&state);
        s->by_z[i] = CMPLX(real, nas_next(&state));
    }
}

/* The square of a frequency: those of the upper half are negative. */
static double square(long index, long n)
{
    long frequency = index < n / 2 ? index : index - n;
    return (double)(frequency * frequency);
}

/* Damps the coefficients as one step of time does, and copies them for the transform back. */
static void evolve(struct solver *s)
{
    const double rate = -4 * alpha * M_PI * M_PI;
    double z_factor[LONGEST];
    for (long z = 0; z < s->nz; z++)
        z_factor[z] = exp(rate * square(z, s->nz));
    for (long x = 0; x < s->x_count; x++) {
        for (long y = 0; y < s->ny; y++) {
            double factor = exp(rate * (square(s->x_begin + x, s->nx) + square(y, s->ny)));
            long line = (x * s->ny + y) * s->nz;
            for (long z = 0; z < s->nz; z++) {
                s->coefficients[line + z] *= factor * z_factor[z];
                s->by_x[line + z] = s->coefficients[line + z];
            }
        }
    }
}

static void checksum(const struct solver *s, double sum[2])
{
    number own = 0;
    for (long j = 1; j <= SUMMED; j++) {
        long x = j % s->nx, y = 3 * j % s->ny, z = 5 * j % s->nz - s->z_begin;
        if (z >= 0 && z < s->z_count)
            own += s->by_z[(z * s->ny + y) * s->nx + x];
    }
    sum[0] = creal(own) / (double)(s->nx * s->ny * s->nz);
    sum[1] = cimag(own) / (double)(s->nx * s->ny * s->nz);
    MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static struct solver solver;
    struct solver *s = &solver;
    int class = CLASS_A;
    const struct option_entry options[] = {
        CLASS_OPTION(&class),
        {"--exchange", "calls that exchange blocks", OPTION_CHOICE, &s->exchange, 0, 0, exchange_names},
        {0}};
    struct outcome outcome = {.program = "NAS FT (written anew from the published problem)",
                              .unit = "floating-point operations", .verified = true};
    double sum[2] = {0};

    MPI_Init(&argc, &argv);
    read_options(argc, argv, options);
    make_solver(s, class);
    fill_field(s);
    double start = clock_start();
    transform_x_and_y(s, -1);
    transpose_forth(s);
    transform_z(s, -1);
    for (long i = 0; i < s->x_count * s->ny * s->nz; i++)
        s->coefficients[i] = s->by_x[i];
    for (int iteration = 0; iteration < classes[class].iterations; iteration++) {
        evolve(s);
        transform_z(s, 1);
        transpose_back(s);
        transform_x_and_y(s, 1);
        checksum(s, sum);
        for (int i = 0; i < 2; i++) {
            double official = classes[class].sums[iteration][i];
            /* Written so that a NaN fails. */
            outcome.verified = outcome.verified && fabs(sum[i] - official) <= tolerance * fabs(official);
        }
    }
    outcome.seconds = clock_stop(start);
    double points = (double)(s->nx * s->ny * s->nz);
    outcome.class = class;
    outcome.operations = points * (5 * log2(points) + 8) * (classes[class].iterations + 1);
    snprintf(outcome.size, sizeof outcome.size, "%ld x %ld x %ld, %d iterations, %s", s->nx, s->ny, s->nz,
             classes[class].iterations, exchange_names[s->exchange]);
    snprintf(outcome.result, sizeof outcome.result, "last checksum %.9f %.9f", sum[0], sum[1]);
    free_solver(s);
    return finish(&outcome);
}
