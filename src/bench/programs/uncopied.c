/*
 * uncopied: a preloaded library by which long messages that the kernel would copy arrive without their bytes. What is
 * left of their time is the MPI library's own: no way of copying can be faster. Shorter ones, by which the library
 * itself tells what it must know, are copied. At the end it says how many there were: where the kernel copies nothing,
 * none.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LONG = 8 << 10 };

static atomic_long messages;

__attribute__((destructor)) static void report(void)
{
    if (messages > 0)
        fprintf(stderr, "uncopied: %ld pieces were not copied\n", messages);
}

ssize_t process_vm_readv(pid_t process, const struct iovec *local, unsigned long pieces, const struct iovec *remote,
                         unsigned long remote_pieces, unsigned long flags)
{
    size_t bytes = 0;
    for (unsigned long i = 0; i < pieces; i++)
        bytes += local[i].iov_len;
    if (bytes < LONG)
        return syscall(SYS_process_vm_readv, process, local, pieces, remote, remote_pieces, flags);
    messages++;
    return (ssize_t)bytes;
}
