/* The equations of NAS LU: compressible viscous flow in three dimensions, five unknowns a point (density,
   three momenta, energy), and a solution that is exact by a forcing term. */
#ifndef LU_FLOW_H
#define LU_FLOW_H

enum { UNKNOWNS = 5, DIMENSIONS = 3 };

/* What a grid of n points a side gives. */
struct flow {
    int points;
    double t1[DIMENSIONS], t2[DIMENSIONS], t3[DIMENSIONS]; /* 1 / h**2, 1 / 2h and 1 / h */
};

struct flow make_flow(int points);

/* The exact solution at a point, indices from 0. */
void exact_solution(const struct flow *flow, const int index[DIMENSIONS], double u[UNKNOWNS]);

/* The pressure at a point. */
double pressure(const double u[UNKNOWNS]);

/* Adds the flow's change in one direction to the right sides of inner points `first` to `last` of a line. Both
   pointers are to the first of them, and there is a point each `step` numbers; values from first - 2 to last + 2 are
   read, as far as the grid goes. */
void add_change(const struct flow *flow, int direction, int first, int last, const double *u, double *right, long step);

/* Adds to `product` the coupling with a neighbour in a direction, times `v`: the sign is that of the
   flux term, -1 for the neighbour before and +1 for the one after. */
void add_coupling(const struct flow *flow, int direction, int sign, double dt, const double u[UNKNOWNS],
                  const double v[UNKNOWNS], double product[UNKNOWNS]);

/* Solves the diagonal block's equations for the right side `v`, in place. */
void solve_diagonal(const struct flow *flow, double dt, const double u[UNKNOWNS], double v[UNKNOWNS]);

#endif
