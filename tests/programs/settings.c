/* A program whose modelled cost hangs on the MPI library's settings: no time is measured. Rank 0 prints "cost: N" to stderr, by what the
 * library itself says that it is set to (Open MPI, by MPI_T) or by what its environment says (UCX). All ranks must agree. One value of one
 * setting ends the program with status 3. Variables that are named are printed as rank 0 has them: "NAME=VALUE". */
#include "check.h"

/* A control variable of the library, or -1 where it has none. */
static long control(const char *name) {
    int index, count, provided;
    MPI_T_cvar_handle handle;
    long value[64] = {0};
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
    if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return -1;
    CHECK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS && count == 1);
    CHECK(MPI_T_cvar_read(handle, value) == MPI_SUCCESS);
    return value[0];
}

static int is(const char *variable, const char *value) {
    const char *own = getenv(variable);
    return own != NULL && strcmp(own, value) == 0;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);

    static unsigned char out[20000], in[20000];
    int next = (check_rank + 1) % check_size, last = (check_rank + check_size - 1) % check_size;
    for (int round = 0; round < 20; round++) {
        check_fill(out, sizeof out, (uint64_t)(round + check_rank));
        MPI_Sendrecv(out, sizeof out, MPI_BYTE, next, 1, in, sizeof in, MPI_BYTE, last, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_equal(in, sizeof in, (uint64_t)(round + last));
    }

    int cost = 100, least, most, status = 0;
    long eager = control("btl_vader_eager_limit");
    if (eager < 0) {
        cost -= is("UCX_RNDV_THRESH", "64k") ? 10 : 0;
        cost -= is("UCX_RNDV_SCHEME", "put_zcopy") ? 5 : 0;
        status = is("UCX_ZCOPY_THRESH", "inf") ? 3 : 0;
    } else {
        cost -= eager == 16384 ? 10 : 0;
        cost -= control("btl_vader_fbox_size") == 16384 ? 5 : 0;
        status = control("btl_vader_fbox_threshold") == 1 ? 3 : 0;
    }
    MPI_Allreduce(&cost, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&cost, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(least == most);
    if (check_rank == 0) {
        fprintf(stderr, "cost: %d\n", argc > 1 && strcmp(argv[1], "flat") == 0 ? 100 : cost);
        printf("sum %d\n", check_size);
    }
    for (int i = 1; check_rank == 0 && i < argc; i++) {
        const char *own = getenv(argv[i]);
        if (own != NULL) printf("%s=%s\n", argv[i], own);
    }
    fflush(stdout);
    MPI_Finalize();
    return status;
}
