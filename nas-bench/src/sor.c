/* sor: red-black successive over-relaxation, as one of the libraries of E. Brewer's thesis (1994).

   The Laplace equation on a square whose border has the values of a harmonic polynomial, which the
   five-point stencil reproduces exactly: the solution is known. Each half of an iteration updates the
   points of one colour and sends those at the edge of a process's part to its neighbours. Partition, kind
   of exchange and packing are options, and the result does not depend on them by a bit. */
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { UP, DOWN, LEFT, RIGHT, DIRECTIONS };
enum { RED, BLACK, COLOURS };
enum { PARTITION_ROWS, PARTITION_COLUMNS, PARTITION_BLOCKS };
enum { HALO_BLOCKING, HALO_NONBLOCKING, HALO_PERSISTENT };
enum { BORDER_PACKED, BORDER_TYPE };

static const char *const partition_names[] = {"rows", "columns", "blocks", NULL};
static const char *const halo_names[] = {"blocking", "nonblocking", "persistent", NULL};
static const char *const border_names[] = {"packed", "type", NULL};

static const double omega = 1.87;
/* The largest update in an iteration after which the iteration ends. */
static const double threshold = 1e-10;
static const long most_iterations = 1000000;
/* Greatest error that verifies. It is the threshold over 1 less the spectral radius, 2.4e-4 in class B. */
static const double tolerance = 1e-5;
/* Inner points along a side. */
static const long sides[CLASSES] = {64, 256, 512, 768};

struct settings {
    int class, partition, halo, border;
    long check;
};

/* The points of one colour along an edge: `count` of them, `step` apart, in or beside the part. */
struct border {
    double *first;
    long step;
    int count;
    /* What MPI is given: the points themselves, or a copy of them. */
    double *packed;
    void *buffer;
    int elements;
    MPI_Datatype type;
};

struct part {
    const struct settings *settings;
    MPI_Comm comm;
    int dims[2], coords[2], neighbour[DIRECTIONS];
    long side, row, column; /* of the whole, and the first inner point of the part, counted from 0 */
    long rows, columns, pitch;
    double *u; /* with a border of one point, which is a neighbour's or the square's */
    struct border out[COLOURS][DIRECTIONS], in[COLOURS][DIRECTIONS];
    MPI_Request requests[COLOURS][2 * DIRECTIONS];
};

/* x**3 - 3 x y**2 + x y, harmonic; the square is that from 0 to 1. */
static double exact(const struct part *part, long row, long column)
{
    double step = 1.0 / (double)(part->side + 1);
    double x = step * (double)(column + 1), y = step * (double)(row + 1);
    return x * x * x - 3 * x * y * y + x * y;
}

static double *point(const struct part *part, long row, long column)
{
    return part->u + row * part->pitch + column;
}

static struct border make_border(const struct part *part, int colour, int direction, bool inside)
{
    struct border border = {0};
    bool along_row = direction == UP || direction == DOWN;
    long last = along_row ? part->rows : part->columns;
    long length = along_row ? part->columns : part->rows;
    long fixed = direction == UP || direction == LEFT ? (inside ? 1 : 0) : (inside ? last : last + 1);
    long row = along_row ? fixed : 1, column = along_row ? 1 : fixed;
    /* 2 keeps the sum positive left of and above the square. */
    long skip = (part->row + row + part->column + column + 2 + colour) % 2;

    border.first = point(part, row, column) + skip * (along_row ? 1 : part->pitch);
    border.step = 2 * (along_row ? 1 : part->pitch);
    border.count = (int)((length - skip + 1) / 2);
    if (part->settings->border == BORDER_TYPE) {
        border.buffer = border.first;
        border.elements = 1;
        MPI_Type_vector(border.count, 1, (int)border.step, MPI_DOUBLE, &border.type);
        MPI_Type_commit(&border.type);
    } else {
        border.packed = allocate((size_t)border.count * sizeof(double));
        border.buffer = border.packed;
        border.elements = border.count;
        border.type = MPI_DOUBLE;
    }
    return border;
}

static void free_border(struct border *border)
{
    free(border->packed);
    if (border->type != MPI_DOUBLE)
        MPI_Type_free(&border->type);
}

static void make_borders(struct part *part)
{
    for (int colour = 0; colour < COLOURS; colour++) {
        for (int d = 0; d < DIRECTIONS; d++) {
            struct border *in = &part->in[colour][d], *out = &part->out[colour][d];
            *in = make_border(part, colour, d, false);
            *out = make_border(part, colour, d, true);
            if (part->settings->halo != HALO_PERSISTENT)
                continue;
            /* The tag is the direction in which the message goes; its opposite differs in one bit. */
            MPI_Recv_init(in->buffer, in->elements, in->type, part->neighbour[d], d ^ 1, part->comm,
                          &part->requests[colour][d]);
            MPI_Send_init(out->buffer, out->elements, out->type, part->neighbour[d], d, part->comm,
                          &part->requests[colour][DIRECTIONS + d]);
        }
    }
}

static void free_borders(struct part *part)
{
    for (int colour = 0; colour < COLOURS; colour++) {
        for (int d = 0; d < DIRECTIONS; d++) {
            if (part->settings->halo == HALO_PERSISTENT) {
                MPI_Request_free(&part->requests[colour][d]);
                MPI_Request_free(&part->requests[colour][DIRECTIONS + d]);
            }
            free_border(&part->in[colour][d]);
            free_border(&part->out[colour][d]);
        }
    }
}

static void make_part(struct part *part, const struct settings *settings)
{
    int processes = process_count();
    part->settings = settings;
    part->side = sides[settings->class];
    part->dims[0] = settings->partition == PARTITION_COLUMNS ? 1 : settings->partition == PARTITION_ROWS ? processes : 0;
    part->dims[1] = settings->partition == PARTITION_COLUMNS ? processes : settings->partition == PARTITION_ROWS;
    MPI_Dims_create(processes, 2, part->dims);
    if (part->dims[0] > part->side || part->dims[1] > part->side)
        refuse("%d processes are too many for %ld points a side; use fewer or another --partition", processes,
               part->side);
    MPI_Cart_create(MPI_COMM_WORLD, 2, part->dims, (int[]){0, 0}, 0, &part->comm);
    MPI_Cart_coords(part->comm, process_rank(), 2, part->coords);
    MPI_Cart_shift(part->comm, 0, 1, &part->neighbour[UP], &part->neighbour[DOWN]);
    MPI_Cart_shift(part->comm, 1, 1, &part->neighbour[LEFT], &part->neighbour[RIGHT]);

    part->row = share_begin(part->side, part->dims[0], part->coords[0]);
    part->column = share_begin(part->side, part->dims[1], part->coords[1]);
    part->rows = share_begin(part->side, part->dims[0], part->coords[0] + 1) - part->row;
    part->columns = share_begin(part->side, part->dims[1], part->coords[1] + 1) - part->column;
    part->pitch = part->columns + 2;
    part->u = allocate((size_t)((part->rows + 2) * part->pitch) * sizeof(double));
    for (long r = 0; r < part->rows + 2; r++) {
        for (long c = 0; c < part->columns + 2; c++) {
            long row = part->row + r - 1, column = part->column + c - 1;
            bool inner = row >= 0 && row < part->side && column >= 0 && column < part->side;
            *point(part, r, c) = inner ? 0 : exact(part, row, column);
        }
    }
    make_borders(part);
}

static void send_border(struct part *part, int colour, int d)
{
    struct border *border = &part->out[colour][d];
    MPI_Send(border->buffer, border->elements, border->type, part->neighbour[d], d, part->comm);
}

static void receive_border(struct part *part, int colour, int d)
{
    struct border *border = &part->in[colour][d];
    MPI_Recv(border->buffer, border->elements, border->type, part->neighbour[d], d ^ 1, part->comm, MPI_STATUS_IGNORE);
}

/* Of two neighbours the one with the even coordinate sends first, so that none waits for ever. */
static void exchange_blocking(struct part *part, int colour)
{
    for (int axis = 0; axis < 2; axis++) {
        int low = 2 * axis, high = low + 1;
        if (part->coords[axis] % 2 == 0) {
            send_border(part, colour, high);
            receive_border(part, colour, high);
            send_border(part, colour, low);
            receive_border(part, colour, low);
        } else {
            receive_border(part, colour, low);
            send_border(part, colour, low);
            receive_border(part, colour, high);
            send_border(part, colour, high);
        }
    }
}

static void exchange_nonblocking(struct part *part, int colour)
{
    MPI_Request requests[2 * DIRECTIONS];
    for (int d = 0; d < DIRECTIONS; d++) {
        struct border *border = &part->in[colour][d];
        MPI_Irecv(border->buffer, border->elements, border->type, part->neighbour[d], d ^ 1, part->comm, &requests[d]);
    }
    for (int d = 0; d < DIRECTIONS; d++) {
        struct border *border = &part->out[colour][d];
        MPI_Isend(border->buffer, border->elements, border->type, part->neighbour[d], d, part->comm,
                  &requests[DIRECTIONS + d]);
    }
    MPI_Waitall(2 * DIRECTIONS, requests, MPI_STATUSES_IGNORE);
}

/* Sends the points of a colour at the part's edges and receives those beside them. */
static void exchange(struct part *part, int colour)
{
    for (int d = 0; d < DIRECTIONS; d++) {
        struct border *border = &part->out[colour][d];
        if (border->packed != NULL && part->neighbour[d] != MPI_PROC_NULL)
            for (int i = 0; i < border->count; i++)
                border->packed[i] = border->first[i * border->step];
    }
    switch (part->settings->halo) {
    case HALO_BLOCKING:
        exchange_blocking(part, colour);
        break;
    case HALO_NONBLOCKING:
        exchange_nonblocking(part, colour);
        break;
    case HALO_PERSISTENT:
        MPI_Startall(2 * DIRECTIONS, part->requests[colour]);
        MPI_Waitall(2 * DIRECTIONS, part->requests[colour], MPI_STATUSES_IGNORE);
        break;
    }
    for (int d = 0; d < DIRECTIONS; d++) {
        struct border *border = &part->in[colour][d];
        if (border->packed != NULL && part->neighbour[d] != MPI_PROC_NULL)
            for (int i = 0; i < border->count; i++)
                border->first[i * border->step] = border->packed[i];
    }
}

/* Updates the points of a colour; returns the largest change. */
static double update(struct part *part, int colour)
{
    double delta = 0;
    for (long r = 1; r <= part->rows; r++) {
        const double *above = point(part, r - 1, 0), *below = point(part, r + 1, 0);
        double *here = point(part, r, 0);
        for (long c = 1 + (part->row + r + part->column + 1 + colour) % 2; c <= part->columns; c += 2) {
            double sum = above[c] + below[c] + here[c - 1] + here[c + 1];
            double next = omega / 4 * sum + (1 - omega) * here[c];
            double change = fabs(next - here[c]);
            delta = change > delta ? change : delta;
            here[c] = next;
        }
    }
    return delta;
}

/* Iterates until the largest change is below the threshold; returns how often. */
static long solve(struct part *part)
{
    for (long iteration = 1; iteration <= most_iterations; iteration++) {
        double delta = 0;
        for (int colour = 0; colour < COLOURS; colour++) {
            double change = update(part, colour);
            delta = change > delta ? change : delta;
            exchange(part, colour);
        }
        if (iteration % part->settings->check == 0) {
            MPI_Allreduce(MPI_IN_PLACE, &delta, 1, MPI_DOUBLE, MPI_MAX, part->comm);
            if (delta < threshold)
                return iteration;
        }
    }
    return most_iterations;
}

int main(int argc, char **argv)
{
    struct settings settings = {.class = CLASS_A, .partition = PARTITION_BLOCKS, .halo = HALO_NONBLOCKING, .check = 1};
    const struct option_entry options[] = {
        CLASS_OPTION(&settings.class),
        {"--partition", "what a process has", OPTION_CHOICE, &settings.partition, 0, 0, partition_names},
        {"--halo", "calls that exchange the borders", OPTION_CHOICE, &settings.halo, 0, 0, halo_names},
        {"--border", "borders packed by hand, or sent as derived types", OPTION_CHOICE, &settings.border, 0, 0,
         border_names},
        {"--check", "iterations from one test for convergence to the next", OPTION_NUMBER, &settings.check, 1, 10000,
         NULL},
        {0}};
    struct part part = {0};
    struct outcome outcome = {.program = "SOR: red-black successive over-relaxation", .unit = "updates"};
    double error = 0;
    uint64_t sum = 0;

    MPI_Init(&argc, &argv);
    read_options(argc, argv, options);
    make_part(&part, &settings);
    double start = clock_start();
    long iterations = solve(&part);
    outcome.seconds = clock_stop(start);

    for (long r = 1; r <= part.rows; r++) {
        for (long c = 1; c <= part.columns; c++) {
            long row = part.row + r - 1, column = part.column + c - 1;
            double here = *point(&part, r, c), wrong = fabs(here - exact(&part, row, column));
            /* A NaN is the largest error, and stays. */
            error = isnan(error) || error >= wrong ? error : wrong;
            sum += mix(bits_of(here) ^ mix((uint64_t)(row * part.side + column)));
        }
    }
    outcome.verified = error <= tolerance;
    outcome.class = settings.class;
    outcome.operations = (double)iterations * (double)(part.side * part.side);
    sum = sum_of_all(sum);
    snprintf(outcome.size, sizeof outcome.size, "%ld x %ld points, %s, %s, %s", part.side, part.side,
             partition_names[settings.partition], halo_names[settings.halo], border_names[settings.border]);
    snprintf(outcome.result, sizeof outcome.result, "%ld iterations, checksum %016llx", iterations,
             (unsigned long long)sum);
    free_borders(&part);
    free(part.u);
    MPI_Comm_free(&part.comm);
    return finish(&outcome);
}
