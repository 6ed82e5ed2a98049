/* Sendrecv and Sendrecv_replace: everybody sends to one and receives from one at a time. */
#include "run.h"

#include <string.h>

/* What this process sends and receives; -1: nothing. */
static void find_own(const struct context *context, const struct action *planned, int *out, int *in)
{
    *out = *in = -1;
    for (int m = 0; m < planned->count; m++) {
        if (planned->messages[m].source == context->rank)
            *out = m;
        if (planned->messages[m].target == context->rank)
            *in = m;
    }
}

void run_exchange(struct context *context, struct live_action *action)
{
    const struct action *planned = action->action;
    int out, in;
    find_own(context, planned, &out, &in);
    struct envelope nothing = {.type = MPI_BYTE, .peer = MPI_PROC_NULL, .comm = context->comm};
    struct envelope sent = out < 0 ? nothing : envelope_of(context, action, out, true);
    struct envelope received = in < 0 ? nothing : envelope_of(context, action, in, false);
    MPI_Status status;
    send_receive(planned->site, &sent, &received, &status);
    if (in >= 0)
        check_received(context, action, in, in, action->executions / planned->refill, &status);
    check_sent(context, action);
}

/* The guards hold what they held; the message has taken the place of what was sent, but for holes. */
static void check_replaced(struct context *context, struct live_action *action, const struct buffer *buffer, int out, int in)
{
    const struct action *planned = action->action;
    unsigned char *image = room(&context->image, buffer->length);
    write_content(image, buffer->key, 0, buffer->length);
    if (out >= 0)
        write_content(image + buffer->lead, key_of(context, action, out, action->executions), 0, (size_t)action->messages[out].sent.span);
    if (in >= 0) {
        const struct side *side = &action->messages[in].received;
        unsigned char *packed = room(&context->packed, (size_t)planned->messages[in].bytes);
        pack_expected(context, action, in, action->executions, packed);
        for (int i = 0; i < side->count; i++) {
            const size_t offset = buffer->lead + (size_t)side->segments[i].offset;
            memcpy(image + offset, packed, (size_t)side->segments[i].length);
            context->checksum += checksum_of(bytes_of(buffer) + offset, (size_t)side->segments[i].length, (uint64_t)action->executions);
            packed += side->segments[i].length;
        }
    }
    compare(context, action, in, "replaced buffer", bytes_of(buffer), image, buffer->length, (long)buffer->lead);
}

void run_replace(struct context *context, struct live_action *action)
{
    const struct action *planned = action->action;
    int out, in;
    find_own(context, planned, &out, &in);
    if (out < 0 && in < 0)
        return;
    struct buffer *buffer = out >= 0 ? &action->messages[out].sent.buffer : &action->messages[in].received.buffer;
    struct envelope envelope = envelope_of(context, action, out >= 0 ? out : in, out >= 0);
    if (settings.checks) {
        buffer->key = key_of(context, action, 200 + context->rank, action->executions);
        write_content(bytes_of(buffer), buffer->key, 0, buffer->length);
        if (out >= 0)
            write_content(bytes_of(buffer) + buffer->lead, key_of(context, action, out, action->executions), 0,
                          (size_t)action->messages[out].sent.span);
    }
    if (out < 0)
        envelope.peer = MPI_PROC_NULL;
    MPI_Status status;
    /* All messages of the action have one tag. */
    envelope.tag = tag_of(action, 0);
    send_receive_replace(planned->site, &envelope, in >= 0 ? planned->messages[in].source : MPI_PROC_NULL, &status);
    if (settings.checks)
        check_replaced(context, action, buffer, out, in);
}
