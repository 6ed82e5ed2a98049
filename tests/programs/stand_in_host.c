/* Loads the MPI library that its argument names, and calls it as a program would that is linked with it. */
#define CHECK_WITHOUT_MPI
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>

static void *symbol(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    CHECK(found != NULL);
    return found;
}

int main(int argc, char **argv) {
    CHECK(argc == 3 && dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) != NULL);
    int world = (int)strtol(argv[2], NULL, 0);
    CHECK(((int (*)(int *, char ***))symbol("MPI_Init"))(&argc, &argv) == 0);
    for (int i = 0; i < 20; i++) CHECK(((int (*)(int))symbol("MPI_Barrier"))(world) == 0);
    printf("%llu\n", (unsigned long long)check_sum);
    return ((int (*)(void))symbol("MPI_Finalize"))();
}
