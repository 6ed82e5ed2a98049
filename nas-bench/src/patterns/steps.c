/* Runs the steps of a plan: loops, threads, signals, and what a step needs. */
#define _GNU_SOURCE
#include "run.h"

#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { STACK_BYTES = 1 << 20 };

struct settings settings;
static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    /* What a handler may do: a little, with memory of its own. */
    char here[64];
    memset(here, number, sizeof here);
    signals += here[signals % 64] == number;
}

static void set_interval(int microseconds)
{
    struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void work(int rounds)
{
    static volatile double sink;
    double x = 1;
    for (int i = 0; i < rounds; i++)
        x = x * 1.0000001 + 1e-9;
    sink = x;
    (void)sink;
}

static void execute(struct context *context, struct live_action *action)
{
    const struct action *planned = action->action;
    renew_action(context, action);
    if (planned->kind == BATCH || planned->kind == EXCHANGE || planned->kind == FUNNEL)
        fill_buffers(context, action);
    work(planned->work);
    switch (planned->kind) {
    case BATCH: run_batch(context, action); break;
    case EXCHANGE: run_exchange(context, action); break;
    case REPLACE: run_replace(context, action); break;
    case FUNNEL: run_funnel(context, action); break;
    case COLLECTIVE: run_collective(context, action); break;
    default: run_fork(context, action); break;
    }
    action->executions++;
}

/* Whether the action is this thread's, and not left out. */
static bool takes_part(const struct context *context, int a)
{
    return a % context->step->threads == context->thread && !(context->skipped >> a & 1);
}

static void run_loops(struct context *context)
{
    const struct step *step = context->step;
    for (int o = 0; o < step->outer; o++) {
        for (int a = 0; a < step->count; a++)
            if (step->actions[a].outer && takes_part(context, a))
                execute(context, &context->actions[a]);
        for (int i = 0; i < step->inner; i++)
            for (int a = 0; a < step->count; a++)
                if (!step->actions[a].outer && takes_part(context, a))
                    execute(context, &context->actions[a]);
    }
}

/* A thread of a step, from its memory to its end. */
static void *run_thread(void *argument)
{
    struct context *context = argument;
    const struct step *step = context->step;
    context->stack = alloca(STACK_BYTES);
    context->stack_left = STACK_BYTES;
    context->actions = calloc(MAX_ACTIONS, sizeof *context->actions);
    if (context->actions == NULL)
        fail("no memory for a step");
    for (int a = 0; a < step->count; a++) {
        if (!takes_part(context, a))
            continue;
        context->actions[a].action = &step->actions[a];
        context->actions[a].number = a;
        context->actions[a].first_tag = (context->step_number * MAX_ACTIONS + a) * MAX_MESSAGES;
        prepare_action(context, &context->actions[a]);
    }
    run_loops(context);
    for (int a = 0; a < step->count; a++)
        if (takes_part(context, a))
            finish_action(&context->actions[a]);
    free(context->actions);
    free(context->image.bytes);
    free(context->packed.bytes);
    return NULL;
}

/* Room for all messages that Bsend may have on the way in one execution of each action. */
static size_t bsend_bytes(const struct step *step, int rank)
{
    size_t sum = MPI_BSEND_OVERHEAD + 1024; /* MPICH takes no buffer that is shorter than the overhead */
    for (int a = 0; a < step->count; a++)
        for (int m = 0; m < step->actions[a].count; m++) {
            const struct message *message = &step->actions[a].messages[m];
            if (message->source == rank && send_mode(message->send) == BSEND)
                sum += (size_t)message->bytes + MPI_BSEND_OVERHEAD + 1024;
        }
    return sum;
}

static void run_step(struct context *contexts, const struct step *step)
{
    pthread_t threads[MAX_THREADS];
    size_t bytes = bsend_bytes(step, contexts->rank);
    void *buffer = malloc(bytes);
    int length;
    if (buffer == NULL)
        fail("no memory for Bsend");
    MPI_Buffer_attach(buffer, (int)bytes);
    if (step->interval > 0)
        set_interval(step->interval);
    for (int t = 1; t < step->threads; t++)
        if (pthread_create(&threads[t], NULL, run_thread, &contexts[t]) != 0)
            fail("no further thread");
    run_thread(&contexts[0]);
    for (int t = 1; t < step->threads; t++)
        pthread_join(threads[t], NULL);
    set_interval(0);
    MPI_Buffer_detach(&buffer, &length);
    free(buffer);
    free_statics();
}

double run_plan(const struct plan *plan, MPI_Comm comm, uint64_t *checksum)
{
    struct context contexts[MAX_THREADS];
    int threads = plan->threads ? MAX_THREADS : 1;
    double seconds = 0;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    memset(contexts, 0, sizeof contexts);
    for (int t = 0; t < threads; t++) {
        contexts[t] = (struct context){.plan = plan, .thread = t};
        MPI_Comm_dup(comm, &contexts[t].comm);
        MPI_Comm_dup(comm, &contexts[t].control);
        MPI_Comm_rank(comm, &contexts[t].rank);
        MPI_Comm_size(comm, &contexts[t].ranks);
    }
    for (int s = 0; s < plan->count && s < settings.steps; s++) {
        const struct step *step = &plan->steps[s];
        const uint64_t all = (1u << step->count) - 1;
        if ((settings.skipped[s] & all) == all)
            continue;
        for (int t = 0; t < threads; t++) {
            struct context *context = &contexts[t];
            context->step = step;
            context->step_number = s;
            context->skipped = settings.skipped[s];
            context->image = context->packed = (struct scratch){NULL, 0};
        }
        double begin = MPI_Wtime();
        run_step(contexts, step);
        seconds += MPI_Wtime() - begin;
    }
    *checksum = 0;
    for (int t = 0; t < threads; t++) {
        *checksum += contexts[t].checksum;
        MPI_Comm_free(&contexts[t].comm);
        MPI_Comm_free(&contexts[t].control);
    }
    return seconds;
}
