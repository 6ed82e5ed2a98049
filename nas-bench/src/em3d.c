/* em3d: waves on a random bipartite graph, after the program of C.-P. Wen's thesis on Multipol (1995).

   Nodes carry an electric or a magnetic value; each half of a step updates the nodes of one kind from
   those of the other. A node of another process that is needed here has a ghost, which is sent whenever
   its kind has been updated: all ghosts for a process in one message, or a few in each. */
#include "mail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELECTRIC, MAGNETIC, KINDS };
enum { DEGREE = 20, DISTANCE = 3 };

static const struct {
    long nodes, steps; /* nodes of each kind, of all processes */
} classes[CLASSES] = {{2000, 20}, {20000, 100}, {50000, 200}, {200000, 200}};

/* What goes to the ghost with that number, and what it is. */
struct update {
    int64_t ghost;
    double value;
};

/* The nodes of one kind: this process's own values, and after them its ghosts. */
struct nodes {
    double *value;
    int64_t *ghost;                /* their nodes' numbers, in increasing order */
    long ghosts;
    int *ghost_counts, *ghost_places; /* by the process that has the node */
    long *wanted;                  /* own nodes that are ghosts elsewhere */
    int *wanted_counts, *wanted_places;
    double *packed;                /* the wanted nodes' values */
    long *source;                  /* for each own node and edge where the other kind's value is */
    double *weight;
};

struct field {
    int processes, rank;
    long total, begin, count, parts, remote, aggregate;
    struct nodes kinds[KINDS];
    struct mail *mail[KINDS];
    MPI_Request *requests;
};

static uint64_t edge_number(int kind, long node, int edge)
{
    return ((uint64_t)node * KINDS + (uint64_t)kind) * DEGREE + (uint64_t)edge;
}

/* The node of the other kind at the end of an edge. The nodes are in parts in a line; an edge leads to one of
   the same part, or with the probability that was asked for to a part not far away. */
static long neighbour_of(const struct field *field, int kind, long node, int edge)
{
    uint64_t number = edge_number(kind, node, edge);
    int part = share_owner(field->total, (int)field->parts, node);
    if (random_number(1, number) * 100 < (double)field->remote) {
        long least = part > DISTANCE ? part - DISTANCE : 0;
        long most = part + DISTANCE < field->parts ? part + DISTANCE : field->parts - 1;
        if (most > least) {
            long other = least + (long)(random_number(2, number) * (double)(most - least));
            part = (int)(other >= part ? other + 1 : other);
        }
    }
    long begin = share_begin(field->total, (int)field->parts, part);
    long end = share_begin(field->total, (int)field->parts, part + 1);
    return begin + (long)(random_number(3, number) * (double)(end - begin));
}

static double weight_of(int kind, long node, int edge)
{
    return (random_number(4, edge_number(kind, node, edge)) - 0.5) / DEGREE;
}

static double first_value(int kind, long node)
{
    return random_number(5 + (uint64_t)kind, (uint64_t)node);
}

static int compare_numbers(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static bool is_own(const struct field *field, long node)
{
    return node >= field->begin && node < field->begin + field->count;
}

/* Finds which nodes of a kind this process needs from others. */
static void find_ghosts(struct field *field, int kind)
{
    struct nodes *nodes = &field->kinds[kind];
    long found = 0;
    nodes->ghost = allocate((size_t)(field->count * DEGREE) * sizeof *nodes->ghost);
    for (long i = 0; i < field->count; i++) {
        for (int e = 0; e < DEGREE; e++) {
            long node = neighbour_of(field, 1 - kind, field->begin + i, e);
            if (!is_own(field, node))
                nodes->ghost[found++] = node;
        }
    }
    qsort(nodes->ghost, (size_t)found, sizeof *nodes->ghost, compare_numbers);
    for (long i = 0; i < found; i++)
        if (i == 0 || nodes->ghost[i] != nodes->ghost[i - 1])
            nodes->ghost[nodes->ghosts++] = nodes->ghost[i];
    for (long i = 0; i < nodes->ghosts; i++)
        nodes->ghost_counts[share_owner(field->total, field->processes, nodes->ghost[i])]++;
    nodes->value = allocate((size_t)(field->count + nodes->ghosts) * sizeof *nodes->value);
}

static int *make_counts(const struct field *field)
{
    int *counts = allocate((size_t)field->processes * sizeof *counts);
    memset(counts, 0, (size_t)field->processes * sizeof *counts);
    return counts;
}

/* Tells the others which of their nodes have ghosts here. */
static void exchange_wishes(struct field *field, int kind)
{
    struct nodes *nodes = &field->kinds[kind];
    long wanted = 0;
    MPI_Alltoall(nodes->ghost_counts, 1, MPI_INT, nodes->wanted_counts, 1, MPI_INT, MPI_COMM_WORLD);
    for (int p = 0; p < field->processes; p++) {
        nodes->ghost_places[p] = p == 0 ? 0 : nodes->ghost_places[p - 1] + nodes->ghost_counts[p - 1];
        nodes->wanted_places[p] = (int)wanted;
        wanted += nodes->wanted_counts[p];
    }
    nodes->wanted = allocate((size_t)wanted * sizeof *nodes->wanted);
    nodes->packed = allocate((size_t)wanted * sizeof *nodes->packed);
    MPI_Alltoallv(nodes->ghost, nodes->ghost_counts, nodes->ghost_places, MPI_INT64_T, nodes->wanted,
                  nodes->wanted_counts, nodes->wanted_places, MPI_INT64_T, MPI_COMM_WORLD);
    for (long i = 0; i < wanted; i++)
        nodes->wanted[i] -= field->begin;
}

/* Where the value of a node of that kind is: among the own ones or the ghosts. */
static long place_of(const struct field *field, int kind, long node)
{
    const struct nodes *nodes = &field->kinds[kind];
    if (is_own(field, node))
        return node - field->begin;
    int64_t key = node;
    const int64_t *ghost = bsearch(&key, nodes->ghost, (size_t)nodes->ghosts, sizeof key, compare_numbers);
    return field->count + (ghost - nodes->ghost);
}

/* Takes the values of ghosts that have come by mail; the sender has counted its ghosts from 0. */
static void take_updates(struct nodes *nodes, double *ghosts, int source, const struct update *update, long count)
{
    for (long i = 0; i < count; i++)
        ghosts[nodes->ghost_places[source] + update[i].ghost] = update[i].value;
}

static void take_electric(void *owner, int source, const void *items, long count)
{
    struct field *field = owner;
    struct nodes *nodes = &field->kinds[ELECTRIC];
    take_updates(nodes, nodes->value + field->count, source, items, count);
}

static void take_magnetic(void *owner, int source, const void *items, long count)
{
    struct field *field = owner;
    struct nodes *nodes = &field->kinds[MAGNETIC];
    take_updates(nodes, nodes->value + field->count, source, items, count);
}

static void send_updates(struct field *field, int kind)
{
    const struct nodes *nodes = &field->kinds[kind];
    for (int p = 0; p < field->processes; p++) {
        for (int i = 0; i < nodes->wanted_counts[p]; i++) {
            double value = nodes->value[nodes->wanted[nodes->wanted_places[p] + i]];
            mail_post(field->mail[kind], p, &(struct update){i, value});
        }
    }
    mail_end_phase(field->mail[kind]);
}

static void send_in_bulk(struct field *field, int kind)
{
    struct nodes *nodes = &field->kinds[kind];
    int requests = 0;
    for (int p = 0; p < field->processes; p++)
        if (nodes->ghost_counts[p] > 0)
            MPI_Irecv(nodes->value + field->count + nodes->ghost_places[p], nodes->ghost_counts[p], MPI_DOUBLE, p,
                      kind, MPI_COMM_WORLD, &field->requests[requests++]);
    for (int p = 0; p < field->processes; p++) {
        double *packed = nodes->packed + nodes->wanted_places[p];
        for (int i = 0; i < nodes->wanted_counts[p]; i++)
            packed[i] = nodes->value[nodes->wanted[nodes->wanted_places[p] + i]];
        if (nodes->wanted_counts[p] > 0)
            MPI_Isend(packed, nodes->wanted_counts[p], MPI_DOUBLE, p, kind, MPI_COMM_WORLD,
                      &field->requests[requests++]);
    }
    MPI_Waitall(requests, field->requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void send_ghosts(struct field *field, int kind)
{
    if (field->aggregate > 0)
        send_updates(field, kind);
    else
        send_in_bulk(field, kind);
}

static void update_nodes(struct field *field, int kind)
{
    struct nodes *nodes = &field->kinds[kind];
    const double *other = field->kinds[1 - kind].value;
    for (long i = 0; i < field->count; i++) {
        double sum = nodes->value[i];
        for (long e = i * DEGREE; e < (i + 1) * DEGREE; e++)
            sum -= nodes->weight[e] * other[nodes->source[e]];
        nodes->value[i] = sum;
    }
}

static void step(struct field *field)
{
    for (int kind = 0; kind < KINDS; kind++) {
        update_nodes(field, kind);
        send_ghosts(field, kind);
    }
}

static void make_field(struct field *field)
{
    static mail_handler *const takers[KINDS] = {take_electric, take_magnetic};
    for (int kind = 0; kind < KINDS; kind++) {
        struct nodes *nodes = &field->kinds[kind];
        nodes->ghost_counts = make_counts(field);
        nodes->ghost_places = make_counts(field);
        nodes->wanted_counts = make_counts(field);
        nodes->wanted_places = make_counts(field);
        find_ghosts(field, kind);
        exchange_wishes(field, kind);
        for (long i = 0; i < field->count; i++)
            nodes->value[i] = first_value(kind, field->begin + i);
        if (field->aggregate > 0)
            field->mail[kind] = mail_open(sizeof(struct update), field->aggregate, takers[kind], field);
    }
    field->requests = allocate(2 * (size_t)field->processes * sizeof *field->requests);
    for (int kind = 0; kind < KINDS; kind++) {
        struct nodes *nodes = &field->kinds[kind];
        nodes->source = allocate((size_t)(field->count * DEGREE) * sizeof *nodes->source);
        nodes->weight = allocate((size_t)(field->count * DEGREE) * sizeof *nodes->weight);
        for (long i = 0; i < field->count; i++) {
            for (int e = 0; e < DEGREE; e++) {
                long node = field->begin + i;
                nodes->source[i * DEGREE + e] = place_of(field, 1 - kind, neighbour_of(field, kind, node, e));
                nodes->weight[i * DEGREE + e] = weight_of(kind, node, e);
            }
        }
        send_ghosts(field, kind);
    }
}

static void free_field(struct field *field)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct nodes *nodes = &field->kinds[kind];
        if (field->mail[kind] != NULL)
            mail_close(field->mail[kind]);
        free(nodes->value);
        free(nodes->ghost);
        free(nodes->ghost_counts);
        free(nodes->ghost_places);
        free(nodes->wanted);
        free(nodes->wanted_counts);
        free(nodes->wanted_places);
        free(nodes->packed);
        free(nodes->source);
        free(nodes->weight);
    }
    free(field->requests);
}

/* The numbers of the nodes at the ends of this process's edges, for a kind. */
static long *find_ends(const struct field *field, int kind)
{
    long *ends = allocate((size_t)(field->count * DEGREE) * sizeof *ends);
    for (long i = 0; i < field->count; i++)
        for (int e = 0; e < DEGREE; e++)
            ends[i * DEGREE + e] = neighbour_of(field, kind, field->begin + i, e);
    return ends;
}

/* Whether the values are what that many steps make of the first ones, computed again without ghosts or mail: each
   process has all values of the graph, and gathers those of a kind whenever they have changed. */
static bool verify_steps(const struct field *field, long steps)
{
    bool right = true;
    double *all[KINDS];
    long *ends[KINDS];
    int *counts = make_counts(field), *places = make_counts(field);
    for (int p = 0; p < field->processes; p++) {
        places[p] = (int)share_begin(field->total, field->processes, p);
        counts[p] = (int)share_begin(field->total, field->processes, p + 1) - places[p];
    }
    for (int kind = 0; kind < KINDS; kind++) {
        ends[kind] = find_ends(field, kind);
        all[kind] = allocate((size_t)field->total * sizeof **all);
        for (long i = 0; i < field->total; i++)
            all[kind][i] = first_value(kind, i);
    }
    for (long i = 0; i < steps; i++) {
        for (int kind = 0; kind < KINDS; kind++) {
            double *own = all[kind] + field->begin;
            for (long e = 0; e < field->count * DEGREE; e++)
                own[e / DEGREE] -= field->kinds[kind].weight[e] * all[1 - kind][ends[kind][e]];
            MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all[kind], counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
        }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        size_t bytes = (size_t)field->count * sizeof **all;
        right = right && memcmp(all[kind] + field->begin, field->kinds[kind].value, bytes) == 0;
        free(all[kind]);
        free(ends[kind]);
    }
    free(counts);
    free(places);
    return right;
}

int main(int argc, char **argv)
{
    int class = CLASS_A;
    struct field field = {.remote = 10};
    const struct option_entry options[] = {
        CLASS_OPTION(&class),
        {"--remote", "edges of 100 that leave their part", OPTION_NUMBER, &field.remote, 0, 100, NULL},
        {"--parts", "parts of the graph (0: as many as processes)", OPTION_NUMBER, &field.parts, 0, 1000, NULL},
        {"--aggregate", "ghosts in a message (0: all that go to a process)", OPTION_NUMBER, &field.aggregate, 0,
         100000, NULL},
        {0}};
    struct outcome outcome = {.program = "EM3D: waves on a bipartite graph", .unit = "edges"};
    uint64_t sum = 0, ghosts = 0;

    MPI_Init(&argc, &argv);
    read_options(argc, argv, options);
    field.processes = process_count();
    field.rank = process_rank();
    field.total = classes[class].nodes;
    if (field.parts == 0)
        field.parts = field.processes;
    if (field.processes > field.total)
        refuse("%d processes are too many for %ld nodes; use fewer", field.processes, field.total);
    field.begin = share_begin(field.total, field.processes, field.rank);
    field.count = share_begin(field.total, field.processes, field.rank + 1) - field.begin;
    make_field(&field);
    double start = clock_start();
    for (long i = 0; i < classes[class].steps; i++)
        step(&field);
    outcome.seconds = clock_stop(start);
    for (int kind = 0; kind < KINDS; kind++) {
        ghosts += (uint64_t)field.kinds[kind].ghosts;
        for (long i = 0; i < field.count; i++)
            sum += mix(bits_of(field.kinds[kind].value[i]) ^ mix((uint64_t)(field.begin + i) * KINDS + (uint64_t)kind));
    }
    sum = sum_of_all(sum);
    ghosts = sum_of_all(ghosts);
    outcome.verified = verify_steps(&field, classes[class].steps);
    outcome.class = class;
    outcome.operations = (double)(field.total * KINDS * DEGREE * classes[class].steps);
    snprintf(outcome.size, sizeof outcome.size, "2 x %ld nodes in %ld parts, %ld steps, %llu ghosts", field.total,
             field.parts, classes[class].steps, (unsigned long long)ghosts);
    snprintf(outcome.result, sizeof outcome.result, "checksum %016llx", (unsigned long long)sum);
    free_field(&field);
    return finish(&outcome);
}
