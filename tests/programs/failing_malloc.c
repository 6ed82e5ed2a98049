/* To be preloaded with the shim: from its FAILING_FROM-th allocation on, or from when the program says so, the shim's have no memory, and
   nobody else's. Counts the shim's calls of the functions that take of the program's heap. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static uintptr_t low, high;
static long left, count;

static int find(struct dl_phdr_info *info, size_t size, void *none) {
    (void)size, (void)none;
    const char *name = strrchr(info->dlpi_name, '/');
    if (name == NULL || strcmp(name + 1, "libcopytune.so") != 0) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, end = start + info->dlpi_phdr[i].p_memsz;
            if (low == 0 || start < low) low = start;
            if (end > high) high = end;
        }
    return 1;
}

__attribute__((constructor(101))) static void begin(void) {
    const char *from = getenv("FAILING_FROM");
    left = from == NULL ? -1 : atol(from);
    dl_iterate_phdr(find, NULL);
}

static int refuses(void) {
    if (left < 0) return 0;
    if (__atomic_load_n(&left, __ATOMIC_RELAXED) > 0) {
        __atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED);
        return 0;
    }
    errno = ENOMEM;
    return 1;
}

static int fails(void *caller) {
    uintptr_t address = (uintptr_t)caller;
    if (address < low || address >= high) return 0;
    __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    return refuses();
}

/* The shim asks for each block of its own, which is none of malloc's. */
int copytune_is_refused_memory(void) { return refuses(); }

long shim_allocations(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED); }

/* The program itself may say from when on, and until when. */
void failing_from_now(int on) { __atomic_store_n(&left, on ? 0 : -1, __ATOMIC_RELAXED); }

#define CALLER __builtin_return_address(0)

void *malloc(size_t bytes) { return fails(CALLER) ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return fails(CALLER) ? NULL : __libc_calloc(count, bytes); }
void *realloc(void *old, size_t bytes) { return fails(CALLER) ? NULL : __libc_realloc(old, bytes); }
void *aligned_alloc(size_t align, size_t bytes) { return fails(CALLER) ? NULL : __libc_memalign(align, bytes); }

/* It allocates 32 KiB. */
DIR *opendir(const char *name) {
    DIR *(*next)(const char *) = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");
    return fails(CALLER) ? NULL : next(name);
}

int posix_memalign(void **result, size_t align, size_t bytes) {
    if (fails(CALLER)) return ENOMEM;
    void *found = __libc_memalign(align, bytes);
    if (found == NULL) return ENOMEM;
    *result = found;
    return 0;
}
