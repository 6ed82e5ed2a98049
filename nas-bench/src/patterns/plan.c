/* Draws plans. Every step is drawn from a stream of its own, so that leaving one out changes no other. */
#include "plan.h"

#include <string.h>

uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t draw(struct random *random)
{
    return mix(random->state += 0x9e3779b97f4a7c15u, 0);
}

long draw_below(struct random *random, long limit)
{
    return (long)(draw(random) % (uint64_t)limit);
}

bool seed_has_threads(uint64_t seed)
{
    return seed / 16 % 4 == 3;
}

/* What an execution of the action costs, in nanoseconds, checks included. Where there are more processes than cores, each message may
   wait for others' turns. */
static long cost(const struct action *action, int ranks)
{
    const long message = ranks == 2 ? 4000 : 25000 * (ranks - 1), byte_divisor = 2;
    if (action->kind == FORK)
        return 2000000;
    if (action->kind == COLLECTIVE)
        return ranks * (message + action->bytes * ranks / byte_divisor);
    long sum = 2000 + action->work * 50;
    for (int m = 0; m < action->count; m++)
        sum += message + action->messages[m].bytes / byte_divisor;
    if (action->meeting != COLLECTIVES)
        sum += ranks * message;
    return sum;
}

static enum action_kind draw_kind(struct random *random, bool forks)
{
    long n = draw_below(random, 100);
    if (n < 58)
        return BATCH;
    if (n < 70)
        return EXCHANGE;
    if (n < 75)
        return REPLACE;
    if (n < 84)
        return FUNNEL;
    if (n < 97 || !forks)
        return COLLECTIVE;
    return FORK;
}

/* Buffers must be sent often enough to be promoted, and calls made often enough to be tuned. */
static void draw_loops(struct random *random, struct step *step, int ranks)
{
    const long budget = 20000000;
    long inner = 0, outer = 0;
    for (int a = 0; a < step->count; a++)
        *(step->actions[a].outer ? &outer : &inner) += cost(&step->actions[a], ranks);
    step->outer = 1 + (int)draw_below(random, 4);
    step->inner = 1;
    if (inner > 0) {
        const long most = 100 + draw_below(random, 300);
        long times = (budget - outer * step->outer) / inner / step->outer;
        step->inner = (int)(times < 12 / step->outer ? 12 / step->outer : times > most / step->outer ? most / step->outer : times);
    } else {
        long times = budget / (outer + 1);
        step->outer = (int)(times < 12 ? 12 : times > 100 ? 100 : times);
    }
}

/* A funnel's root may take two messages of one sender and leave another's to the next execution. Where something comes in between,
   it might wait for that other one, which waits for the root: all meet before it. */
static void close_funnels(const struct plan *plan, struct step *step)
{
    const bool alone = step->count == step->threads || plan->ranks == 2;
    for (int a = 0; a < step->count && !alone; a++)
        if (step->actions[a].kind == FUNNEL)
            step->actions[a].meeting = BARRIER;
}

/* Startall begins receives of the same pair after all others that are posted early, so not in the order of the sends. */
static void keep_order(struct action *action)
{
    for (int m = 0; m < action->count && action->startall; m++) {
        struct message *message = &action->messages[m];
        for (int n = 0; n < action->count; n++) {
            const struct message *other = &action->messages[n];
            if (n != m && other->source == message->source && other->target == message->target && other->early && other->receive == RECV_INIT)
                message->any_tag = false;
        }
    }
}

static void draw_step(struct random *random, const struct plan *plan, struct step *step)
{
    /* Most messages are short enough for hundreds of repetitions. */
    const long n = draw_below(random, 16);
    const long limit = n == 0 ? 4 << 20 : n < 4 ? 1 << 20 : n < 12 ? 256 << 10 : 16 << 10;
    step->threads = plan->threads && draw_below(random, 3) > 0 ? 2 + (int)draw_below(random, MAX_THREADS - 1) : 1;
    step->interval = draw_below(random, 12) == 0 ? 300 + (int)draw_below(random, 3000) : 0;
    step->count = step->threads + (int)draw_below(random, MAX_ACTIONS - step->threads + 1);
    for (int a = 0; a < step->count; a++) {
        struct action *action = &step->actions[a];
        action->kind = draw_kind(random, step->threads == 1);
        /* The first action of each thread is in the inner loop. */
        action->outer = action->kind == FORK || (a >= step->threads && draw_below(random, 4) == 0);
        if (a == 0 && action->kind == FORK) {
            action->kind = BATCH;
            action->outer = false;
        }
        draw_action(random, plan, step, action, limit);
    }
    close_funnels(plan, step);
    for (int a = 0; a < step->count; a++)
        keep_order(&step->actions[a]);
    draw_loops(random, step, plan->ranks);
}

void draw_plan(struct plan *plan, uint64_t seed)
{
    /* Two processes have a core each on most machines; more are slower and rarer. */
    static const int ranks[32] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 5, 6};
    memset(plan, 0, sizeof *plan);
    struct random random = {mix(seed, 1)};
    plan->seed = seed;
    plan->ranks = ranks[draw_below(&random, 32)];
    plan->threads = seed_has_threads(seed);
    plan->count = 2 + (int)draw_below(&random, plan->ranks > 2 ? 3 : MAX_STEPS - 1);
    for (int s = 0; s < plan->count; s++) {
        struct random stream = {mix(seed, (uint64_t)s + 2)};
        draw_step(&stream, plan, &plan->steps[s]);
    }
}
