/* Draws the actions of a plan: messages whose outcome is defined and which cannot wait for each other in a circle.
 *
 * In a batch, every process does its part of the messages in the order of their numbers; receives that are posted early come
 * before. So a blocking call of message k waits only for processes that are at messages up to k. */
#include "plan.h"

#include <string.h>

static bool chance(struct random *random, long percent)
{
    return draw_below(random, 100) < percent;
}

/* Lengths at which libraries, kernels and copytune change their ways. */
static long draw_bytes(struct random *random, long limit)
{
    static const long borders[] = {0,    8,     64,    93,    256,   1024,   2048,   4040,   4096,   8192,   8248,   12288,
                                   16384, 32736, 32768, 65536, 65536, 131072, 262144, 524288, 1048576, 2097152, 4194304};
    static const long beside[] = {0, 0, 1, -1, 8, -8, 16, -16, 56, -56, 4, 100};
    enum { BORDERS = sizeof borders / sizeof *borders, BESIDE = sizeof beside / sizeof *beside };
    long bytes;
    if (chance(random, 45)) {
        int fitting = BORDERS;
        while (fitting > 1 && borders[fitting - 1] > limit)
            fitting--;
        bytes = borders[draw_below(random, fitting)] + beside[draw_below(random, BESIDE)];
    } else {
        int bits = 0;
        while (2L << bits <= limit)
            bits++;
        long power = 1L << draw_below(random, bits + 1);
        bytes = power + draw_below(random, power);
    }
    return bytes < 0 ? 0 : bytes > limit ? limit : bytes;
}

static struct layout draw_layout(struct random *random, long bytes, int element, bool sends)
{
    struct layout layout = {.kind = CONTIGUOUS, .key = draw(random)};
    if (bytes < 2 * element || chance(random, 70))
        return layout;
    layout.kind = VECTOR + (int)draw_below(random, sends ? LAYOUTS - 1 : OVERLAPPING - 1);
    /* At most MAX_SEGMENTS / 4 blocks. */
    long least = bytes / element / (MAX_SEGMENTS / 4) + 1, most = bytes / element;
    long block = least << draw_below(random, 8);
    layout.block = (block > most ? most : block) * element;
    layout.stride = layout.block + draw_below(random, 1 + layout.block / element) * element;
    return layout;
}

int find_segments(const struct layout *layout, long bytes, int element, struct segment *segments, long *span)
{
    struct random random = {layout->key};
    int count = 0;
    long at = 0;
    *span = 0;
    if (layout->kind == CONTIGUOUS) {
        segments[0] = (struct segment){0, bytes};
        *span = bytes;
        return 1;
    }
    for (long left = bytes; left > 0; count++) {
        long length = layout->block, next = at + layout->stride;
        if (layout->kind == INDEXED || layout->kind == STRUCT) {
            length += draw_below(&random, 1 + layout->block / element) * element;
            next = at + length + draw_below(&random, 1 + layout->stride / element) * element;
        } else if (layout->kind == OVERLAPPING) {
            /* Anywhere between the start and what comes next. */
            next = draw_below(&random, 1 + (at + length) / element) * element;
        }
        length = length > left ? left : length;
        segments[count] = (struct segment){at, length};
        *span = at + length > *span ? at + length : *span;
        left -= length;
        at = next;
    }
    return count;
}

static enum send_kind draw_send(struct random *random, bool threads, long bytes)
{
    /* MPI_Send, MPI_Isend and MPI_Send_init are what programs use most. */
    enum send_kind group = (int)draw_below(random, 3) * 4;
    enum send_kind mode = chance(random, 55) ? SEND : SEND + (int)draw_below(random, 4);
    /* The buffer for Bsend belongs to the process, so threads cannot each have one. */
    if (mode == BSEND && (threads || bytes > 512 << 10))
        mode = SSEND;
    /* Open MPI 4.1 sends wrong bytes by the second Start of a Bsend_init. */
    if (group + mode == BSEND_INIT)
        mode = SSEND;
    return group + mode;
}

/* The kinds of calls at both ends, once the processes and the length are known. */
static void draw_calls(struct random *random, const struct step *step, struct message *message)
{
    message->send = draw_send(random, step->threads > 1, message->bytes);
    message->receive = chance(random, 30)   ? RECV
                       : chance(random, 50) ? IRECV
                                            : RECV + (int)draw_below(random, RECEIVE_KINDS);
    /* Who sends to himself, or sends ready, needs a receive that is posted. */
    if (message->source == message->target || send_mode(message->send) == RSEND)
        message->receive = chance(random, 70) ? IRECV : RECV_INIT;
    message->early = message->receive >= IRECV && chance(random, 50);
    message->send_site = (int)draw_below(random, SITES);
    message->receive_site = (int)draw_below(random, SITES);
    message->any_source = chance(random, 15);
    message->fresh_type = chance(random, 10);
}

static void draw_content(struct random *random, struct message *message, long limit)
{
    static const int elements[] = {1, 1, 1, 4, 8};
    message->bytes = draw_bytes(random, limit);
    message->element = elements[draw_below(random, 5)];
    message->bytes -= message->bytes % message->element;
    message->sent = draw_layout(random, message->bytes, message->element, true);
    message->received = draw_layout(random, message->bytes, message->element, false);
    if (message->received.kind == CONTIGUOUS && chance(random, 15))
        message->room = draw_below(random, 100) * message->element;
}

/* A wildcard for the tag is defined where the receives of a pair are posted in the order of the sends. */
static void draw_any_tags(struct random *random, struct action *action)
{
    for (int m = 0; m < action->count; m++) {
        struct message *message = &action->messages[m];
        bool ordered = !message->any_source && chance(random, 20);
        for (int n = 0; n < action->count; n++) {
            const struct message *other = &action->messages[n];
            if (other->source == message->source && other->target == message->target && other->early != message->early)
                ordered = false;
        }
        message->any_tag = ordered;
    }
}

static void draw_batch(struct random *random, const struct plan *plan, const struct step *step, struct action *action, long limit)
{
    bool several = chance(random, 55);
    action->count = several ? 2 + (int)draw_below(random, MAX_MESSAGES - 1) : 1;
    bool pair = chance(random, 50);
    int one = (int)draw_below(random, plan->ranks), two = (one + 1 + (int)draw_below(random, plan->ranks - 1)) % plan->ranks;
    for (int m = 0; m < action->count; m++) {
        struct message *message = &action->messages[m];
        bool forth = draw_below(random, 2) == 0;
        message->source = pair ? (forth ? one : two) : (int)draw_below(random, plan->ranks);
        message->target = pair ? (forth ? two : one)
                               : (message->source + 1 + (int)draw_below(random, plan->ranks - 1)) % plan->ranks;
        if (chance(random, 4))
            message->target = message->source;
        draw_content(random, message, limit);
        draw_calls(random, step, message);
        message->buffer = m;
        /* A part of an earlier message's send buffer. */
        int other = (int)draw_below(random, m + 1);
        struct message *owner = &action->messages[other];
        if (chance(random, 40) && other < m && owner->buffer == other && owner->source == message->source &&
            owner->sent.kind == CONTIGUOUS && owner->bytes >= message->bytes && owner->element >= message->element) {
            message->buffer = other;
            message->sent.kind = CONTIGUOUS;
            message->offset = draw_below(random, 1 + owner->bytes - message->bytes);
            message->offset -= message->offset % message->element;
        }
    }
    draw_any_tags(random, action);
    action->meeting = chance(random, 10) ? (chance(random, 50) ? BARRIER : ALLREDUCE) : COLLECTIVES;
    action->startall = chance(random, 50);
}

/* Each process sends to one and receives from one, or from none. */
static void draw_exchange(struct random *random, const struct plan *plan, struct action *action, long limit)
{
    const int ranks = plan->ranks, shift = (int)draw_below(random, ranks);
    const bool pairs = chance(random, 40), periodic = chance(random, 80);
    struct message model = {0};
    draw_content(random, &model, limit);
    action->meeting = COLLECTIVES;
    for (int r = 0; r < ranks; r++) {
        struct message *message = &action->messages[action->count];
        if (action->kind == EXCHANGE && chance(random, 60))
            draw_content(random, message, limit);
        else
            *message = model;
        message->source = r;
        message->target = pairs ? (r ^ 1) : r + shift;
        if (message->target >= ranks) {
            if (!periodic || pairs)
                continue;
            message->target -= ranks;
        }
        if (action->kind == REPLACE) {
            /* One buffer, one datatype. */
            message->received = model.received;
            message->sent = model.received;
            message->room = 0;
        }
        message->send_site = message->receive_site = action->site;
        message->any_source = chance(random, 10);
        message->buffer = action->count++;
    }
}

/* All others send to the root, which receives from whom it may. */
static void draw_funnel(struct random *random, const struct plan *plan, const struct step *step, struct action *action, long limit)
{
    const long bytes = draw_bytes(random, limit);
    const bool equal = chance(random, 50);
    static const enum receive_kind kinds[] = {RECV, RECV, PROBE_RECV, MPROBE_MRECV, IRECV, IRECV};
    const enum receive_kind receive = kinds[draw_below(random, 6)];
    action->meeting = COLLECTIVES;
    for (int r = 0; r < plan->ranks; r++) {
        if (r == action->root)
            continue;
        struct message *message = &action->messages[action->count];
        message->bytes = equal ? bytes : draw_bytes(random, bytes + 1);
        message->element = 1;
        message->source = r;
        message->target = action->root;
        draw_calls(random, step, message);
        /* Which receive a message meets is open, so nobody knows that it is posted. */
        if (send_mode(message->send) == RSEND)
            message->send -= RSEND - SEND;
        message->receive = receive;
        message->any_source = true;
        message->any_tag = message->early = message->fresh_type = false;
        message->buffer = action->count++;
    }
    /* Any message fits into any receive. */
    long most = 0;
    for (int m = 0; m < action->count; m++)
        most = action->messages[m].bytes > most ? action->messages[m].bytes : most;
    for (int m = 0; m < action->count; m++)
        action->messages[m].room = most - action->messages[m].bytes;
}

static struct memory draw_memory(struct random *random, bool keep)
{
    static const enum area_kind kinds[] = {HEAP, HEAP, HEAP, HEAP_ALIGNED, MAPPED, MAPPED, MAPPED_SHARED, STACK, STATIC};
    static const int places[] = {0, 0, 0, 1, 1, 16, 24, 8, 2000, 4095};
    struct memory memory = {.kind = kinds[draw_below(random, 9)], .together = chance(random, 40)};
    memory.place = places[draw_below(random, 10)];
    if (chance(random, 20))
        memory.place = 2 + (int)draw_below(random, 4094);
    memory.gap = chance(random, 50) ? 0 : (int)draw_below(random, 200);
    memory.period = 1 + (int)draw_below(random, 60);
    if (!keep && chance(random, 35))
        memory.renewal = (int)draw_below(random, RENEWALS);
    return memory;
}

void draw_action(struct random *random, const struct plan *plan, const struct step *step, struct action *action, long limit)
{
    action->site = (int)draw_below(random, SITES);
    action->root = (int)draw_below(random, plan->ranks);
    action->meeting = COLLECTIVES;
    action->work = chance(random, 20) ? (int)draw_below(random, 2000) : 0;
    action->refill = chance(random, 60) ? 1 : 1 + (int)draw_below(random, 20);
    action->wipe = action->refill > 1 || chance(random, 40);
    for (int r = 0; r < MAX_RANKS; r++)
        action->completions[r] = (int)draw_below(random, COMPLETIONS);
    action->sending = draw_memory(random, false);
    action->receiving = draw_memory(random, false);
    switch (action->kind) {
    case BATCH:
        draw_batch(random, plan, step, action, limit);
        break;
    case EXCHANGE:
    case REPLACE:
        draw_exchange(random, plan, action, limit);
        break;
    case FUNNEL:
        draw_funnel(random, plan, step, action, limit);
        break;
    case COLLECTIVE:
        action->collective = (int)draw_below(random, COLLECTIVES);
        action->bytes = draw_bytes(random, limit / plan->ranks) & ~7L;
        break;
    default:
        break;
    }
}
