/*
 * plain: a preloaded library by which long messages that the kernel would copy are copied by memcpy instead, from memory of
 * the receiver's own that has the place of the sender's. What they take is the MPI library's own time and one plain copy:
 * nobody asks where a message lies, and nobody helps. The bytes that arrive are not the sender's. Shorter messages, by which
 * the library itself tells what it must know, are copied as ever.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LONG = 8 << 10, PAGE = 4096, PLACES = 256 };

/* What stands for the sender's memory at an address. */
static struct stand_in {
    uintptr_t address;
    size_t bytes;
    char *memory;
} places[PLACES];

static const char *stand_in(uintptr_t address, size_t bytes)
{
    static int oldest;
    struct stand_in *found = NULL;
    for (int i = 0; i < PLACES && found == NULL && places[i].memory != NULL; i++)
        if (places[i].address == address && places[i].bytes == bytes)
            found = &places[i];
    if (found == NULL) {
        size_t pages = (bytes + 2 * PAGE) / PAGE * PAGE;
        found = &places[oldest++ % PLACES];
        free(found->memory);
        *found = (struct stand_in){address, bytes, aligned_alloc(PAGE, pages)};
        if (found->memory == NULL)
            abort();
        memset(found->memory, 1, pages);
    }
    return found->memory + address % PAGE;
}

ssize_t process_vm_readv(pid_t process, const struct iovec *local, unsigned long pieces, const struct iovec *remote,
                         unsigned long remote_pieces, unsigned long flags)
{
    if (pieces != 1 || remote_pieces != 1 || local->iov_len < LONG || local->iov_len != remote->iov_len)
        return syscall(SYS_process_vm_readv, process, local, pieces, remote, remote_pieces, flags);
    memcpy(local->iov_base, stand_in((uintptr_t)remote->iov_base, local->iov_len), local->iov_len);
    return (ssize_t)local->iov_len;
}
