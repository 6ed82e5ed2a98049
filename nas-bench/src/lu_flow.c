#include "lu_flow.h"

/* The report's constants: ratio of specific heats, the same less 1, and the products of viscosity and conductivity. */
static const double c1 = 1.4, c2 = 0.4, c34 = 0.1, c15 = 1.4 * 1.4, c1345 = 1.4 * 0.1 * 1.4;
static const double four_thirds = 4.0 / 3.0;
/* Second-order dissipation in each direction, the same for all unknowns, and fourth-order dissipation. */
static const double dissipation[DIMENSIONS] = {0.75, 0.75, 1.0};
static const double dssp = 1.0 / 4.0;

/* Coefficients of 1, x, y, z and their second, third and fourth powers. */
static const double coefficients[UNKNOWNS][13] = {
    {2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
    {1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
    {2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
    {2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
    {5.0, 4.0, 3.0, 2.0, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2},
};

struct flow make_flow(int points)
{
    struct flow flow = {.points = points};
    double h = 1.0 / (points - 1);
    for (int d = 0; d < DIMENSIONS; d++) {
        flow.t1[d] = 1 / (h * h);
        flow.t2[d] = 1 / (2 * h);
        flow.t3[d] = 1 / h;
    }
    return flow;
}

void exact_solution(const struct flow *flow, const int index[DIMENSIONS], double u[UNKNOWNS])
{
    for (int m = 0; m < UNKNOWNS; m++) {
        const double *c = coefficients[m];
        u[m] = c[0];
        for (int d = 0; d < DIMENSIONS; d++) {
            double x = (double)index[d] / (flow->points - 1);
            u[m] += x * (c[1 + d] + x * (c[4 + d] + x * (c[7 + d] + x * c[10 + d])));
        }
    }
}

/* Velocity, half its square and energy by mass. */
struct state {
    double velocity[DIMENSIONS], half_square, energy, inverse_density;
};

static struct state state_of(const double u[UNKNOWNS])
{
    struct state s = {.inverse_density = 1 / u[0]};
    for (int d = 0; d < DIMENSIONS; d++) {
        s.velocity[d] = u[1 + d] * s.inverse_density;
        s.half_square += 0.5 * s.velocity[d] * s.velocity[d];
    }
    s.energy = u[4] * s.inverse_density;
    return s;
}

double pressure(const double u[UNKNOWNS])
{
    return c2 * (u[4] - u[0] * state_of(u).half_square);
}

/* What flows through a plane at right angles to the direction, viscosity apart. */
static void convective_flux(int direction, const double u[UNKNOWNS], double flux[UNKNOWNS])
{
    struct state s = state_of(u);
    double velocity = s.velocity[direction], force = pressure(u);
    flux[0] = u[1 + direction];
    for (int d = 0; d < DIMENSIONS; d++)
        flux[1 + d] = u[1 + d] * velocity;
    flux[1 + direction] += force;
    flux[4] = (u[4] + force) * velocity;
}

/* The viscous flux between two points next to each other. */
static void viscous_flux(int direction, double t3, const double before[UNKNOWNS], const double after[UNKNOWNS],
                         double flux[UNKNOWNS])
{
    struct state a = state_of(before), b = state_of(after);
    flux[0] = 0;
    for (int d = 0; d < DIMENSIONS; d++)
        flux[1 + d] = (d == direction ? four_thirds : 1) * t3 * (b.velocity[d] - a.velocity[d]);
    double along = b.velocity[direction] * b.velocity[direction] - a.velocity[direction] * a.velocity[direction];
    flux[4] = (1 - c15) * t3 * (b.half_square - a.half_square) + t3 / 6 * along + c15 * t3 * (b.energy - a.energy);
}

void add_change(const struct flow *flow, int direction, int first, int last, const double *u, double *right, long step)
{
    const double t1 = flow->t1[direction], t2 = flow->t2[direction], t3 = flow->t3[direction];
    const int end = flow->points - 1;
    double before[UNKNOWNS], here[UNKNOWNS], after[UNKNOWNS], low[UNKNOWNS], high[UNKNOWNS];

    convective_flux(direction, u - step, before);
    convective_flux(direction, u, here);
    viscous_flux(direction, t3, u - step, u, low);
    for (int i = first; i <= last; i++) {
        const double *p = u + (i - first) * step;
        double *r = right + (i - first) * step;
        convective_flux(direction, p + step, after);
        viscous_flux(direction, t3, p, p + step, high);
        for (int m = 0; m < UNKNOWNS; m++) {
            double second = p[m - step] - 2 * p[m] + p[m + step];
            /* The fourth difference is cut short beside the border. */
            double fourth = (i == 1 || i == end - 1 ? 5 : 6) * p[m];
            fourth += i > 1 ? -4 * p[m - step] : 0;
            fourth += i < end - 1 ? -4 * p[m + step] : 0;
            fourth += i > 2 ? p[m - 2 * step] : 0;
            fourth += i < end - 2 ? p[m + 2 * step] : 0;
            r[m] += t2 * (before[m] - after[m]) + t3 * c34 * (high[m] - low[m]) +
                    dissipation[direction] * t1 * second - dssp * fourth;
            before[m] = here[m];
            here[m] = after[m];
            low[m] = high[m];
        }
    }
}

void add_coupling(const struct flow *flow, int direction, int sign, double dt, const double u[UNKNOWNS],
                  const double v[UNKNOWNS], double product[UNKNOWNS])
{
    const double convection = sign * dt * flow->t2[direction], diffusion = -dt * flow->t1[direction];
    struct state s = state_of(u);
    const double velocity = s.velocity[direction], heat = c1345 * s.inverse_density;
    double mixed = 0, viscous = heat * (v[4] - s.energy * v[0]);

    for (int d = 0; d < DIMENSIONS; d++)
        mixed += s.velocity[d] * v[1 + d];
    product[0] += convection * v[1 + direction] + diffusion * dissipation[direction] * v[0];
    for (int d = 0; d < DIMENSIONS; d++) {
        double flux = s.velocity[d] * (v[1 + direction] - velocity * v[0]) + velocity * v[1 + d];
        double friction = (d == direction ? four_thirds : 1) * c34 * s.inverse_density;
        double change = v[1 + d] - s.velocity[d] * v[0];
        if (d == direction)
            flux += c2 * (s.half_square * v[0] - mixed + v[4]);
        viscous += (friction - heat) * s.velocity[d] * change;
        product[1 + d] += convection * flux + diffusion * (friction * change + dissipation[direction] * v[1 + d]);
    }
    double flux = (2 * c2 * s.half_square - c1 * s.energy) * velocity * v[0] +
                  (c1 * s.energy - c2 * s.half_square) * v[1 + direction] - c2 * velocity * mixed +
                  c1 * velocity * v[4];
    product[4] += convection * flux + diffusion * (viscous + dissipation[direction] * v[4]);
}

void solve_diagonal(const struct flow *flow, double dt, const double u[UNKNOWNS], double v[UNKNOWNS])
{
    struct state s = state_of(u);
    double all = 0, diagonal = 1, heat, viscous;
    for (int d = 0; d < DIMENSIONS; d++) {
        all += flow->t1[d];
        diagonal += 2 * dt * flow->t1[d] * dissipation[d];
    }
    heat = c1345 * s.inverse_density * all;
    v[0] /= diagonal;
    viscous = -heat * s.energy * v[0];
    for (int d = 0; d < DIMENSIONS; d++) {
        double friction = c34 * s.inverse_density * (all + (four_thirds - 1) * flow->t1[d]);
        v[1 + d] = (v[1 + d] + 2 * dt * friction * s.velocity[d] * v[0]) / (diagonal + 2 * dt * friction);
        viscous += (friction - heat) * s.velocity[d] * (v[1 + d] - s.velocity[d] * v[0]);
    }
    v[4] = (v[4] - 2 * dt * viscous) / (diagonal + 2 * dt * heat);
}
