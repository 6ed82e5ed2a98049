/* A library that is loaded after MPI_Init, and whose calls of madvise are bound lazily. */
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/mman.h>

int late_advise(void *address, size_t length, int advice) { return madvise(address, length, advice); }
