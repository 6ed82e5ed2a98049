/* A plan in words. */
#include "plan.h"

#include <stdio.h>

static const char *const sends[] = {"Send",  "Ssend",  "Bsend",  "Rsend",  "Isend",     "Issend",
                                    "Ibsend", "Irsend", "Send_init", "Ssend_init", "Bsend_init", "Rsend_init"};
static const char *const receives[] = {"Recv", "Probe+Recv", "Iprobe+Recv", "Mprobe+Mrecv", "Improbe+Mrecv", "Mprobe+Imrecv", "Irecv", "Recv_init"};
static const char *const completions[] = {"Wait", "Wait backwards", "Waitall", "Waitall receives, sends", "Waitany", "Waitsome",
                                          "Test", "Testall", "Testany", "Testsome", "Request_get_status+Wait"};
static const char *const layouts[] = {"contiguous", "vector", "indexed", "struct", "resized", "overlapping"};
static const char *const areas[] = {"heap", "aligned heap", "mapped", "mapped shared", "stack", "static"};
static const char *const renewals[] = {"kept", "freed", "mapped anew in place", "moved", "discarded"};
static const char *const kinds[] = {"batch", "exchange (Sendrecv)", "exchange (Sendrecv_replace)", "funnel", "collective", "fork"};
static const char *const collectives[] = {"Barrier", "Bcast", "Reduce", "Allreduce", "Gather", "Scatter", "Allgather",
                                          "Alltoall", "Alltoallv", "Ibarrier", "Ibcast", "Iallreduce", "Iallgather"};

static void print_layout(const struct layout *layout)
{
    if (layout->kind == CONTIGUOUS)
        printf("contiguous");
    else
        printf("%s %ld/%ld", layouts[layout->kind], layout->block, layout->stride);
}

static void print_message(const struct action *action, int m)
{
    const struct message *message = &action->messages[m];
    printf("      message %d: %d -> %d, %ld bytes (by %d), ", m, message->source, message->target, message->bytes, message->element);
    if (action->kind == BATCH || action->kind == FUNNEL)
        printf("%s@%d -> %s@%d%s, ", sends[message->send], message->send_site, receives[message->receive],
               message->receive_site, message->early ? " early" : "");
    print_layout(&message->sent);
    printf(" -> ");
    print_layout(&message->received);
    if (message->any_source || message->any_tag)
        printf(", any%s%s", message->any_source ? " source" : "", message->any_tag ? " tag" : "");
    if (message->buffer != m)
        printf(", from %ld in the buffer of message %d", message->offset, message->buffer);
    if (message->room > 0)
        printf(", room for %ld more", message->room);
    printf("%s\n", message->fresh_type ? ", fresh datatypes" : "");
}

static void print_memory(const char *what, const struct memory *memory)
{
    printf("      %s: %s%s, place %d", what, areas[memory->kind], memory->together ? " together" : "", memory->place);
    if (memory->renewal != KEPT)
        printf(", %s every %d", renewals[memory->renewal], memory->period);
    putchar('\n');
}

static void print_action(const struct plan *plan, const struct action *action, int number)
{
    printf("    action %d%s: %s", number, action->outer ? " (outer loop)" : "", kinds[action->kind]);
    if (action->kind == COLLECTIVE)
        printf(" %s, %ld bytes, root %d", collectives[action->collective], action->bytes, action->root);
    if (action->kind == FORK || action->kind == FUNNEL)
        printf(", rank %d", action->root);
    printf(", refilled every %d%s\n", action->refill, action->wipe ? ", wiped" : "");
    for (int m = 0; m < action->count; m++)
        print_message(action, m);
    if (action->kind == BATCH || action->kind == FUNNEL) {
        printf("      completed by");
        for (int r = 0; r < plan->ranks; r++)
            printf("%s %s", r == 0 ? "" : ",", completions[action->completions[r]]);
        if (action->meeting != COLLECTIVES)
            printf("; %s, %s", action->kind == BATCH ? "before" : "after", collectives[action->meeting]);
        putchar('\n');
    }
    if (action->kind != FORK) {
        print_memory("sent", &action->sending);
        print_memory("received", &action->receiving);
    }
}

void print_plan(const struct plan *plan)
{
    printf("seed %llu: %d ranks, %d steps%s\n", (unsigned long long)plan->seed, plan->ranks, plan->count,
           plan->threads ? ", MPI_THREAD_MULTIPLE" : "");
    for (int s = 0; s < plan->count; s++) {
        const struct step *step = &plan->steps[s];
        printf("  step %d: %d x %d iterations, %d actions, %d threads", s, step->outer, step->inner, step->count, step->threads);
        if (step->interval > 0)
            printf(", a signal every %d us", step->interval);
        putchar('\n');
        for (int a = 0; a < step->count; a++)
            print_action(plan, &step->actions[a], a);
    }
}
