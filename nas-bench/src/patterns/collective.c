/* Collectives. Their buffers are words; of process r the words are the content of message r. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

static long words_of(const struct action *planned)
{
    return planned->bytes / 8;
}

static uint64_t key_from(const struct context *context, const struct live_action *action, int rank)
{
    return key_of(context, action, rank, action->executions / action->action->refill);
}

/* The blocks that a process sends, and those that it receives. */
static void blocks_of(const struct context *context, const struct action *planned, int *sent, int *received)
{
    const bool root = context->rank == planned->root;
    *sent = *received = 1;
    switch (planned->collective) {
    case BARRIER:
    case IBARRIER:
        *sent = *received = 0;
        break;
    case BCAST:
    case IBCAST:
        *sent = root ? 1 : 0;
        *received = root ? 0 : 1;
        break;
    case REDUCE:
        *received = root ? 1 : 0;
        break;
    case GATHER:
        *received = root ? context->ranks : 0;
        break;
    case SCATTER:
        *sent = root ? context->ranks : 0;
        break;
    case ALLGATHER:
    case IALLGATHER:
        *received = context->ranks;
        break;
    case ALLTOALL:
    case ALLTOALLV:
        *sent = *received = context->ranks;
        break;
    default:
        break;
    }
}

void prepare_collective(struct context *context, struct live_action *action)
{
    int sent, received;
    blocks_of(context, action->action, &sent, &received);
    make_buffer(context, action, &action->action->sending, &action->sending, (size_t)(sent * action->action->bytes), 8, false);
    make_buffer(context, action, &action->action->receiving, &action->receiving, (size_t)(received * action->action->bytes), 8, true);
}

static void call(struct context *context, struct live_action *action, void *sent, void *received)
{
    const struct action *planned = action->action;
    const int count = (int)words_of(planned), root = planned->root;
    int counts[MAX_RANKS], places[MAX_RANKS];
    void *broadcast = context->rank == root ? sent : received;
    MPI_Comm comm = context->comm;
    MPI_Request request = MPI_REQUEST_NULL;
    for (int r = 0; r < MAX_RANKS; r++) {
        counts[r] = count;
        places[r] = r * count;
    }
    switch (planned->collective) {
    case BARRIER: MPI_Barrier(comm); break;
    case BCAST: MPI_Bcast(broadcast, count, MPI_UINT64_T, root, comm); break;
    case REDUCE: MPI_Reduce(sent, received, count, MPI_UINT64_T, MPI_SUM, root, comm); break;
    case ALLREDUCE: MPI_Allreduce(sent, received, count, MPI_UINT64_T, MPI_SUM, comm); break;
    case GATHER: MPI_Gather(sent, count, MPI_UINT64_T, received, count, MPI_UINT64_T, root, comm); break;
    case SCATTER: MPI_Scatter(sent, count, MPI_UINT64_T, received, count, MPI_UINT64_T, root, comm); break;
    case ALLGATHER: MPI_Allgather(sent, count, MPI_UINT64_T, received, count, MPI_UINT64_T, comm); break;
    case ALLTOALL: MPI_Alltoall(sent, count, MPI_UINT64_T, received, count, MPI_UINT64_T, comm); break;
    case ALLTOALLV: MPI_Alltoallv(sent, counts, places, MPI_UINT64_T, received, counts, places, MPI_UINT64_T, comm); break;
    case IBARRIER: MPI_Ibarrier(comm, &request); break;
    case IBCAST: MPI_Ibcast(broadcast, count, MPI_UINT64_T, root, comm, &request); break;
    case IALLREDUCE: MPI_Iallreduce(sent, received, count, MPI_UINT64_T, MPI_SUM, comm, &request); break;
    case IALLGATHER: MPI_Iallgather(sent, count, MPI_UINT64_T, received, count, MPI_UINT64_T, comm, &request); break;
    default: fail("collective %d is unknown", (int)planned->collective);
    }
    if (request != MPI_REQUEST_NULL)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* The sum of all processes' words. */
static void expect_sum(const struct context *context, const struct live_action *action, unsigned char *image, unsigned char *one)
{
    const long words = words_of(action->action);
    memset(image, 0, (size_t)words * 8);
    for (int r = 0; r < context->ranks; r++) {
        write_content(one, key_from(context, action, r), 0, (size_t)words * 8);
        for (long i = 0; i < words; i++) {
            uint64_t sum, term;
            memcpy(&sum, image + i * 8, 8);
            memcpy(&term, one + i * 8, 8);
            sum += term;
            memcpy(image + i * 8, &sum, 8);
        }
    }
}

/* What the received blocks are. */
static void expect(struct context *context, const struct live_action *action, unsigned char *image, int blocks)
{
    const struct action *planned = action->action;
    const size_t bytes = (size_t)planned->bytes;
    for (int b = 0; b < blocks; b++) {
        unsigned char *to = image + (size_t)b * bytes;
        switch (planned->collective) {
        case REDUCE:
        case ALLREDUCE:
        case IALLREDUCE:
            expect_sum(context, action, to, room(&context->packed, bytes + 1));
            break;
        case BCAST:
        case IBCAST:
            write_content(to, key_from(context, action, planned->root), 0, bytes);
            break;
        case SCATTER:
            write_content(to, key_from(context, action, planned->root), (size_t)context->rank * bytes, bytes);
            break;
        case ALLTOALL:
        case ALLTOALLV:
            write_content(to, key_from(context, action, b), (size_t)context->rank * bytes, bytes);
            break;
        default:
            write_content(to, key_from(context, action, b), 0, bytes);
            break;
        }
    }
}

void run_collective(struct context *context, struct live_action *action)
{
    int sent_blocks, received_blocks;
    struct buffer *sent = &action->sending, *received = &action->receiving;
    const size_t bytes = (size_t)action->action->bytes;
    blocks_of(context, action->action, &sent_blocks, &received_blocks);
    if (settings.checks) {
        const uint64_t key = key_from(context, action, context->rank);
        if (sent->key != key)
            write_content(bytes_of(sent), key, 0, (size_t)sent_blocks * bytes);
        sent->key = key;
        if (action->action->wipe || received->key == 0) {
            received->key = key_of(context, action, 100 + context->rank, action->executions);
            write_content(bytes_of(received), received->key, 0, received->length);
        }
    }
    call(context, action, bytes_of(sent), bytes_of(received) + received->lead);
    if (!settings.checks)
        return;
    unsigned char *image = room(&context->image, received->length + (size_t)sent_blocks * bytes);
    write_content(image, received->key, 0, received->length);
    expect(context, action, image + received->lead, received_blocks);
    context->checksum += checksum_of(bytes_of(received) + received->lead, (size_t)received_blocks * bytes, (uint64_t)action->executions);
    compare(context, action, -1, "receive buffer", bytes_of(received), image, received->length, (long)received->lead);
    write_content(image, sent->key, 0, (size_t)sent_blocks * bytes);
    compare(context, action, -1, "send buffer", bytes_of(sent), image, (size_t)sent_blocks * bytes, 0);
}
