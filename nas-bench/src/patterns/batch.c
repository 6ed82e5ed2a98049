/* Messages of all kinds, and many senders to one receiver. */
#include "run.h"

/* What is on its way: sends in the first half, receives in the second. */
struct pending {
    MPI_Request requests[2 * MAX_MESSAGES];
    MPI_Status statuses[2 * MAX_MESSAGES];
};

static void refresh_type(struct side *side, const struct message *message, bool sends)
{
    if (!message->fresh_type || persists(message, sends) || !side->type_is_made)
        return;
    free_type(side);
    make_type(side, sends ? &message->sent : &message->received, message->bytes, message->element);
}

static void post_receive(struct context *context, struct live_action *action, int m, struct pending *pending)
{
    const struct message *message = &action->action->messages[m];
    struct side *side = &action->messages[m].received;
    refresh_type(side, message, false);
    struct envelope envelope = envelope_of(context, action, m, false);
    MPI_Request *request = &pending->requests[MAX_MESSAGES + m];
    if (message->receive == RECV_INIT) {
        start(message->receive_site, &side->request);
        *request = side->request;
    } else if (receive_blocks(message->receive)) {
        receive_now(message->receive, message->receive_site, &envelope, &pending->statuses[MAX_MESSAGES + m]);
    } else {
        receive_begin(message->receive, message->receive_site, &envelope, request);
    }
}

static void post_send(struct context *context, struct live_action *action, int m, struct pending *pending)
{
    const struct message *message = &action->action->messages[m];
    struct side *side = &action->messages[m].sent;
    refresh_type(side, message, true);
    struct envelope envelope = envelope_of(context, action, m, true);
    if (send_persists(message->send)) {
        start(message->send_site, &side->request);
        pending->requests[m] = side->request;
    } else if (send_blocks(message->send)) {
        send_now(message->send, message->send_site, &envelope);
    } else {
        send_begin(message->send, message->send_site, &envelope, &pending->requests[m]);
    }
}

static void post_early(struct context *context, struct live_action *action, struct pending *pending)
{
    const struct action *planned = action->action;
    MPI_Request persistent[MAX_MESSAGES];
    int count = 0;
    for (int m = 0; m < planned->count; m++) {
        const struct message *message = &planned->messages[m];
        if (message->target != context->rank || !message->early)
            continue;
        /* Startall begins several in any order, so none of them may be told from another by its place alone. */
        if (planned->startall && message->receive == RECV_INIT && !message->any_tag) {
            persistent[count++] = action->messages[m].received.request;
            pending->requests[MAX_MESSAGES + m] = action->messages[m].received.request;
        } else {
            post_receive(context, action, m, pending);
        }
    }
    if (count > 0)
        start_all(planned->site, count, persistent);
}

/* The receiver says that its receive is posted. */
static void announce(struct context *context, const struct live_action *action, int m)
{
    const struct message *message = &action->action->messages[m];
    if (send_mode(message->send) != RSEND || message->source == message->target)
        return;
    int tag = tag_of(action, m);
    if (message->target == context->rank)
        MPI_Send(NULL, 0, MPI_BYTE, message->source, tag, context->control);
    else
        MPI_Recv(NULL, 0, MPI_BYTE, message->target, tag, context->control, MPI_STATUS_IGNORE);
}

static void meet(struct context *context, const struct live_action *action)
{
    int one = 1, sum = 0;
    if (action->action->meeting == BARRIER)
        MPI_Barrier(context->comm);
    if (action->action->meeting == ALLREDUCE) {
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, context->comm);
        if (sum != context->ranks)
            wrong(context, action, -1, "Allreduce of ones is %d", sum);
    }
}

/* Bsend's buffer is empty again when it has been detached. */
static void empty_buffer(const struct context *context, const struct action *planned)
{
    bool used = false;
    for (int m = 0; m < planned->count; m++)
        used = used || (planned->messages[m].source == context->rank && send_mode(planned->messages[m].send) == BSEND);
    if (used) {
        void *buffer;
        int length;
        MPI_Buffer_detach(&buffer, &length);
        MPI_Buffer_attach(buffer, length);
    }
}

static void begin(struct pending *pending)
{
    for (int i = 0; i < 2 * MAX_MESSAGES; i++)
        pending->requests[i] = MPI_REQUEST_NULL;
}

void run_batch(struct context *context, struct live_action *action)
{
    const struct action *planned = action->action;
    struct pending pending;
    begin(&pending);
    post_early(context, action, &pending);
    for (int m = 0; m < planned->count; m++) {
        const struct message *message = &planned->messages[m];
        bool receives = message->target == context->rank, sends = message->source == context->rank;
        if (receives && !message->early)
            post_receive(context, action, m, &pending);
        if (receives || sends)
            announce(context, action, m);
        if (sends)
            post_send(context, action, m, &pending);
    }
    meet(context, action);
    MPI_Status done[2 * MAX_MESSAGES];
    bool waits[MAX_MESSAGES];
    for (int m = 0; m < planned->count; m++)
        waits[m] = pending.requests[MAX_MESSAGES + m] != MPI_REQUEST_NULL;
    complete(planned->completions[context->rank], planned->site, 2 * MAX_MESSAGES, pending.requests, done);
    empty_buffer(context, planned);
    for (int m = 0; m < planned->count; m++)
        if (planned->messages[m].target == context->rank)
            check_received(context, action, m, m, action->executions / planned->refill,
                           waits[m] ? &done[MAX_MESSAGES + m] : &pending.statuses[MAX_MESSAGES + m]);
    check_sent(context, action);
}

/* The message of the process; -1: it has none. */
static int message_from(const struct action *planned, int source)
{
    for (int m = 0; m < planned->count; m++)
        if (planned->messages[m].source == source)
            return m;
    return -1;
}

static void check_funnel(struct context *context, struct live_action *action, int slot, const MPI_Status *status)
{
    int m = message_from(action->action, status->MPI_SOURCE);
    if (m < 0) {
        wrong(context, action, slot, "a message from rank %d, which sends none", status->MPI_SOURCE);
        return;
    }
    long nth = action->received[status->MPI_SOURCE]++;
    check_received(context, action, slot, m, nth / action->action->refill, status);
}

/* Where the ranks do not meet, several messages may come from one sender before the first one of another; those of each come in
   order. */
void run_funnel(struct context *context, struct live_action *action)
{
    const struct action *planned = action->action;
    struct pending pending;
    MPI_Status done[2 * MAX_MESSAGES];
    begin(&pending);
    int own = message_from(planned, context->rank);
    if (own >= 0)
        post_send(context, action, own, &pending);
    for (int m = 0; m < planned->count && context->rank == planned->root; m++)
        post_receive(context, action, m, &pending);
    complete(planned->completions[context->rank], planned->site, 2 * MAX_MESSAGES, pending.requests, done);
    empty_buffer(context, planned);
    /* Receives match in the order in which they were posted. */
    for (int m = 0; m < planned->count && context->rank == planned->root; m++)
        check_funnel(context, action, m, receive_blocks(planned->messages[m].receive) ? &pending.statuses[MAX_MESSAGES + m] : &done[MAX_MESSAGES + m]);
    check_sent(context, action);
    meet(context, action);
}
