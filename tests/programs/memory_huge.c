/* One copy of more than 4 GiB. Both ranges repeat one small file, so that it needs little memory. */
#define _GNU_SOURCE
#define CHECK_WITHOUT_MPI
#include "check.h"
#include <sys/mman.h>
#include <unistd.h>

static const size_t PIECE = (size_t)64 << 20, PIECES = 66;

/* `PIECES` mappings of one file of `PIECE` bytes, one behind the other. */
static unsigned char *repeated(const char *name) {
    int file = memfd_create(name, 0);
    CHECK(file >= 0 && ftruncate(file, (off_t)PIECE) == 0);
    unsigned char *area = mmap(NULL, PIECE * PIECES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(area != MAP_FAILED);
    for (size_t i = 0; i < PIECES; i++)
        CHECK(mmap(area + i * PIECE, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED);
    return area;
}

int main(void) {
    static void *(*volatile copy)(void *, const void *, size_t) = memcpy;
    unsigned char *from = repeated("from"), *to = repeated("to");
    for (size_t i = 0; i < PIECE; i += 509) from[i] = check_byte(9, i);
    from[PIECE - 1] = 0xd7;
    size_t length = PIECE * PIECES - 1; /* the last byte is that of every piece but the last one */
    CHECK(length > (size_t)1 << 32);
    CHECK(copy(to, from, length) == to);
    CHECK(memcmp(from, to, PIECE) == 0);
    check_take(&to[PIECE - 5], 5);
    return check_finish();
}
