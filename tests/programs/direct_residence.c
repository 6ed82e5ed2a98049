/* direct_residence: two ranks send each other a buffer many times; each says on stderr how often mincore(2) was asked meanwhile. */
#define LENGTH_IN_PAGES 16
#include "direct_exchange.h"
#include <sys/syscall.h>

enum { SWAPS = 2000 };

static long asked;

/* In place of the C library's. */
int mincore(void *start, size_t length, unsigned char *vec) {
    asked++;
    return (int)syscall(SYS_mincore, start, length, vec);
}

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    CHECK(check_size == 2);
    in = malloc(LENGTH);
    unsigned char *out = pages(NULL, LENGTH);
    CHECK(in != NULL);
    for (int i = 0; i < SWAPS; i++) swap_once(out, LENGTH);
    fprintf(stderr, "rank %d: %ld questions\n", check_rank, asked);
    return check_finish();
}
