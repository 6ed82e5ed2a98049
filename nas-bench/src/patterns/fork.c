/* A child that has the memory of the moment at which it was forked, and whose writes nobody sees. */
#include "run.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether a child has this buffer for itself, with known content. */
static bool is_private(const struct side *side, const struct message *message, int m)
{
    return side->own && message->buffer == m && side->buffer.key != 0 && side->buffer.area->memory->kind != MAPPED_SHARED;
}

/* Runs through the send buffers of the step: checks them, or writes something else. */
static bool each_buffer(struct context *context, bool checks, int byte)
{
    bool well = true;
    for (int a = 0; a < context->step->count; a++) {
        struct live_action *action = &context->actions[a];
        if (action->action == NULL || (action->action->kind != BATCH && action->action->kind != EXCHANGE))
            continue;
        for (int m = 0; m < action->action->count; m++) {
            struct side *side = &action->messages[m].sent;
            if (!is_private(side, &action->action->messages[m], m))
                continue;
            const struct buffer *buffer = &side->buffer;
            if (checks) {
                unsigned char *image = room(&context->image, buffer->length);
                write_content(image, buffer->key, 0, buffer->length);
                well = compare(context, action, m, "send buffer of a child", bytes_of(buffer), image, buffer->length, 0) && well;
            } else {
                memset(bytes_of(buffer), byte, buffer->length);
            }
        }
    }
    return well;
}

static void forget_contents(struct context *context)
{
    for (int a = 0; a < context->step->count; a++)
        for (int m = 0; m < MAX_MESSAGES; m++)
            context->actions[a].messages[m].sent.buffer.key = 0;
}

void run_fork(struct context *context, struct live_action *action)
{
    int go[2];
    char token = 0;
    if (context->rank != action->action->root)
        return;
    if (pipe(go) != 0)
        fail("no pipe");
    const bool parent_writes = action->executions % 2 == 0;
    pid_t child = fork();
    if (child < 0)
        fail("no child process");
    if (child == 0) {
        bool well = read(go[0], &token, 1) == 1;
        if (settings.checks) {
            well = each_buffer(context, true, 0) && well;
            each_buffer(context, false, 0xcc);
        }
        _exit(well ? 0 : 1);
    }
    if (settings.checks && parent_writes)
        each_buffer(context, false, 0x33);
    int status = -1;
    if (write(go[1], &token, 1) != 1 || waitpid(child, &status, 0) != child || status != 0)
        wrong(context, action, -1, "a child ended with status %d", status);
    close(go[0]);
    close(go[1]);
    if (settings.checks && !parent_writes)
        each_buffer(context, true, 0);
    else
        forget_contents(context);
}
