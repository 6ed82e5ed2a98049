/* A program that does not link MPI: plugins bring it, with RTLD_LOCAL as Python's modules do. One plugin
 * stays; its twin, named last, is loaded, called and unloaded again and again. */
#define CHECK_WITHOUT_MPI
#include "check.h"
#include <dlfcn.h>

enum { LENGTH = 30000, GENERATIONS = 12, ROUNDS = 15 };

typedef int start_function(int *, char ***, int *, int *);
typedef int shift_function(const void *, void *, int, int, int);

static void *symbol(void *plugin, const char *name) {
    void *found = dlsym(plugin, name);
    CHECK(found != NULL);
    return found;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    void *first = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (first == NULL) fprintf(stderr, "%s\n", dlerror());
    CHECK(first != NULL);
    CHECK(((start_function *)symbol(first, "plugin_start"))(&argc, &argv, &check_rank, &check_size) == 0);
    unsigned char *out = check_allocate(LENGTH), *in = check_allocate(LENGTH);
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    for (int generation = 0; generation < GENERATIONS; generation++) {
        void *second = dlopen(argv[2], RTLD_LAZY | RTLD_LOCAL);
        CHECK(second != NULL);
        shift_function *shifts[2] = {(shift_function *)symbol(first, "plugin_shift"),
                                     (shift_function *)symbol(second, "plugin_shift")};
        CHECK(shifts[0] != shifts[1]);
        for (int round = 0; round < ROUNDS * 2; round++) {
            uint64_t seed = (uint64_t)(generation * 100 + round);
            check_fill(out, LENGTH, seed + (uint64_t)check_rank);
            CHECK(shifts[round % 2](out, in, LENGTH, right, left) == 0);
            check_equal(in, LENGTH, seed + (uint64_t)left);
        }
        CHECK(dlclose(second) == 0);
    }
    printf("rank %d: %016llx\n", check_rank, (unsigned long long)check_sum);
    return ((int (*)(void))symbol(first, "plugin_stop"))();
}
