/* copytune.h: lets copytune tune a program's own choices (block sizes, variants of a function) as it tunes the copies of its
 * messages. See docs/c-api.md.
 *
 *     int stencil = copytune_region("stencil");
 *     int block = copytune_variable(stencil, "block", 4, NULL);
 *     for (...) {
 *         copytune_begin(stencil);
 *         sweep(8 << copytune_choice(stencil, block));
 *         copytune_end(stencil);
 *     }
 *
 * This header is all that a program needs. Without libcopytune.so, preloaded or linked, every function does nothing, and each
 * choice is 0, the default. All functions may be called from any thread, none ends the program. */

#ifndef COPYTUNE_H
#define COPYTUNE_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define COPYTUNE_VERSION 2

/* What the functions answer where they do not do what they were asked to: less than 0. */
enum {
    COPYTUNE_ORDER = -1,    /* an end without a beginning, a second beginning, a variable after the first execution; a beginning or
                             * an end of a region that MPI calls mark */
    COPYTUNE_UNKNOWN = -2,  /* there is no such region */
    COPYTUNE_BUSY = -3,     /* another thread executes the region */
    COPYTUNE_TOO_MANY = -4, /* at most 256 regions, 16 variables each */
    COPYTUNE_VALUE = -5,    /* a name, a number of choices (1 to 1,024) or a cost that cannot be */
    COPYTUNE_OFF = -6       /* copytune has switched itself off after an internal error */
};

/* The library's functions; its layout is the ABI. */
struct copytune_functions {
    int version;
    int (*region)(const char *);
    int (*variable)(int, const char *, int, const char *const *);
    int (*begin)(int);
    int (*choice)(int, int);
    int (*end)(int);
    int (*end_with)(int, double);
    int (*drop)(int);
    void *(*memcpy)(void *, const void *, size_t);
    int (*region_by_calls)(const char *); /* from version 2 on */
};

#define COPYTUNE_INLINE static inline __attribute__((always_inline, unused))

/* The functions, or NULL without the library. */
static __attribute__((noinline, unused)) const struct copytune_functions *copytune_find(void)
{
    union {
        void *object;
        const struct copytune_functions *(*function)(int);
    } found;
    found.object = dlsym(RTLD_DEFAULT, "copytune_functions");
    return found.object ? found.function(COPYTUNE_VERSION) : NULL;
}

COPYTUNE_INLINE const struct copytune_functions *copytune_library(void)
{
    static const struct copytune_functions none = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    static const struct copytune_functions *known;
    const struct copytune_functions *functions = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
    if (!functions) {
        functions = copytune_find();
        if (!functions)
            functions = &none;
        __atomic_store_n(&known, functions, __ATOMIC_RELEASE);
    }
    return functions;
}

/* The version of the library's functions; 0 without it. */
COPYTUNE_INLINE int copytune_version(void)
{
    return copytune_library()->version;
}

/* The region with that name, which the first call adds. A region is a piece of work that is executed many times, with about the
 * same amount of work each time: the body of a loop. One without variables is timed only: a phase of the program. */
COPYTUNE_INLINE int copytune_region(const char *name)
{
    const struct copytune_functions *f = copytune_library();
    return f->version ? f->region(name) : 0;
}

/* The same, and the program's MPI calls mark its executions: from one copytune_choice to the next one of the same variable, if the
 * thread has made MPI calls in between. So in a loop with MPI calls that reads a choice each turn is an execution; copytune_begin and
 * copytune_end are not needed, nor allowed. */
COPYTUNE_INLINE int copytune_region_by_calls(const char *name)
{
    const struct copytune_functions *f = copytune_library();
    return f->version ? f->region_by_calls(name) : 0;
}

/* A variable of the region with so many choices; 0 is the default, with which the program runs as it would without copytune.
 * Before the region's first execution. `names` are those of the choices, by which they are found again in the next run; NULL:
 * their numbers. Returns the variable's number. */
COPYTUNE_INLINE int copytune_variable(int region, const char *name, int choices, const char *const *names)
{
    const struct copytune_functions *f = copytune_library();
    return f->version ? f->variable(region, name, choices, names) : 0;
}

/* An execution of the region begins in this thread. */
COPYTUNE_INLINE int copytune_begin(int region)
{
    const struct copytune_functions *f = copytune_library();
    return f->version ? f->begin(region) : 0;
}

/* The choice of a variable that is to be used now, from 0 to the number of choices less 1; 0 for what is not known. It changes
 * only in copytune_begin and copytune_end; where MPI calls mark the region, only in a call of this function that begins an execution. */
COPYTUNE_INLINE int copytune_choice(int region, int variable)
{
    const struct copytune_functions *f = copytune_library();
    return f->version ? f->choice(region, variable) : 0;
}

/* The execution ends. */
COPYTUNE_INLINE int copytune_end(int region)
{
    const struct copytune_functions *f = copytune_library();
    return f->version ? f->end(region) : 0;
}

/* The execution ends and has cost so much, in seconds or any other unit, instead of the time that copytune has measured. Where MPI
 * calls mark the region, they end it all the same; this says what it costs. */
COPYTUNE_INLINE int copytune_end_with(int region, double cost)
{
    const struct copytune_functions *f = copytune_library();
    return f->version ? f->end_with(region, cost) : 0;
}

/* The execution ends (where MPI calls mark the region, it goes on until they end it) and does not count: it was cut short, or did
 * other work than usual. */
COPYTUNE_INLINE int copytune_drop(int region)
{
    const struct copytune_functions *f = copytune_library();
    return f->version ? f->drop(region) : 0;
}

/* memcpy(3), by the routine that is the fastest for this call and this length. */
COPYTUNE_INLINE void *copytune_memcpy(void *target, const void *source, size_t bytes)
{
    const struct copytune_functions *f = copytune_library();
    void *copied = f->version ? f->memcpy(target, source, bytes) : memcpy(target, source, bytes);
    /* Keeps the call here: where it returns to tells which one it is. */
    __asm__ volatile("" : "+r"(copied));
    return copied;
}

#ifdef __cplusplus
}
#endif

#endif
