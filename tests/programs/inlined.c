/* What UCX copies inline before, during and after MPI: inlined [VALUE], which is set before MPI_Init. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>

static const char *const name = "BUILTIN_MEMCPY_MIN";

/* int (*)(const char *name, char *value, size_t max) and int (*)(const char *name, const char *value), ucs/config/global_opts.h. */
static int (*get)(const char *, char *, size_t);
static int (*set)(const char *, const char *);

static void tell(const char *when) {
    char value[64] = "";
    CHECK(get(name, value, sizeof value - 1) == 0);
    printf("%s %s\n", when, value);
}

int main(int argc, char **argv) {
    get = (int (*)(const char *, char *, size_t))dlsym(RTLD_DEFAULT, "ucs_global_opts_get_value");
    set = (int (*)(const char *, const char *))dlsym(RTLD_DEFAULT, "ucs_global_opts_set_value");
    CHECK(get != NULL && set != NULL);
    if (argc > 1) CHECK(set(name, argv[1]) == 0);
    tell("before");
    CHECK(MPI_Init(&argc, &argv) == MPI_SUCCESS);
    tell("during");
    CHECK(MPI_Finalize() == MPI_SUCCESS);
    tell("after");
    return 0;
}
