/* Loads the MPI library that its argument names, uses it and closes it, and does the same once more where it lies elsewhere. */
#define CHECK_WITHOUT_MPI
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <sys/mman.h>

static void *symbol(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    CHECK(found != NULL);
    return found;
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    int world = (int)strtol(argv[2], NULL, 0);
    for (int round = 0; round < 3; round++) {
        Dl_info place;
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
        CHECK(library != NULL && dladdr(dlsym(library, "MPIR_Dup_fn"), &place) != 0);
        CHECK(((int (*)(int *, char ***))symbol("MPI_Init"))(&argc, &argv) == 0);
        for (int i = 0; i < 20; i++) CHECK(((int (*)(int))symbol("MPI_Barrier"))(world) == 0);
        CHECK(((int (*)(void))symbol("MPI_Finalize"))() == 0);
        CHECK(dlclose(library) == 0);
        /* If nothing is there any more, nothing will be. (Without the shim the loader keeps it: dlsym has found it.) */
        mmap(place.dli_fbase, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    }
    return check_finish();
}
