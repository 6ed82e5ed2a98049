/* halo: processes in a ring, each with a part of a field, swap the columns at its sides; copytune chooses how.

   Every process chooses for itself, so each way must get along with any other at the neighbours: all send the same numbers with the same
   tags. */
#include "copytune.h"
#include "example.h"

#include <mpi.h>

enum { COLUMNS = 64, LEFT = 0, RIGHT = 1, SIDES = 2, CHOICES = 4 };

static const char *const names[CHOICES] = {"sendrecv", "nonblocking", "persistent", "datatype"};
enum way { SENDRECV, NONBLOCKING, PERSISTENT, DATATYPE };

struct part {
    int rank, processes, neighbours[SIDES];
    int rows;
    double *field; /* COLUMNS columns, and one of each neighbour's at either side */
    double *out[SIDES], *in[SIDES];
    MPI_Request started[2 * SIDES]; /* of the persistent way */
    MPI_Datatype column;
};

static double *cell(const struct part *part, int row, int column)
{
    return part->field + (size_t)row * (COLUMNS + 2) + column;
}

/* The columns that go to a side, and that come from there. */
static const int own[SIDES] = {1, COLUMNS}, others[SIDES] = {0, COLUMNS + 1};

static void pack(const struct part *part)
{
    for (int side = 0; side < SIDES; side++)
        for (int row = 0; row < part->rows; row++)
            part->out[side][row] = *cell(part, row, own[side]);
}

static void unpack(const struct part *part)
{
    for (int side = 0; side < SIDES; side++)
        for (int row = 0; row < part->rows; row++)
            *cell(part, row, others[side]) = part->in[side][row];
}

/* A message's tag is the side of its sender that it leaves by; it comes in at the receiver's other side. */
static void exchange_blocking(const struct part *part)
{
    for (int side = 0; side < SIDES; side++)
        MPI_Sendrecv(part->out[side], part->rows, MPI_DOUBLE, part->neighbours[side], side, part->in[!side], part->rows,
                     MPI_DOUBLE, part->neighbours[!side], side, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void exchange_nonblocking(const struct part *part)
{
    MPI_Request requests[2 * SIDES];
    for (int side = 0; side < SIDES; side++)
        MPI_Irecv(part->in[side], part->rows, MPI_DOUBLE, part->neighbours[side], !side, MPI_COMM_WORLD, &requests[side]);
    for (int side = 0; side < SIDES; side++)
        MPI_Isend(part->out[side], part->rows, MPI_DOUBLE, part->neighbours[side], side, MPI_COMM_WORLD,
                  &requests[SIDES + side]);
    MPI_Waitall(2 * SIDES, requests, MPI_STATUSES_IGNORE);
}

static void exchange_persistent(struct part *part)
{
    MPI_Startall(2 * SIDES, part->started);
    MPI_Waitall(2 * SIDES, part->started, MPI_STATUSES_IGNORE);
}

/* Without packing: the library reads and writes the columns where they are. */
static void exchange_datatype(const struct part *part)
{
    MPI_Request requests[2 * SIDES];
    for (int side = 0; side < SIDES; side++)
        MPI_Irecv(cell(part, 0, others[side]), 1, part->column, part->neighbours[side], !side, MPI_COMM_WORLD,
                  &requests[side]);
    for (int side = 0; side < SIDES; side++)
        MPI_Isend(cell(part, 0, own[side]), 1, part->column, part->neighbours[side], side, MPI_COMM_WORLD,
                  &requests[SIDES + side]);
    MPI_Waitall(2 * SIDES, requests, MPI_STATUSES_IGNORE);
}

static void exchange(struct part *part, enum way way)
{
    if (way == DATATYPE) {
        exchange_datatype(part);
        return;
    }
    pack(part);
    if (way == SENDRECV)
        exchange_blocking(part);
    else if (way == NONBLOCKING)
        exchange_nonblocking(part);
    else
        exchange_persistent(part);
    unpack(part);
}

/* Seconds of an exchange where starting a message takes up to a microsecond, and a number a nanosecond or two. */
static double model(enum way way, int rows)
{
    static const double start[CHOICES] = {1.0, 0.7, 0.5, 0.7}, number[CHOICES] = {2, 2, 2, 2.6};
    return SIDES * (1e-6 * start[way] + 1e-9 * number[way] * rows);
}

/* What the sender of a column writes into it. */
static double content(int rank, int side, int row, long turn)
{
    return (double)(rank * SIDES + side) + 1e-3 * row + (double)turn;
}

static void fill(const struct part *part, long turn)
{
    for (int side = 0; side < SIDES; side++)
        for (int row = 0; row < part->rows; row++)
            *cell(part, row, own[side]) = content(part->rank, side, row, turn);
}

static bool is_right(const struct part *part, long turn)
{
    for (int side = 0; side < SIDES; side++)
        for (int row = 0; row < part->rows; row++)
            if (*cell(part, row, others[side]) != content(part->neighbours[side], !side, row, turn))
                return false;
    return true;
}

static double *numbers(long count)
{
    double *room = calloc((size_t)count, sizeof *room);
    if (room == NULL) {
        fprintf(stderr, "halo: no memory for %ld numbers; use a smaller --size\n", count);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return room;
}

static void make_part(struct part *part)
{
    part->neighbours[LEFT] = (part->rank + part->processes - 1) % part->processes;
    part->neighbours[RIGHT] = (part->rank + 1) % part->processes;
    part->field = numbers((long)part->rows * (COLUMNS + 2));
    MPI_Type_vector(part->rows, 1, COLUMNS + 2, MPI_DOUBLE, &part->column);
    MPI_Type_commit(&part->column);
    for (int side = 0; side < SIDES; side++) {
        part->out[side] = numbers(part->rows);
        part->in[side] = numbers(part->rows);
        MPI_Recv_init(part->in[side], part->rows, MPI_DOUBLE, part->neighbours[side], !side, MPI_COMM_WORLD,
                      &part->started[side]);
        MPI_Send_init(part->out[side], part->rows, MPI_DOUBLE, part->neighbours[side], side, MPI_COMM_WORLD,
                      &part->started[SIDES + side]);
    }
}

static void free_part(struct part *part)
{
    MPI_Type_free(&part->column);
    for (int i = 0; i < 2 * SIDES; i++)
        MPI_Request_free(&part->started[i]);
    for (int side = 0; side < SIDES; side++) {
        free(part->out[side]);
        free(part->in[side]);
    }
    free(part->field);
}

/* The slowest process counts; of the choices, each process has its own. */
static bool finish(const struct part *part, const struct settings *settings, struct costs *costs, long chosen, int verified)
{
    long *choices = calloc((size_t)part->processes, sizeof *choices);
    char text[400];
    size_t length = 0;
    if (choices == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Allreduce(MPI_IN_PLACE, &costs->seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &costs->modelled, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &verified, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    MPI_Gather(&chosen, 1, MPI_LONG, choices, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    if (part->rank == 0) {
        for (int rank = 0; rank < part->processes && length < sizeof text - 40; rank++)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%ld (%s)", rank == 0 ? "" : ", ",
                                       choices[rank], names[choices[rank]]);
        printf("halo in C: %ld exchanges of columns of %d numbers on %d processes\n", settings->executions, part->rows,
               part->processes);
        report(settings, costs, text, verified);
    }
    free(choices);
    return verified;
}

/* What copytune is to learn from an exchange; what it has not chosen teaches it nothing. */
static void learn(const struct settings *settings, int region, struct costs *costs, double modelled)
{
    bool has_chosen = settings->choice < 0;
    if (has_chosen && settings->modelled)
        copytune_end_with(region, measured(costs, modelled));
    else if (settings->by_calls)
        return; /* The next read of a choice ends it, and there is none where copytune does not choose. */
    else if (has_chosen)
        copytune_end(region);
    else
        copytune_drop(region);
}

int main(int argc, char **argv)
{
    /* 4 KiB: below what copytune tunes as a message, so the region alone is tuned. */
    struct settings settings = {.choice = -1, .executions = 50000, .size = 512, .has_calls = true};
    struct part part = {0};
    struct costs costs = {0};
    bool verified = true;
    int chosen = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &part.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &part.processes);
    settings.silent = part.rank != 0;
    if (!read_settings(argc, argv, CHOICES, &settings)) {
        MPI_Finalize();
        return 2;
    }
    part.rows = (int)settings.size;
    make_part(&part);

    int region = settings.by_calls ? copytune_region_by_calls("halo") : copytune_region("halo");
    int way = copytune_variable(region, "way", CHOICES, names);
    for (long execution = 0; execution < settings.executions; execution++) {
        fill(&part, execution);
        double start = now();
        if (!settings.by_calls)
            copytune_begin(region);
        chosen = settings.choice >= 0 ? (int)settings.choice : copytune_choice(region, way);
        exchange(&part, (enum way)chosen);
        learn(&settings, region, &costs, model((enum way)chosen, part.rows));
        costs.seconds += now() - start;
        add_model(&costs, &settings, execution, model((enum way)chosen, part.rows));
        verified = verified && is_right(&part, execution);
    }

    verified = finish(&part, &settings, &costs, chosen, verified);
    free_part(&part);
    MPI_Finalize();
    return verified ? 0 : 1;
}
