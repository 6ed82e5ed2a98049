/* The checked variants that -D_FORTIFY_SOURCE=2 makes of memcpy and memmove; with an argument, a copy
 * longer than its destination, which must end the program as glibc does. */
#define CHECK_WITHOUT_MPI
#include "check.h"

static unsigned char target[4000];

/* The length is not known at compile time, the destination's size is: the compiler calls *_chk. */
__attribute__((noinline)) static void checked(size_t length, const unsigned char *from) {
    memcpy(target, from, length);
    check_take(target, length);
    memmove(target, target + 1, length > 0 ? length - 1 : 0);
    check_take(target, length);
}

int main(int argc, char **argv) {
    unsigned char *from = check_allocate(8000);
    check_fill(from, 8000, 6);
    for (size_t length = 0; length <= 4000; length += 1 + length / 7) {
        checked(length, from);
    }
    checked(4000, from);
    check_finish();
    if (argc > 1) {
        volatile size_t too_long = 4001;
        if (strcmp(argv[1], "memcpy") == 0)
            memcpy(target, from, too_long);
        else
            memmove(target, from, too_long);
        printf("the overflow went unseen\n");
    }
    return 0;
}
