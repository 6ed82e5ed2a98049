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
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* As much of a sender's memory as 8192 regions are can be stood in for. */
enum { LONG = 8 << 10, REGION = 2 << 20, REGIONS = 8192 };

/* What stands for each region of the sender's memory, at the place that its number gives or the next free one. */
static struct stand_in {
    uintptr_t number;
    char *memory;
} regions[REGIONS];

static char *stand_in(uintptr_t number)
{
    for (uintptr_t i = 0; i < REGIONS; i++) {
        struct stand_in *region = &regions[(number + i) % REGIONS];
        if (region->memory != NULL && region->number == number)
            return region->memory;
        if (region->memory == NULL) {
            void *memory = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (memory == MAP_FAILED)
                abort();
            memset(memory, 1, REGION);
            *region = (struct stand_in){number, memory};
            return memory;
        }
    }
    abort();
}

ssize_t process_vm_readv(pid_t process, const struct iovec *local, unsigned long pieces, const struct iovec *remote,
                         unsigned long remote_pieces, unsigned long flags)
{
    if (pieces != 1 || remote_pieces != 1 || local->iov_len < LONG || local->iov_len != remote->iov_len)
        return syscall(SYS_process_vm_readv, process, local, pieces, remote, remote_pieces, flags);
    uintptr_t address = (uintptr_t)remote->iov_base;
    char *to = local->iov_base;
    for (size_t left = local->iov_len; left > 0;) {
        size_t place = address % REGION, bytes = REGION - place < left ? REGION - place : left;
        memcpy(to, stand_in(address / REGION) + place, bytes);
        to += bytes;
        address += bytes;
        left -= bytes;
    }
    return (ssize_t)local->iov_len;
}
