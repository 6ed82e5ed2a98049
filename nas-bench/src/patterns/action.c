/* The buffers and datatypes of an action: made, filled, checked, renewed. */
#include "run.h"

#include <string.h>

enum { GUARD = 64 };

uint64_t key_of(const struct context *context, const struct live_action *action, int message, long version)
{
    uint64_t place = (uint64_t)(context->step_number * MAX_ACTIONS + action->number) * 1000 + (uint64_t)message;
    return mix(mix(context->plan->seed, place), (uint64_t)version) | 1;
}

/* What a receive buffer holds before: of this process and execution alone. */
static uint64_t key_before(const struct context *context, const struct live_action *action, int message)
{
    return key_of(context, action, 100 + message * MAX_RANKS + context->rank, action->executions);
}

/* Has a buffer in an area of its own, or behind the one before. */
void make_buffer(struct context *context, struct live_action *action, const struct memory *memory, struct buffer *buffer,
                 size_t length, size_t alignment, bool guarded)
{
    struct area *area = &action->areas[action->area_count++];
    const size_t place = place_of(memory, length, alignment);
    buffer->lead = !guarded ? 0 : place < GUARD ? place : GUARD;
    buffer->length = buffer->lead + length + (guarded && memory->place != 1 ? GUARD : 0);
    buffer->offset = place - buffer->lead;
    buffer->area = area;
    buffer->key = 0;
    make_area(context, area, memory, buffer->offset + buffer->length);
}

/* Has the buffers of one direction in one area. */
static void make_together(struct context *context, struct live_action *action, const struct memory *memory, bool sends)
{
    const size_t guard = (size_t)memory->gap / 2;
    struct area *area = &action->areas[action->area_count++];
    size_t at = memory->place == 1 ? 0 : (size_t)memory->place;
    for (int m = 0; m < action->action->count; m++) {
        struct side *side = sends ? &action->messages[m].sent : &action->messages[m].received;
        if (!side->own || (sends && action->action->messages[m].buffer != m))
            continue;
        const size_t alignment = (size_t)action->action->messages[m].element, message = at + (sends ? 0 : guard);
        at += (alignment - message % alignment) % alignment;
        side->buffer = (struct buffer){.area = area, .offset = at, .lead = sends ? 0 : guard};
        side->buffer.length = (size_t)side->span + (sends ? 0 : 2 * guard);
        at += side->buffer.length + (sends ? 2 * guard : 0);
    }
    make_area(context, area, memory, at);
}

static void make_buffers(struct context *context, struct live_action *action, bool sends)
{
    const struct memory *memory = sends ? &action->action->sending : &action->action->receiving;
    if (memory->together) {
        make_together(context, action, memory, sends);
        return;
    }
    for (int m = 0; m < action->action->count; m++) {
        struct side *side = sends ? &action->messages[m].sent : &action->messages[m].received;
        if (side->own && !(sends && action->action->messages[m].buffer != m))
            make_buffer(context, action, memory, &side->buffer, (size_t)side->span, (size_t)action->action->messages[m].element, !sends);
    }
}

/* One buffer for what is sent and for what comes in its place. */
static void make_replaced(struct context *context, struct live_action *action)
{
    struct buffer *made = NULL;
    for (int m = 0; m < action->action->count; m++) {
        struct side *sides[] = {&action->messages[m].sent, &action->messages[m].received};
        for (int i = 0; i < 2; i++) {
            if (!sides[i]->own)
                continue;
            if (made == NULL)
                make_buffer(context, action, &action->action->receiving, &sides[i]->buffer, (size_t)sides[i]->span,
                            (size_t)action->action->messages[m].element, true);
            else
                sides[i]->buffer = *made;
            made = &sides[i]->buffer;
        }
    }
}

struct envelope envelope_of(const struct context *context, const struct live_action *action, int message, bool sends)
{
    const struct message *planned = &action->action->messages[message];
    const struct live_message *live = &action->messages[message];
    const struct side *side = sends ? &live->sent : &live->received;
    const struct buffer *buffer = sends ? &action->messages[planned->buffer].sent.buffer : &side->buffer;
    struct envelope envelope = {.type = side->type, .count = side->elements, .comm = context->comm, .tag = tag_of(action, message)};
    envelope.buffer = bytes_of(buffer) + buffer->lead + (sends ? planned->offset : 0);
    envelope.peer = sends ? planned->target : planned->source;
    if (!sends) {
        envelope.count += (int)(planned->room / planned->element);
        envelope.peer = planned->any_source ? MPI_ANY_SOURCE : envelope.peer;
        envelope.tag = planned->any_tag ? MPI_ANY_TAG : envelope.tag;
    }
    return envelope;
}

/* The requests that last as long as their buffers. */
static void make_requests(struct context *context, struct live_action *action)
{
    for (int m = 0; m < action->action->count; m++) {
        const struct message *planned = &action->action->messages[m];
        struct live_message *live = &action->messages[m];
        if (live->sent.own && persists(planned, true)) {
            struct envelope envelope = envelope_of(context, action, m, true);
            send_begin(planned->send, planned->send_site, &envelope, &live->sent.request);
        }
        if (live->received.own && persists(planned, false)) {
            struct envelope envelope = envelope_of(context, action, m, false);
            receive_begin(planned->receive, planned->receive_site, &envelope, &live->received.request);
        }
    }
}

static void free_requests(struct live_action *action)
{
    for (int m = 0; m < action->action->count; m++) {
        struct live_message *live = &action->messages[m];
        if (live->sent.request != MPI_REQUEST_NULL)
            MPI_Request_free(&live->sent.request);
        if (live->received.request != MPI_REQUEST_NULL)
            MPI_Request_free(&live->received.request);
    }
}

static void prepare_side(struct side *side, bool own, const struct message *message, bool sends)
{
    const struct layout *layout = sends ? &message->sent : &message->received;
    side->own = own;
    side->request = MPI_REQUEST_NULL;
    if (!own)
        return;
    describe_side(side, layout, message->bytes, message->element);
    make_type(side, layout, message->bytes, message->element);
    side->span += sends ? 0 : message->room;
}

void prepare_action(struct context *context, struct live_action *action)
{
    const struct action *planned = action->action;
    if (planned->kind == COLLECTIVE) {
        prepare_collective(context, action);
        return;
    }
    for (int m = 0; m < planned->count; m++) {
        const struct message *message = &planned->messages[m];
        prepare_side(&action->messages[m].sent, message->source == context->rank, message, true);
        prepare_side(&action->messages[m].received, message->target == context->rank, message, false);
    }
    if (planned->kind == REPLACE) {
        make_replaced(context, action);
    } else {
        make_buffers(context, action, true);
        make_buffers(context, action, false);
    }
    if (planned->kind == BATCH || planned->kind == FUNNEL)
        make_requests(context, action);
}

void finish_action(struct live_action *action)
{
    free_requests(action);
    for (int m = 0; m < action->action->count; m++) {
        struct side *sides[] = {&action->messages[m].sent, &action->messages[m].received};
        for (int i = 0; i < 2; i++) {
            free_type(sides[i]);
            forget_side(sides[i]);
        }
    }
    for (int a = 0; a < action->area_count; a++)
        free_area(&action->areas[a]);
}

/* Memory goes and comes again where its time has come. */
void renew_action(struct context *context, struct live_action *action)
{
    bool due[2 * MAX_MESSAGES + 2] = {false}, any = false;
    for (int a = 0; a < action->area_count && action->executions > 0; a++) {
        const struct memory *memory = action->areas[a].memory;
        due[a] = memory->renewal != KEPT && action->executions % memory->period == 0;
        any = any || due[a];
    }
    if (!any)
        return;
    bool again = action->action->kind == BATCH || action->action->kind == FUNNEL;
    free_requests(action);
    for (int a = 0; a < action->area_count; a++)
        if (due[a])
            renew_area(context, action, &action->areas[a]);
    for (int m = 0; m < action->action->count; m++)
        action->messages[m].sent.buffer.key = action->messages[m].received.buffer.key = 0;
    action->sending.key = action->receiving.key = 0;
    if (again)
        make_requests(context, action);
}

/* Writes what is to be sent, and something else where it is to be received. */
void fill_buffers(struct context *context, struct live_action *action)
{
    const struct action *planned = action->action;
    if (!settings.checks)
        return;
    for (int m = 0; m < planned->count; m++) {
        struct live_message *live = &action->messages[m];
        struct buffer *sent = &live->sent.buffer, *received = &live->received.buffer;
        const uint64_t key = key_of(context, action, m, action->executions / planned->refill);
        if (live->sent.own && planned->messages[m].buffer == m && sent->key != key) {
            write_content(bytes_of(sent), key, 0, sent->length);
            sent->key = key;
        }
        if (live->received.own && (planned->wipe || planned->kind == FUNNEL || received->key == 0)) {
            received->key = key_before(context, action, m);
            write_content(bytes_of(received), received->key, 0, received->length);
        }
    }
}

/* Send buffers hold what they held. */
void check_sent(struct context *context, struct live_action *action)
{
    if (!settings.checks)
        return;
    for (int m = 0; m < action->action->count; m++) {
        const struct side *side = &action->messages[m].sent;
        if (!side->own || action->action->messages[m].buffer != m)
            continue;
        unsigned char *image = room(&context->image, side->buffer.length);
        write_content(image, side->buffer.key, 0, side->buffer.length);
        compare(context, action, m, "send buffer", bytes_of(&side->buffer), image, side->buffer.length, 0);
    }
}

void pack_expected(const struct context *context, const struct live_action *action, int message, long version, unsigned char *packed)
{
    const struct message *planned = &action->action->messages[message];
    const uint64_t key = key_of(context, action, planned->buffer, version);
    if (planned->sent.kind == CONTIGUOUS) {
        write_content(packed, key, (size_t)planned->offset, (size_t)planned->bytes);
        return;
    }
    struct segment segments[MAX_SEGMENTS];
    long span;
    int count = find_segments(&planned->sent, planned->bytes, planned->element, segments, &span);
    for (int i = 0; i < count; i++) {
        write_content(packed, key, (size_t)segments[i].offset, (size_t)segments[i].length);
        packed += segments[i].length;
    }
}

static void check_status(struct context *context, const struct live_action *action, int slot, int expected,
                         const MPI_Status *status)
{
    const struct message *planned = &action->action->messages[expected];
    int count = -1;
    MPI_Get_count(status, basic_type(planned->element), &count);
    if (status->MPI_SOURCE != planned->source || status->MPI_TAG != tag_of(action, expected) ||
        count != planned->bytes / planned->element)
        wrong(context, action, slot, "status: source %d, tag %d, count %d; expected source %d, tag %d, count %ld",
              status->MPI_SOURCE, status->MPI_TAG, count, planned->source, tag_of(action, expected),
              planned->bytes / planned->element);
}

void check_received(struct context *context, struct live_action *action, int slot, int expected, long version,
                    const MPI_Status *status)
{
    const struct message *planned = &action->action->messages[expected];
    const struct side *side = &action->messages[slot].received;
    const struct buffer *buffer = &side->buffer;
    check_status(context, action, slot, expected, status);
    if (!settings.checks)
        return;
    unsigned char *image = room(&context->image, buffer->length);
    unsigned char *packed = room(&context->packed, (size_t)planned->bytes);
    pack_expected(context, action, expected, version, packed);
    write_content(image, buffer->key, 0, buffer->length);
    for (int i = 0; i < side->count; i++) {
        /* In a funnel the message may be shorter or longer than the one planned for this buffer. */
        const size_t offset = buffer->lead + (size_t)side->segments[i].offset;
        const size_t length = side->count == 1 ? (size_t)planned->bytes : (size_t)side->segments[i].length;
        memcpy(image + offset, packed, length);
        context->checksum += checksum_of(bytes_of(buffer) + offset, length, (uint64_t)version);
        packed += length;
    }
    compare(context, action, slot, "receive buffer", bytes_of(buffer), image, buffer->length, (long)buffer->lead);
}
