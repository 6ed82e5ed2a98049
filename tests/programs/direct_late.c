/* A library that is loaded after MPI_Init, and whose calls of madvise are bound lazily. */
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/mman.h>

int late_discard(void *address, size_t length) { return madvise(address, length, MADV_DONTNEED); }
