/* To be preloaded: in process 1 the program has no memory from its COPYTUNE_TEST_NO_MEMORY_FROM-th aligned_alloc on, and nobody
   else's calls fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int is_process_1(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (rank == NULL) rank = getenv("PMI_RANK");
    return rank != NULL && strcmp(rank, "1") == 0;
}

static int is_of_the_program(void *caller) {
    Dl_info info;
    if (dladdr(caller, &info) == 0 || info.dli_fname == NULL) return 0;
    const char *name = strrchr(info.dli_fname, '/');
    return strcmp(name == NULL ? info.dli_fname : name + 1, program_invocation_short_name) == 0;
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    static int calls;
    const char *from = getenv("COPYTUNE_TEST_NO_MEMORY_FROM");
    void *memory = NULL;
    if (from != NULL && is_process_1() && is_of_the_program(__builtin_return_address(0)) && ++calls >= atoi(from)) {
        errno = ENOMEM;
        return NULL;
    }
    errno = posix_memalign(&memory, alignment, bytes);
    return memory;
}
