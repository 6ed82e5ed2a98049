/* What messages contain, what is expected, and what is said where that differs. */
#include "run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

atomic_long wrongs;

/* Eight bytes of the content; each depends on the key and on the position. */
static inline uint64_t word(uint64_t key, uint64_t position)
{
    uint64_t x = (key + position) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 32;
}

void write_content(unsigned char *to, uint64_t key, size_t from, size_t length)
{
    uint64_t position = from / 8, w = word(key, position);
    size_t skipped = from % 8;
    if (skipped != 0) {
        size_t part = length < 8 - skipped ? length : 8 - skipped;
        memcpy(to, (unsigned char *)&w + skipped, part);
        to += part;
        length -= part;
        position++;
    }
    for (; length >= 8; to += 8, length -= 8) {
        w = word(key, position++);
        memcpy(to, &w, 8);
    }
    w = word(key, position);
    memcpy(to, &w, length);
}

unsigned char *room(struct scratch *scratch, size_t length)
{
    if (scratch->length < length) {
        free(scratch->bytes);
        scratch->length = length + length / 2;
        scratch->bytes = malloc(scratch->length);
        if (scratch->bytes == NULL)
            fail("no memory for %zu bytes", length);
    }
    return scratch->bytes;
}

size_t first_difference(const unsigned char *left, const unsigned char *right, size_t length)
{
    if (memcmp(left, right, length) == 0)
        return length;
    size_t i = 0;
    while (i < length && left[i] == right[i])
        i++;
    return i;
}

uint64_t checksum_of(const unsigned char *bytes, size_t length, uint64_t key)
{
    uint64_t sum = key, w;
    size_t i = 0;
    for (; i + 8 <= length; i += 8) {
        memcpy(&w, bytes + i, 8);
        sum += w * (2 * i + 1);
    }
    for (; i < length; i++)
        sum = sum * 31 + bytes[i];
    return mix(sum, length);
}

/* One write, so that the lines of several processes do not mix. */
static void say(const struct context *context, const struct live_action *action, int message, const char *what)
{
    char line[400], place[60] = "";
    if (message >= 0)
        snprintf(place, sizeof place, ", message %d", message);
    int length = snprintf(line, sizeof line, "seed %llu: wrong: rank %d, step %d, action %d%s, execution %ld: %s\n",
                          (unsigned long long)context->plan->seed, context->rank, context->step_number, action->number,
                          place, action->executions, what);
    if (length >= (int)sizeof line)
        length = sizeof line - 1;
    /* Nothing can be done where it cannot be said; the exit status tells it, too. */
    ssize_t written = write(STDOUT_FILENO, line, (size_t)length);
    (void)written;
}

void wrong(struct context *context, const struct live_action *action, int message, const char *format, ...)
{
    if (atomic_fetch_add(&wrongs, 1) > 0)
        return;
    char what[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    say(context, action, message, what);
}

bool compare(struct context *context, const struct live_action *action, int message, const char *what,
             const unsigned char *found, const unsigned char *expected, size_t length, long base)
{
    size_t at = first_difference(found, expected, length);
    if (at == length)
        return true;
    size_t differing = 0, last = at;
    for (size_t i = at; i < length; i++) {
        if (found[i] != expected[i]) {
            differing++;
            last = i;
        }
    }
    wrong(context, action, message, "%s at %p: byte %ld of %zu: expected 0x%02x, found 0x%02x; %zu differ, the last one is %ld",
          what, (const void *)(found + at), (long)at - base, length, expected[at], found[at], differing, (long)last - base);
    return false;
}

_Noreturn void fail(const char *format, ...)
{
    char sentence[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    fprintf(stderr, "patterns: %s\n", sentence);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}
