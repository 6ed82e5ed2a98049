/* lu: NAS LU, compressible flow by symmetric successive over-relaxation (NASA report RNR-94-007).

   The grid is cut in columns along z. In each iteration a lower sweep runs through all points from one
   corner to the opposite one and an upper sweep back: a process works on a plane when it has the edges
   that its neighbours have computed before it, and hands its own on, so the processes form a pipeline
   of many small messages. Norms of the last residual and of the error, and an
   integral over the surface of a box, are compared with the official ones. */
#include "lu_flow.h"
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HALO = 2, LEAST_SHARE = 4 };
static const double omega = 1.2, tolerance = 1e-8;

static const struct {
    int points, iterations;
    double dt, residual[UNKNOWNS], error[UNKNOWNS], surface; /* official norms, and the surface integral */
} classes[CLASSES] = {
    {12, 50, 0.5,
     {1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03, 1.5029584435994323e-03,
      3.4264073155896461e-02},
     {6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05, 5.8474222595157350e-05,
      1.3103347914111294e-03},
     7.8418928865937083},
    {33, 300, 1.5e-3,
     {0.1236511638192e+02, 0.1317228477799e+01, 0.2550120713095e+01, 0.2326187750252e+01, 0.2826799444189e+02},
     {0.4867877144216e+00, 0.5064652880982e-01, 0.9281818101960e-01, 0.8570126542733e-01, 0.1084277417792e+01},
     11.61399311023},
    {64, 250, 2.0,
     {7.7902107606689367e+02, 6.3402765259692870e+01, 1.9499249727292479e+02, 1.7845301160418537e+02,
      1.8384760349464247e+03},
     {2.9964085685471943e+01, 2.8194576365003349e+00, 7.3473412698774742e+00, 6.7139225687777051e+00,
      7.0715315688392578e+01},
     26.030925604886277},
    {102, 250, 2.0,
     {3.5532672969982736e+03, 2.6214750795310692e+02, 8.8333721850952190e+02, 7.7812774739425265e+02,
      7.3087969592545314e+03},
     {1.1401176380212709e+02, 8.1098963655421574e+00, 2.8480597317698308e+01, 2.5905394567832939e+01,
      2.6054907504857413e+02},
     47.887162703308227},
};

/* What a process has of an axis that is cut. */
struct axis {
    int before, after;       /* neighbours */
    int begin, count;        /* points */
    int first, last;         /* inner points, counted in the share */
};

struct solver {
    struct flow flow;
    double dt;
    MPI_Comm comm;
    int dims[2];
    struct axis x, y;
    int planes;              /* between two messages of a sweep */
    long row, plane;         /* numbers from a row and a plane to the next */
    double *u, *forcing, *v; /* the solution; v is the residual, then the change */
    double *out, *in;        /* a message */
};

static double *at(const struct solver *s, double *field, int k, int j, int i)
{
    return field + k * s->plane + (j + HALO) * s->row + (i + HALO) * UNKNOWNS;
}

static struct axis make_axis(const struct solver *s, int dimension, int coordinate)
{
    struct axis axis;
    int points = s->flow.points, processes = s->dims[dimension];
    MPI_Cart_shift(s->comm, dimension, 1, &axis.before, &axis.after);
    axis.begin = (int)share_begin(points, processes, coordinate);
    axis.count = (int)share_begin(points, processes, coordinate + 1) - axis.begin;
    axis.first = axis.begin == 0 ? 1 : 0;
    axis.last = axis.begin + axis.count == points ? axis.count - 2 : axis.count - 1;
    return axis;
}

/* Copies the points from (j, i) on, `rows` by `columns` in each of the planes, to a message or back. */
static long pack(const struct solver *s, double *field, int k, int planes, int j, int rows, int i, int columns)
{
    const size_t length = (size_t)columns * UNKNOWNS;
    double *to = s->out;
    for (int plane = k; plane < k + planes; plane++)
        for (int row = j; row < j + rows; row++, to += length)
            memcpy(to, at(s, field, plane, row, i), length * sizeof *to);
    return to - s->out;
}

static void unpack(const struct solver *s, double *field, int k, int planes, int j, int rows, int i, int columns)
{
    const size_t length = (size_t)columns * UNKNOWNS;
    const double *from = s->in;
    for (int plane = k; plane < k + planes; plane++)
        for (int row = j; row < j + rows; row++, from += length)
            memcpy(at(s, field, plane, row, i), from, length * sizeof *from);
}

/* Sends a packed message one way while one comes from the other side; true if one came. */
static bool shift(const struct solver *s, long count, int to, int from)
{
    MPI_Request request;
    MPI_Irecv(s->in, (int)count, MPI_DOUBLE, from, 0, s->comm, &request);
    MPI_Send(s->out, (int)count, MPI_DOUBLE, to, 0, s->comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return from != MPI_PROC_NULL;
}

/* Exchanges two layers of the solution with each neighbour. */
static void exchange_solution(struct solver *s)
{
    int n = s->flow.points, rows = s->y.count, columns = s->x.count;
    if (shift(s, pack(s, s->u, 0, n, 0, rows, columns - HALO, HALO), s->x.after, s->x.before))
        unpack(s, s->u, 0, n, 0, rows, -HALO, HALO);
    if (shift(s, pack(s, s->u, 0, n, 0, rows, 0, HALO), s->x.before, s->x.after))
        unpack(s, s->u, 0, n, 0, rows, columns, HALO);
    if (shift(s, pack(s, s->u, 0, n, rows - HALO, HALO, 0, columns), s->y.after, s->y.before))
        unpack(s, s->u, 0, n, -HALO, HALO, 0, columns);
    if (shift(s, pack(s, s->u, 0, n, 0, HALO, 0, columns), s->y.before, s->y.after))
        unpack(s, s->u, 0, n, rows, HALO, 0, columns);
}

/* Adds the flow's change at all inner points of this process to `right`. */
static void add_all_changes(struct solver *s, double *field, double *right)
{
    const struct axis *x = &s->x, *y = &s->y;
    int end = s->flow.points - 2;
    for (int k = 1; k <= end; k++)
        for (int j = y->first; j <= y->last; j++)
            add_change(&s->flow, 0, x->begin + x->first, x->begin + x->last, at(s, field, k, j, x->first),
                       at(s, right, k, j, x->first), UNKNOWNS);
    for (int k = 1; k <= end; k++)
        for (int i = x->first; i <= x->last; i++)
            add_change(&s->flow, 1, y->begin + y->first, y->begin + y->last, at(s, field, k, y->first, i),
                       at(s, right, k, y->first, i), s->row);
    for (int j = y->first; j <= y->last; j++)
        for (int i = x->first; i <= x->last; i++)
            add_change(&s->flow, 2, 1, end, at(s, field, 1, j, i), at(s, right, 1, j, i), s->plane);
}

static void compute_residual(struct solver *s)
{
    exchange_solution(s);
    for (long i = 0; i < s->flow.points * s->plane; i++)
        s->v[i] = -s->forcing[i];
    add_all_changes(s, s->u, s->v);
}

/* The values to begin with: those of the border blended into the inside. */
static void blend(const struct flow *flow, const int index[DIMENSIONS], double u[UNKNOWNS])
{
    int end = flow->points - 1;
    double part[DIMENSIONS][UNKNOWNS];
    for (int d = 0; d < DIMENSIONS; d++) {
        int low[DIMENSIONS], high[DIMENSIONS];
        double from[UNKNOWNS], to[UNKNOWNS], x = (double)index[d] / end;
        memcpy(low, index, sizeof low);
        memcpy(high, index, sizeof high);
        low[d] = 0;
        high[d] = end;
        exact_solution(flow, low, from);
        exact_solution(flow, high, to);
        for (int m = 0; m < UNKNOWNS; m++)
            part[d][m] = (1 - x) * from[m] + x * to[m];
    }
    for (int m = 0; m < UNKNOWNS; m++) {
        double a = part[0][m], b = part[1][m], c = part[2][m];
        u[m] = a + b + c - a * b - b * c - c * a + a * b * c;
    }
}

/* Sets the solution to begin with, and the forcing by which the exact solution does not change. */
static void set_fields(struct solver *s)
{
    int n = s->flow.points;
    double *exact = allocate((size_t)(n * s->plane) * sizeof *exact);
    memset(exact, 0, (size_t)(n * s->plane) * sizeof *exact);
    memset(s->u, 0, (size_t)(n * s->plane) * sizeof *s->u);
    memset(s->forcing, 0, (size_t)(n * s->plane) * sizeof *s->forcing);
    for (int k = 0; k < n; k++) {
        for (int j = -HALO; j < s->y.count + HALO; j++) {
            for (int i = -HALO; i < s->x.count + HALO; i++) {
                int index[DIMENSIONS] = {s->x.begin + i, s->y.begin + j, k};
                bool inside = true, border = false;
                for (int d = 0; d < DIMENSIONS; d++) {
                    inside = inside && index[d] >= 0 && index[d] < n;
                    border = border || index[d] == 0 || index[d] == n - 1;
                }
                if (!inside)
                    continue;
                exact_solution(&s->flow, index, at(s, exact, k, j, i));
                if (border)
                    memcpy(at(s, s->u, k, j, i), at(s, exact, k, j, i), UNKNOWNS * sizeof(double));
                else
                    blend(&s->flow, index, at(s, s->u, k, j, i));
            }
        }
    }
    add_all_changes(s, exact, s->forcing);
    free(exact);
}

/* One point of a sweep: takes off what the three neighbours before it (side -1) or after it (1) have
   changed, and solves for the point's own change. */
static void relax(struct solver *s, int side, int k, int j, int i)
{
    double coupled[UNKNOWNS] = {0}, *v = at(s, s->v, k, j, i);
    add_coupling(&s->flow, 2, side, s->dt, at(s, s->u, k + side, j, i), at(s, s->v, k + side, j, i), coupled);
    add_coupling(&s->flow, 1, side, s->dt, at(s, s->u, k, j + side, i), at(s, s->v, k, j + side, i), coupled);
    add_coupling(&s->flow, 0, side, s->dt, at(s, s->u, k, j, i + side), at(s, s->v, k, j, i + side), coupled);
    if (side < 0) {
        for (int m = 0; m < UNKNOWNS; m++)
            v[m] -= omega * coupled[m];
        solve_diagonal(&s->flow, s->dt, at(s, s->u, k, j, i), v);
    } else {
        for (int m = 0; m < UNKNOWNS; m++)
            coupled[m] *= omega;
        solve_diagonal(&s->flow, s->dt, at(s, s->u, k, j, i), coupled);
        for (int m = 0; m < UNKNOWNS; m++)
            v[m] -= coupled[m];
    }
}

static void receive_edge(const struct solver *s, long points, int from)
{
    MPI_Recv(s->in, (int)(points * UNKNOWNS), MPI_DOUBLE, from, 1, s->comm, MPI_STATUS_IGNORE);
}

/* A sweep from the first corner to the last; each process waits for those before it, and is waited for. */
static void sweep_down(struct solver *s)
{
    const struct axis *x = &s->x, *y = &s->y;
    for (int k = 1; k <= s->flow.points - 2; k += s->planes) {
        int left = s->flow.points - 1 - k, planes = left < s->planes ? left : s->planes;
        if (x->before != MPI_PROC_NULL) {
            receive_edge(s, (long)planes * y->count, x->before);
            unpack(s, s->v, k, planes, 0, y->count, -1, 1);
        }
        if (y->before != MPI_PROC_NULL) {
            receive_edge(s, (long)planes * x->count, y->before);
            unpack(s, s->v, k, planes, -1, 1, 0, x->count);
        }
        for (int plane = k; plane < k + planes; plane++)
            for (int j = y->first; j <= y->last; j++)
                for (int i = x->first; i <= x->last; i++)
                    relax(s, -1, plane, j, i);
        if (x->after != MPI_PROC_NULL) {
            long count = pack(s, s->v, k, planes, 0, y->count, x->count - 1, 1);
            MPI_Send(s->out, (int)count, MPI_DOUBLE, x->after, 1, s->comm);
        }
        if (y->after != MPI_PROC_NULL) {
            long count = pack(s, s->v, k, planes, y->count - 1, 1, 0, x->count);
            MPI_Send(s->out, (int)count, MPI_DOUBLE, y->after, 1, s->comm);
        }
    }
}

/* The sweep back. */
static void sweep_up(struct solver *s)
{
    const struct axis *x = &s->x, *y = &s->y;
    for (int end = s->flow.points - 2; end >= 1; end -= s->planes) {
        int planes = end < s->planes ? end : s->planes, k = end - planes + 1;
        if (x->after != MPI_PROC_NULL) {
            receive_edge(s, (long)planes * y->count, x->after);
            unpack(s, s->v, k, planes, 0, y->count, x->count, 1);
        }
        if (y->after != MPI_PROC_NULL) {
            receive_edge(s, (long)planes * x->count, y->after);
            unpack(s, s->v, k, planes, y->count, 1, 0, x->count);
        }
        for (int plane = end; plane >= k; plane--)
            for (int j = y->last; j >= y->first; j--)
                for (int i = x->last; i >= x->first; i--)
                    relax(s, 1, plane, j, i);
        if (x->before != MPI_PROC_NULL) {
            long count = pack(s, s->v, k, planes, 0, y->count, 0, 1);
            MPI_Send(s->out, (int)count, MPI_DOUBLE, x->before, 1, s->comm);
        }
        if (y->before != MPI_PROC_NULL) {
            long count = pack(s, s->v, k, planes, 0, 1, 0, x->count);
            MPI_Send(s->out, (int)count, MPI_DOUBLE, y->before, 1, s->comm);
        }
    }
}

static void iterate(struct solver *s)
{
    const long size = s->flow.points * s->plane;
    const double weight = 1 / (omega * (2 - omega));
    for (long i = 0; i < size; i++)
        s->v[i] *= s->dt;
    sweep_down(s);
    sweep_up(s);
    for (int k = 1; k <= s->flow.points - 2; k++)
        for (int j = s->y.first; j <= s->y.last; j++)
            for (double *u = at(s, s->u, k, j, s->x.first), *v = at(s, s->v, k, j, s->x.first),
                        *end = at(s, s->u, k, j, s->x.last + 1);
                 u < end; u++, v++)
                *u += weight * *v;
    compute_residual(s);
}

/* Root mean squares over the inner points: of the residual, or of the error of the solution. */
static void compute_norms(struct solver *s, bool of_error, double norms[UNKNOWNS])
{
    double inner = s->flow.points - 2;
    memset(norms, 0, UNKNOWNS * sizeof *norms);
    for (int k = 1; k <= s->flow.points - 2; k++) {
        for (int j = s->y.first; j <= s->y.last; j++) {
            for (int i = s->x.first; i <= s->x.last; i++) {
                double exact[UNKNOWNS], *u = at(s, s->u, k, j, i), *v = at(s, s->v, k, j, i);
                exact_solution(&s->flow, (int[]){s->x.begin + i, s->y.begin + j, k}, exact);
                for (int m = 0; m < UNKNOWNS; m++) {
                    double number = of_error ? exact[m] - u[m] : v[m];
                    norms[m] += number * number;
                }
            }
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, norms, UNKNOWNS, MPI_DOUBLE, MPI_SUM, s->comm);
    for (int m = 0; m < UNKNOWNS; m++)
        norms[m] = sqrt(norms[m] / (inner * inner * inner));
}

/* How many of the cells between the points first to last of a line meet in a point: 0, 1 or 2. */
static int cells_at(int point, int first, int last)
{
    return point < first || point > last ? 0 : (point > first) + (point < last);
}

/* The integral of the pressure over the faces of a box inside the grid, by the mean of a cell's four corners. The box is the
   suite's: it leaves out one layer of points, at the far y and the near z two. */
static double integrate_surface(struct solver *s)
{
    const int n = s->flow.points, first[DIMENSIONS] = {1, 1, 2}, last[DIMENSIONS] = {n - 2, n - 3, n - 2};
    const double area = 1 / ((n - 1.0) * (n - 1.0));
    double sum = 0;
    for (int k = first[2]; k <= last[2]; k++) {
        for (int j = 0; j < s->y.count; j++) {
            for (int i = 0; i < s->x.count; i++) {
                const int index[DIMENSIONS] = {s->x.begin + i, s->y.begin + j, k};
                int cells[DIMENSIONS], met = 0;
                for (int d = 0; d < DIMENSIONS; d++)
                    cells[d] = cells_at(index[d], first[d], last[d]);
                for (int d = 0; d < DIMENSIONS; d++)
                    if (index[d] == first[d] || index[d] == last[d])
                        met += cells[(d + 1) % DIMENSIONS] * cells[(d + 2) % DIMENSIONS];
                if (met > 0)
                    sum += met * pressure(at(s, s->u, k, j, i));
            }
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, s->comm);
    return sum * area / 4;
}

static bool agree(int count, const double *computed, const double *official)
{
    bool all = true;
    for (int m = 0; m < count; m++)
        all = all && fabs(computed[m] - official[m]) <= tolerance * fabs(official[m]);
    return all;
}

static void make_solver(struct solver *s, int class, long planes)
{
    int processes = process_count(), coords[2], points = classes[class].points;
    MPI_Dims_create(processes, 2, s->dims);
    if (points / s->dims[0] < LEAST_SHARE)
        refuse("%d processes are too many for class %s, which has %d points a side; use fewer", processes,
               class_names[class], points);
    MPI_Cart_create(MPI_COMM_WORLD, 2, s->dims, (int[]){0, 0}, 0, &s->comm);
    MPI_Cart_coords(s->comm, process_rank(), 2, coords);
    s->flow = make_flow(points);
    s->dt = classes[class].dt;
    s->planes = (int)(planes < points ? planes : points);
    s->x = make_axis(s, 0, coords[0]);
    s->y = make_axis(s, 1, coords[1]);
    s->row = (s->x.count + 2 * HALO) * UNKNOWNS;
    s->plane = (s->y.count + 2 * HALO) * s->row;
    const size_t bytes = (size_t)(points * s->plane) * sizeof(double);
    const int longer = s->x.count > s->y.count ? s->x.count : s->y.count;
    s->u = allocate(bytes);
    s->forcing = allocate(bytes);
    s->v = allocate(bytes);
    s->out = allocate((size_t)points * HALO * (size_t)longer * UNKNOWNS * sizeof(double));
    s->in = allocate((size_t)points * HALO * (size_t)longer * UNKNOWNS * sizeof(double));
    set_fields(s);
}

int main(int argc, char **argv)
{
    int class = CLASS_A;
    long planes = 1;
    const struct option_entry options[] = {
        CLASS_OPTION(&class),
        {"--planes", "planes between two messages of a sweep", OPTION_NUMBER, &planes, 1, 1000, NULL},
        {0}};
    struct solver s = {0};
    struct outcome outcome = {.program = "NAS LU (written anew from the published problem)", .unit = "point updates"};
    double residual[UNKNOWNS], error[UNKNOWNS], surface;

    MPI_Init(&argc, &argv);
    read_options(argc, argv, options);
    make_solver(&s, class, planes);
    /* One iteration outside the time touches all memory and opens all connections. */
    compute_residual(&s);
    iterate(&s);
    set_fields(&s);
    compute_residual(&s);
    double start = clock_start();
    for (int iteration = 0; iteration < classes[class].iterations; iteration++)
        iterate(&s);
    outcome.seconds = clock_stop(start);
    compute_norms(&s, false, residual);
    compute_norms(&s, true, error);
    surface = integrate_surface(&s);
    outcome.verified = agree(UNKNOWNS, residual, classes[class].residual) &&
                       agree(UNKNOWNS, error, classes[class].error) && agree(1, &surface, &classes[class].surface);
    outcome.class = class;
    outcome.operations = pow(s.flow.points, 3) * classes[class].iterations;
    snprintf(outcome.size, sizeof outcome.size, "%d points a side, %d iterations, %ld planes a message", s.flow.points,
             classes[class].iterations, planes);
    snprintf(outcome.result, sizeof outcome.result, "residual %.10e, error %.10e of density, surface integral %.10e", residual[0],
             error[0], surface);
    free(s.u);
    free(s.forcing);
    free(s.v);
    free(s.out);
    free(s.in);
    MPI_Comm_free(&s.comm);
    return finish(&outcome);
}
