/* memmove in both directions by every small distance, and the memcpy of old binaries, which glibc
 * promises to treat as memmove. */
#define CHECK_WITHOUT_MPI
#include "check.h"

/* What a binary from before glibc 2.14 refers to. */
void *old_memcpy(void *, const void *, size_t);
__asm__(".symver old_memcpy, memcpy@GLIBC_2.2.5");

/* Calls through these cannot be expanded inline. */
static void *(*volatile mover)(void *, const void *, size_t) = memmove;
static void *(*volatile old)(void *, const void *, size_t) = old_memcpy;

enum { ROOM = 400000, MARGIN = 5000 };

static unsigned char *area;

static void once(void *(*copy)(void *, const void *, size_t), size_t length, long distance) {
    unsigned char *from = area + MARGIN, *to = from + distance;
    uint64_t seed = length + (uint64_t)distance;
    memset(area, 0x11, length + 2 * MARGIN);
    check_fill(from, length, seed);
    CHECK(copy(to, from, length) == to);
    for (size_t i = 0; i < length; i++) CHECK(to[i] == check_byte(seed, i));
    /* Bytes on either side of what the two ranges cover. */
    unsigned char *low = from < to ? from : to, *high = (from < to ? to : from) + length;
    CHECK(low[-1] == 0x11 && *high == 0x11);
    check_take(to, length);
}

int main(void) {
    area = malloc(ROOM + 2 * MARGIN);
    CHECK(area != NULL);
    static const long distances[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 255, 256, 511, 1024, 4095, 4096, 4097};
    for (size_t d = 0; d < sizeof distances / sizeof distances[0]; d++)
        for (int sign = -1; sign <= 1; sign += 2) {
            for (size_t length = 0; length < 600; length++) once(mover, length, sign * distances[d]);
            for (size_t length = 600; length < ROOM; length = length * 3 / 2 + 1) {
                once(mover, length, sign * distances[d]);
                once(old, length, sign * distances[d]);
            }
        }
    CHECK(mover(area, area, 1000) == area);
    CHECK(mover(NULL, NULL, 0) == NULL);
    return check_finish();
}
