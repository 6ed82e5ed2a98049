/* Where buffers come from, and how they go and come again. */
#define _GNU_SOURCE
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, STATICS = 3 << 20 };

static unsigned char statics[STATICS];
static atomic_size_t statics_used;

static size_t pages(size_t length)
{
    return (length + PAGE - 1) / PAGE * PAGE;
}

/* Where a buffer of that length, a multiple of the alignment, begins in an area of its own. */
size_t place_of(const struct memory *memory, size_t length, size_t alignment)
{
    return memory->place == 1 ? pages(length) - length : (size_t)memory->place / alignment * alignment;
}

static unsigned char *map(size_t length, int sharing)
{
    unsigned char *start = mmap(NULL, length, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        fail("no memory for %zu mapped bytes", length);
    return start;
}

/* Between pages that nobody may touch. */
static void map_area(struct area *area, int sharing)
{
    area->whole_length = pages(area->length) + 2 * PAGE;
    area->whole = map(area->whole_length, sharing);
    area->base = (unsigned char *)area->whole + PAGE;
    mprotect(area->whole, PAGE, PROT_NONE);
    mprotect(area->base + pages(area->length), PAGE, PROT_NONE);
}

static unsigned char *next_page(unsigned char *start)
{
    return start + (PAGE - (uintptr_t)start % PAGE) % PAGE;
}

static bool take_static(struct area *area)
{
    size_t needed = area->length + PAGE;
    size_t used = atomic_fetch_add(&statics_used, needed);
    if (used + needed > STATICS)
        return false;
    area->base = next_page(statics + used);
    return true;
}

static bool take_stack(struct context *context, struct area *area)
{
    size_t needed = area->length + PAGE;
    if (needed > context->stack_left)
        return false;
    area->base = next_page(context->stack);
    context->stack += needed;
    context->stack_left -= needed;
    return true;
}

static void take_heap(struct area *area)
{
    if (area->memory->kind == HEAP_ALIGNED) {
        if (posix_memalign(&area->whole, PAGE, area->length) != 0)
            area->whole = NULL;
    } else {
        area->whole = malloc(area->length);
    }
    if (area->whole == NULL)
        fail("no memory for %zu bytes", area->length);
    area->base = area->whole;
}

void make_area(struct context *context, struct area *area, const struct memory *memory, size_t length)
{
    *area = (struct area){.memory = memory, .length = length == 0 ? 1 : length};
    switch (memory->kind) {
    case MAPPED:
        map_area(area, MAP_PRIVATE);
        return;
    case MAPPED_SHARED:
        map_area(area, MAP_SHARED);
        return;
    case STACK:
        if (take_stack(context, area))
            return;
        break;
    case STATIC:
        if (take_static(area))
            return;
        break;
    default:
        break;
    }
    take_heap(area);
}

void free_area(struct area *area)
{
    if (area->whole_length > 0)
        munmap(area->whole, area->whole_length);
    else
        free(area->whole);
    area->base = area->whole = NULL;
}

void free_statics(void)
{
    atomic_store(&statics_used, 0);
}

/* Writes something of its own everywhere, which the renewal must not lose. */
static void mark(const struct area *area, uint64_t key)
{
    if (settings.checks)
        write_content(area->base, key, 0, area->length);
}

static void check_mark(struct context *context, const struct live_action *action, const struct area *area, uint64_t key,
                       const char *what)
{
    if (!settings.checks)
        return;
    unsigned char *image = room(&context->image, area->length);
    write_content(image, key, 0, area->length);
    compare(context, action, -1, what, area->base, image, area->length, 0);
}

static void check_zero(struct context *context, const struct live_action *action, const struct area *area, const char *what)
{
    if (!settings.checks)
        return;
    unsigned char *image = room(&context->image, area->length);
    memset(image, 0, area->length);
    compare(context, action, -1, what, area->base, image, area->length, 0);
}

static void renew_heap(struct context *context, const struct live_action *action, struct area *area, uint64_t key)
{
    if (area->whole == NULL) /* stack or static memory stays where it is */
        return;
    if (area->memory->renewal == MOVED) {
        mark(area, key);
        void *moved = realloc(area->whole, area->length + 8 * PAGE);
        if (moved == NULL)
            fail("no memory for %zu bytes", area->length);
        area->base = area->whole = moved;
        check_mark(context, action, area, key, "what realloc moved");
        return;
    }
    free(area->whole);
    take_heap(area);
}

void renew_area(struct context *context, const struct live_action *action, struct area *area)
{
    const uint64_t key = mix((uint64_t)action->executions, (uint64_t)context->rank);
    const int sharing = area->memory->kind == MAPPED ? MAP_PRIVATE : MAP_SHARED;
    const size_t length = pages(area->length);
    if (area->whole_length == 0) {
        renew_heap(context, action, area, key);
        return;
    }
    switch (area->memory->renewal) {
    case REMAPPED_IN_PLACE:
        if (mmap(area->base, length, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != area->base)
            fail("memory could not be mapped anew");
        check_zero(context, action, area, "memory mapped anew");
        break;
    case MOVED: {
        /* It grows, which it cannot where it is the first time: the page behind it is taken. (MREMAP_FIXED would be plainer,
           but UCX leads mremap through a function that loses the fifth argument.) */
        const bool moved_before = area->base == area->whole;
        const size_t old = moved_before ? area->whole_length : length;
        mark(area, key);
        unsigned char *moved = mremap(area->base, old, old + PAGE, MREMAP_MAYMOVE);
        if (moved == MAP_FAILED)
            fail("memory could not be moved");
        if (!moved_before) {
            munmap(area->whole, PAGE);
            munmap(area->base + length, PAGE);
        }
        area->whole = area->base = moved;
        area->whole_length = old + PAGE;
        check_mark(context, action, area, key, "what mremap moved");
        break;
    }
    case DISCARDED:
        if (madvise(area->base, length, MADV_DONTNEED) != 0)
            fail("memory could not be discarded");
        if (sharing == MAP_PRIVATE)
            check_zero(context, action, area, "discarded memory");
        break;
    default:
        munmap(area->whole, area->whole_length);
        map_area(area, sharing);
        break;
    }
}
