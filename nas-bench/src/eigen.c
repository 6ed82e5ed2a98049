/* eigen: eigenvalues of a symmetric tridiagonal matrix by bisection, after the program Eigenvalue of
   C.-P. Wen's thesis (1995).

   A task is an interval that holds eigenvalues; it is halved until both halves hold some, which become
   tasks, or until it is small enough. Tasks stay where they arise, and a process without any asks another at
   random (stealing), or each goes to a random process (pushing). That all is done is found by Safra's
   algorithm: a token goes round the idle processes and counts the tasks that are on their way. */
#include "mail.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRATEGY_STEALING, STRATEGY_PUSHING };
static const char *const strategy_names[] = {"stealing", "pushing", NULL};

/* Order of the matrix. */
static const long orders[CLASSES] = {200, 3000, 8000, 16000};
/* Width of an interval that is not halved further. */
static const double precision = 1e-12;

enum { ITEM_TASK, ITEM_REQUEST, ITEM_NOTHING, ITEM_TOKEN, ITEM_END };

/* The numbers of eigenvalues that are less than the interval's ends. */
struct interval {
    double low, high;
    int64_t below_low, below_high;
};

struct item {
    int32_t kind;
    int32_t black;    /* of a token */
    int64_t count;    /* of a token: tasks sent less those received */
    struct interval task;
};

struct pool {
    int strategy, processes, rank;
    long order;
    double *diagonal, *squares; /* the matrix: its diagonal, and the squares of what is beside it */
    struct interval *task;
    long tasks, room;
    double *value;              /* eigenvalues by their numbers; NaN where another process has found it */
    struct mail *mail;
    bool asked, ended;          /* a request is on its way; all is done */
    bool has_token, black;
    int64_t sent_less_received; /* tasks */
    struct item token;
    uint64_t random, bisections, stolen;
};

/* The number of eigenvalues less than x: negative pivots of the factorisation of the matrix less x. */
static int64_t count_below(struct pool *pool, double x)
{
    int64_t count = 0;
    double pivot = 1;
    for (long i = 0; i < pool->order; i++) {
        pivot = pool->diagonal[i] - x - pool->squares[i] / pivot;
        pivot = fabs(pivot) < DBL_MIN ? -DBL_MIN : pivot;
        count += pivot < 0;
    }
    pool->bisections++;
    return count;
}

static void add_task(struct pool *pool, const struct interval *task)
{
    if (pool->tasks == pool->room) {
        struct interval *larger = allocate((size_t)(2 * pool->room) * sizeof *larger);
        memcpy(larger, pool->task, (size_t)pool->tasks * sizeof *larger);
        free(pool->task);
        pool->task = larger;
        pool->room *= 2;
    }
    pool->task[pool->tasks++] = *task;
}

static int random_other(struct pool *pool)
{
    pool->random = mix(pool->random);
    return (int)(((uint64_t)pool->rank + 1 + pool->random % (uint64_t)(pool->processes - 1)) %
                 (uint64_t)pool->processes);
}

static void send_task(struct pool *pool, int process, const struct interval *task)
{
    pool->sent_less_received++;
    mail_post(pool->mail, process, &(struct item){.kind = ITEM_TASK, .task = *task});
}

static void place_task(struct pool *pool, const struct interval *task)
{
    if (pool->strategy == STRATEGY_PUSHING && pool->processes > 1) {
        pool->random = mix(pool->random);
        int process = (int)(pool->random % (uint64_t)pool->processes);
        if (process != pool->rank) {
            send_task(pool, process, task);
            return;
        }
    }
    add_task(pool, task);
}

static void take_item(struct pool *pool, int source, const struct item *item)
{
    switch (item->kind) {
    case ITEM_TASK:
        pool->sent_less_received--;
        pool->black = true;
        pool->asked = false;
        add_task(pool, &item->task);
        break;
    case ITEM_REQUEST:
        /* The oldest task is the widest: of those it is best to hand one over. */
        if (pool->ended)
            break;
        if (pool->tasks > 1) {
            send_task(pool, source, &pool->task[0]);
            pool->tasks--;
            memmove(&pool->task[0], &pool->task[1], (size_t)pool->tasks * sizeof pool->task[0]);
            pool->stolen++;
        } else {
            mail_post(pool->mail, source, &(struct item){.kind = ITEM_NOTHING});
        }
        break;
    case ITEM_NOTHING:
        pool->asked = false;
        break;
    case ITEM_TOKEN:
        pool->has_token = true;
        pool->token = *item;
        break;
    case ITEM_END:
        pool->ended = true;
        break;
    }
}

static void take_items(void *owner, int source, const void *items, long count)
{
    const struct item *item = items;
    for (long i = 0; i < count; i++)
        take_item(owner, source, &item[i]);
}

/* Halves a task's interval until there are two tasks or an eigenvalue. */
static void work_on(struct pool *pool, struct interval task)
{
    for (;;) {
        double middle = task.low + (task.high - task.low) / 2;
        if (task.high - task.low <= precision || middle <= task.low || middle >= task.high) {
            for (int64_t i = task.below_low; i < task.below_high; i++)
                pool->value[i] = middle;
            return;
        }
        int64_t below = count_below(pool, middle);
        /* Rounding may break the order of the counts near a cluster. */
        below = below < task.below_low ? task.below_low : below > task.below_high ? task.below_high : below;
        struct interval left = {task.low, middle, task.below_low, below};
        struct interval right = {middle, task.high, below, task.below_high};
        if (below == task.below_low) {
            task = right;
        } else if (below == task.below_high) {
            task = left;
        } else {
            place_task(pool, &right);
            place_task(pool, &left);
            return;
        }
    }
}

/* Passes the token on when this process has nothing to do. Process 0 sends it round, and ends all when nothing
   has moved since and no task is on its way. */
static void pass_token(struct pool *pool)
{
    struct item token = pool->token;
    if (!pool->has_token)
        return;
    pool->has_token = false;
    if (pool->rank == 0) {
        if (!token.black && !pool->black && token.count + pool->sent_less_received == 0) {
            for (int p = 1; p < pool->processes; p++)
                mail_post(pool->mail, p, &(struct item){.kind = ITEM_END});
            pool->ended = true;
            return;
        }
        token = (struct item){.kind = ITEM_TOKEN};
    } else {
        token.count += pool->sent_less_received;
        token.black = token.black || pool->black;
    }
    pool->black = false;
    mail_post(pool->mail, (pool->rank + pool->processes - 1) % pool->processes, &token);
}

/* Works until no process has a task. */
static void run(struct pool *pool)
{
    while (!pool->ended) {
        if (pool->tasks > 0) {
            work_on(pool, pool->task[--pool->tasks]);
            mail_poll(pool->mail);
            continue;
        }
        if (pool->processes == 1)
            break;
        if (pool->strategy == STRATEGY_STEALING && !pool->asked) {
            pool->asked = true;
            mail_post(pool->mail, random_other(pool), &(struct item){.kind = ITEM_REQUEST});
        }
        pass_token(pool);
        mail_flush(pool->mail);
        if (!pool->ended)
            mail_wait(pool->mail);
    }
    mail_end_phase(pool->mail);
}

static void make_matrix(struct pool *pool, int class)
{
    pool->order = orders[class];
    pool->diagonal = allocate((size_t)pool->order * sizeof(double));
    pool->squares = allocate((size_t)pool->order * sizeof(double));
    pool->value = allocate((size_t)pool->order * sizeof(double));
    for (long i = 0; i < pool->order; i++) {
        double beside = 2 * random_number(2, (uint64_t)i) - 1;
        pool->diagonal[i] = 2 * random_number(1, (uint64_t)i) - 1;
        pool->squares[i] = i == 0 ? 0 : beside * beside;
        pool->value[i] = NAN;
    }
}

/* Whether the eigenvalues are in order and have the sum and the sum of squares that the matrix says. */
static bool verify_values(const struct pool *pool)
{
    double sum = 0, squares = 0, tolerance = (double)pool->order * 1e-11;
    bool right = true;
    for (long i = 0; i < pool->order; i++) {
        sum += pool->value[i] - pool->diagonal[i];
        squares += pool->value[i] * pool->value[i] - pool->diagonal[i] * pool->diagonal[i] - 2 * pool->squares[i];
        right = right && (i == 0 || pool->value[i - 1] <= pool->value[i]);
    }
    return right && fabs(sum) <= tolerance && fabs(squares) <= tolerance;
}

/* Brings all eigenvalues together: each is found by one process, and a NaN everywhere else. */
static bool gather_values(struct pool *pool)
{
    int *found = allocate((size_t)pool->order * sizeof *found);
    bool once = true;
    for (long i = 0; i < pool->order; i++) {
        found[i] = !isnan(pool->value[i]);
        if (!found[i])
            pool->value[i] = 0;
    }
    MPI_Allreduce(MPI_IN_PLACE, found, (int)pool->order, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, pool->value, (int)pool->order, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (long i = 0; i < pool->order; i++)
        once = once && found[i] == 1;
    free(found);
    return once;
}

int main(int argc, char **argv)
{
    int class = CLASS_A;
    long aggregate = 1;
    struct pool pool = {.room = 64};
    const struct option_entry options[] = {
        CLASS_OPTION(&class),
        {"--strategy", "how tasks come to idle processes", OPTION_CHOICE, &pool.strategy, 0, 0, strategy_names},
        {"--aggregate", "items in a message; fewer go when a process is idle", OPTION_NUMBER, &aggregate, 1, 10000,
         NULL},
        {0}};
    struct outcome outcome = {.program = "EIGEN: bisection with tasks that move", .unit = "pivots"};
    uint64_t sum = 0;

    MPI_Init(&argc, &argv);
    read_options(argc, argv, options);
    pool.processes = process_count();
    pool.rank = process_rank();
    pool.random = (uint64_t)pool.rank;
    pool.task = allocate((size_t)pool.room * sizeof *pool.task);
    make_matrix(&pool, class);
    pool.mail = mail_open(sizeof(struct item), aggregate, take_items, &pool);
    if (pool.rank == 0) {
        /* By Gershgorin's theorem; the token begins black, as if tasks had moved. */
        add_task(&pool, &(struct interval){-3, 3, 0, pool.order});
        pool.has_token = true;
        pool.token.black = 1;
    }
    double start = clock_start();
    run(&pool);
    outcome.seconds = clock_stop(start);
    outcome.verified = gather_values(&pool) && verify_values(&pool);
    for (long i = 0; i < pool.order; i++)
        sum += mix(bits_of(pool.value[i]) ^ mix((uint64_t)i));
    outcome.class = class;
    outcome.operations = (double)sum_of_all(pool.bisections) * (double)pool.order;
    snprintf(outcome.size, sizeof outcome.size, "order %ld, %s, %ld items a message, %llu tasks stolen", pool.order,
             strategy_names[pool.strategy], aggregate, (unsigned long long)sum_of_all(pool.stolen));
    snprintf(outcome.result, sizeof outcome.result, "%ld eigenvalues, checksum %016llx", pool.order,
             (unsigned long long)sum);
    mail_close(pool.mail);
    free(pool.task);
    free(pool.diagonal);
    free(pool.squares);
    free(pool.value);
    return finish(&outcome);
}
