/* halo: processes that exchange the borders of their parts of a field, size by size.

   grid2, grid3   a field in two or three dimensions; a process has two neighbours in each, around the ends. Where
                  few processes would be their own neighbours, the field is twisted, so that they are not.
   irregular      five messages of five lengths, of cells that lie scattered, as on a graph

   A message of a grid is a face of 16 cells (of one cell, where its bytes are no multiple of 16); the longest of "irregular" has
   as many. Messages go as derived types, or are packed and unpacked by hand. Before and after the timed iterations
   there is one after which every byte of the field is checked. */
#include "apart.h"
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FACES = 6, MAX_CELLS = 400, FACE_CELLS = 16, SCATTERED = 32, NOBODY = -1 };
enum shape { GRID2, GRID3, IRREGULAR };

static const char *const shape_names[] = {"grid2", "grid3", "irregular", NULL};

struct settings {
    int shape;
    struct size_list sizes;
    long iterations, volume;
    bool packed;
};

/* A message to one neighbour and one from another: the cells that go, and where those that come are put. */
struct face {
    int to, from, send_tag, receive_tag, cells;
    int out[FACE_CELLS], in[FACE_CELLS];
    MPI_Datatype send_type, receive_type;
    unsigned char *send_buffer, *receive_buffer;
};

/* Whose cell it is, and which of its owner's. */
struct origin {
    int rank, cell;
};

struct halo {
    const struct settings *settings;
    int rank, processes, cells, face_count;
    size_t cell_bytes;
    struct origin origins[MAX_CELLS];
    struct face faces[MAX_FACES];
    unsigned char *field;
    MPI_Request requests[2 * MAX_FACES];
};

/* The parts of a grid: `side` cells in each dimension between two layers of others' cells. */
struct grid {
    int dimensions, side, extents[3], strides[3];
};

static struct grid make_grid(int dimensions, int side)
{
    struct grid grid = {.dimensions = dimensions, .side = side};
    int stride = 1;
    for (int d = dimensions - 1; d >= 0; d--) {
        grid.extents[d] = side + 2;
        grid.strides[d] = stride;
        stride *= side + 2;
    }
    return grid;
}

/* The first place in a dimension of what is sent to that side, or received from it. */
static int layer_of(const struct grid *grid, int upper, bool sent)
{
    if (sent)
        return upper ? grid->side : 1;
    return upper ? grid->side + 1 : 0;
}

/* The cells of a layer, in the order of their places. */
static int face_cells(const struct grid *grid, int dimension, int layer, int *cells)
{
    int count = 0, place[3] = {1, 1, 1};
    place[dimension] = layer;
    for (;;) {
        int cell = 0, d = grid->dimensions - 1;
        for (int k = 0; k < grid->dimensions; k++)
            cell += place[k] * grid->strides[k];
        cells[count++] = cell;
        while (d >= 0 && (d == dimension || place[d] == grid->side)) {
            place[d] = d == dimension ? layer : 1;
            d--;
        }
        if (d < 0)
            return count;
        place[d]++;
    }
}

static MPI_Datatype face_type(const struct halo *halo, const struct grid *grid, int dimension, int layer)
{
    int sizes[3], parts[3], starts[3], last = grid->dimensions - 1;
    MPI_Datatype type;
    for (int d = 0; d < grid->dimensions; d++) {
        sizes[d] = grid->extents[d];
        parts[d] = d == dimension ? 1 : grid->side;
        starts[d] = d == dimension ? layer : 1;
    }
    sizes[last] *= (int)halo->cell_bytes;
    parts[last] *= (int)halo->cell_bytes;
    starts[last] *= (int)halo->cell_bytes;
    MPI_Type_create_subarray(grid->dimensions, sizes, parts, starts, MPI_ORDER_C, MPI_BYTE, &type);
    return type;
}

/* How far on, by rank, the neighbour in a dimension is. A step that would come back to the process is one longer. */
static int step_of(const struct halo *halo, int dimensions, int dimension)
{
    int extents[3] = {0, 0, 0}, step = 1;
    MPI_Dims_create(halo->processes, dimensions, extents);
    for (int d = dimension + 1; d < dimensions; d++)
        step *= extents[d];
    return step % halo->processes == 0 ? step + 1 : step;
}

static void make_grid_faces(struct halo *halo, int dimensions, long bytes)
{
    int side = bytes % FACE_CELLS != 0 ? 1 : dimensions == 2 ? 16 : 4;
    struct grid grid = make_grid(dimensions, side);
    halo->cells = dimensions == 2 ? (side + 2) * (side + 2) : (side + 2) * (side + 2) * (side + 2);
    for (int cell = 0; cell < halo->cells; cell++) {
        bool own = true;
        for (int d = 0; d < dimensions; d++) {
            int place = cell / grid.strides[d] % grid.extents[d];
            own = own && place >= 1 && place <= side;
        }
        halo->origins[cell] = (struct origin){own ? halo->rank : NOBODY, cell};
    }
    for (int d = 0; d < dimensions; d++) {
        int step = step_of(halo, dimensions, d);
        for (int upper = 0; upper < 2; upper++) {
            struct face *face = &halo->faces[halo->face_count++];
            int there[FACE_CELLS];
            int distance = upper ? step : halo->processes - step % halo->processes;
            face->to = face->from = (halo->rank + distance) % halo->processes;
            face->send_tag = 2 * d + upper;
            face->receive_tag = 2 * d + !upper;
            face->cells = face_cells(&grid, d, layer_of(&grid, upper, true), face->out);
            face_cells(&grid, d, layer_of(&grid, upper, false), face->in);
            face_cells(&grid, d, layer_of(&grid, !upper, true), there);
            for (int i = 0; i < face->cells; i++)
                halo->origins[face->in[i]] = (struct origin){face->from, there[i]};
            face->send_type = face_type(halo, &grid, d, layer_of(&grid, upper, true));
            face->receive_type = face_type(halo, &grid, d, layer_of(&grid, upper, false));
        }
    }
}

static MPI_Datatype scattered_type(const struct halo *halo, const int *cells, int count)
{
    MPI_Aint places[FACE_CELLS];
    MPI_Datatype type;
    for (int i = 0; i < count; i++)
        places[i] = (MPI_Aint)((size_t)cells[i] * halo->cell_bytes);
    MPI_Type_create_hindexed_block(count, (int)halo->cell_bytes, places, MPI_BYTE, &type);
    return type;
}

/* Every seventh of the own cells, from another one on for each message. */
static void make_irregular_faces(struct halo *halo, long bytes)
{
    static const int lengths[] = {16, 12, 8, 4, 1};
    halo->cells = SCATTERED;
    for (int cell = 0; cell < SCATTERED; cell++)
        halo->origins[cell] = (struct origin){halo->rank, cell};
    for (int k = 0; k < (int)(sizeof lengths / sizeof *lengths); k++) {
        struct face *face = &halo->faces[halo->face_count++];
        int distance = 1 + k % (halo->processes - 1);
        face->to = (halo->rank + distance) % halo->processes;
        face->from = (halo->rank + halo->processes - distance) % halo->processes;
        face->send_tag = face->receive_tag = k;
        face->cells = bytes % FACE_CELLS != 0 ? 1 : lengths[k];
        for (int i = 0; i < face->cells; i++) {
            face->out[i] = (i * 7 + k * 5) % SCATTERED;
            face->in[i] = halo->cells++;
            halo->origins[face->in[i]] = (struct origin){face->from, face->out[i]};
        }
        face->send_type = scattered_type(halo, face->out, face->cells);
        face->receive_type = scattered_type(halo, face->in, face->cells);
    }
}

static unsigned char *cell_at(const struct halo *halo, int cell)
{
    return halo->field + (size_t)cell * halo->cell_bytes;
}

static void pack(const struct halo *halo, const struct face *face)
{
    for (int i = 0; i < face->cells; i++)
        memcpy(face->send_buffer + (size_t)i * halo->cell_bytes, cell_at(halo, face->out[i]), halo->cell_bytes);
}

static void unpack(const struct halo *halo, const struct face *face)
{
    for (int i = 0; i < face->cells; i++)
        memcpy(cell_at(halo, face->in[i]), face->receive_buffer + (size_t)i * halo->cell_bytes, halo->cell_bytes);
}

static void exchange_packed(struct halo *halo)
{
    int count = halo->face_count;
    for (int f = 0; f < count; f++) {
        struct face *face = &halo->faces[f];
        int bytes = face->cells * (int)halo->cell_bytes;
        MPI_Irecv(face->receive_buffer, bytes, MPI_BYTE, face->from, face->receive_tag, MPI_COMM_WORLD,
                  &halo->requests[f]);
    }
    for (int f = 0; f < count; f++) {
        struct face *face = &halo->faces[f];
        int bytes = face->cells * (int)halo->cell_bytes;
        pack(halo, face);
        MPI_Isend(face->send_buffer, bytes, MPI_BYTE, face->to, face->send_tag, MPI_COMM_WORLD,
                  &halo->requests[count + f]);
    }
    MPI_Waitall(2 * count, halo->requests, MPI_STATUSES_IGNORE);
    for (int f = 0; f < count; f++)
        unpack(halo, &halo->faces[f]);
}

static void exchange_types(struct halo *halo)
{
    int count = halo->face_count;
    for (int f = 0; f < count; f++) {
        struct face *face = &halo->faces[f];
        MPI_Irecv(halo->field, 1, face->receive_type, face->from, face->receive_tag, MPI_COMM_WORLD,
                  &halo->requests[f]);
    }
    for (int f = 0; f < count; f++) {
        struct face *face = &halo->faces[f];
        MPI_Isend(halo->field, 1, face->send_type, face->to, face->send_tag, MPI_COMM_WORLD,
                  &halo->requests[count + f]);
    }
    MPI_Waitall(2 * count, halo->requests, MPI_STATUSES_IGNORE);
}

static void exchange(struct halo *halo)
{
    if (halo->settings->packed)
        exchange_packed(halo);
    else
        exchange_types(halo);
}

static uint64_t seed_of(struct origin origin, uint64_t turn)
{
    return (turn * 65536 + (uint64_t)(origin.rank + 1)) * MAX_CELLS + (uint64_t)origin.cell;
}

/* Own cells have their content of this turn, all others a content that is nobody's. */
static void fill(struct halo *halo, uint64_t turn)
{
    for (int cell = 0; cell < halo->cells; cell++) {
        struct origin origin = halo->origins[cell];
        if (origin.rank != halo->rank)
            origin = (struct origin){NOBODY, cell};
        for (size_t i = 0; i < halo->cell_bytes; i++)
            cell_at(halo, cell)[i] = content_byte(seed_of(origin, turn), i);
    }
}

/* After an exchange each cell has its owner's content, and one that is nobody's what it had. */
static void check(const struct halo *halo, uint64_t turn)
{
    for (int cell = 0; cell < halo->cells; cell++) {
        struct origin origin = halo->origins[cell];
        for (size_t i = 0; i < halo->cell_bytes; i++)
            if (cell_at(halo, cell)[i] != content_byte(seed_of(origin, turn), i))
                fail("process %d has a wrong byte at position %zu of cell %d, which belongs to process %d", halo->rank, i,
                     cell, origin.rank);
    }
}

static void make_faces(struct halo *halo, long bytes)
{
    const struct settings *s = halo->settings;
    halo->face_count = 0;
    halo->cell_bytes = (size_t)(bytes % FACE_CELLS != 0 ? bytes : bytes / FACE_CELLS);
    if (s->shape == IRREGULAR)
        make_irregular_faces(halo, bytes);
    else
        make_grid_faces(halo, s->shape == GRID2 ? 2 : 3, bytes);
    halo->field = allocate((size_t)halo->cells * halo->cell_bytes);
    for (int f = 0; f < halo->face_count; f++) {
        struct face *face = &halo->faces[f];
        MPI_Type_commit(&face->send_type);
        MPI_Type_commit(&face->receive_type);
        face->send_buffer = allocate((size_t)face->cells * halo->cell_bytes);
        face->receive_buffer = allocate((size_t)face->cells * halo->cell_bytes);
    }
}

static void free_faces(struct halo *halo)
{
    for (int f = 0; f < halo->face_count; f++) {
        struct face *face = &halo->faces[f];
        MPI_Type_free(&face->send_type);
        MPI_Type_free(&face->receive_type);
        free(face->send_buffer);
        free(face->receive_buffer);
    }
    free(halo->field);
}

static void run_size(struct halo *halo, long bytes)
{
    const struct settings *s = halo->settings;
    make_faces(halo, bytes);
    long iterations = usual_iterations(s->iterations, s->volume / (halo->face_count / 2), bytes);
    long warmup = iterations / 10 > 2 ? iterations / 10 : 2;
    fill(halo, 1);
    exchange(halo);
    check(halo, 1);
    for (long i = 0; i < warmup; i++)
        exchange(halo);
    double before = cores_apart();
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (long i = 0; i < iterations; i++)
        exchange(halo);
    double own = (MPI_Wtime() - start) / (double)iterations, slowest;
    double after = cores_apart();
    check(halo, 1);
    fill(halo, 2);
    exchange(halo);
    check(halo, 2);
    MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (halo->rank == 0) {
        printf("{\"schema\": 1, \"program\": \"halo\", \"shape\": \"%s\", \"packed\": %s, \"messages\": %d, "
               "\"processes\": %d, \"bytes\": %ld, \"iterations\": %ld, \"seconds\": %.9e, "
               "\"apart\": [%.0f, %.0f]}\n",
               shape_names[s->shape], s->packed ? "true" : "false", halo->face_count, halo->processes, bytes,
               iterations, slowest, before, after);
        fflush(stdout);
    }
    free_faces(halo);
}

int main(int argc, char **argv)
{
    struct settings s = {.shape = GRID2, .sizes = {1, {65536}}, .iterations = 1000, .volume = 40L << 20};
    const struct option_entry options[] = {
        {"--shape", "what the field is", OPTION_CHOICE, &s.shape, 0, 0, shape_names},
        {"--bytes", "sizes of a message, the longest", OPTION_SIZES, &s.sizes, 1, 1 << 26, NULL},
        {"--iterations", "timed iterations up to 32 KiB", OPTION_NUMBER, &s.iterations, 1, 100000000, NULL},
        {"--volume", "bytes of longer messages, which bound the iterations", OPTION_NUMBER, &s.volume, 1, 1L << 40,
         NULL},
        {"--packed", "pack and unpack by hand instead of derived types", OPTION_FLAG, &s.packed, 0, 0, NULL},
        {0}};
    static struct halo halo;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &halo.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &halo.processes);
    read_options(argc, argv, options);
    halo.settings = &s;
    if (halo.processes < 2)
        refuse("needs at least 2 processes; start it with mpirun -np 2");
    for (int i = 0; i < s.sizes.count; i++)
        run_size(&halo, s.sizes.bytes[i]);
    MPI_Finalize();
    return 0;
}
