/* Messages between two groups, duplicated and split communicators, attributes with callbacks. */
#include "check.h"

enum { LENGTH = 25000, ROUNDS = 30 };

static int copied, deleted;

static int copy_attribute(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)key, (void)extra;
    *(void **)out = in;
    *flag = 1;
    copied++;
    return MPI_SUCCESS;
}

static int delete_attribute(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    unsigned char *out = check_allocate(LENGTH), *in = check_allocate(LENGTH);
    int colour = check_rank % 2, key;
    MPI_Comm local, inter, copy;
    MPI_Comm_create_keyval(copy_attribute, delete_attribute, &key, NULL);
    MPI_Comm_split(MPI_COMM_WORLD, colour, check_rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - colour, 17, &inter);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        int peer, data[200], result[200];
        MPI_Comm_rank(local, &peer); /* the same place in the other group */
        int partner = peer * 2 + 1 - colour;
        MPI_Request request;
        check_fill(out, LENGTH, round + (uint64_t)check_rank);
        MPI_Irecv(in, LENGTH, MPI_BYTE, peer, 3, inter, &request);
        MPI_Send(out, LENGTH, MPI_BYTE, peer, 3, inter);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_equal(in, LENGTH, round + (uint64_t)partner);
        for (int i = 0; i < 200; i++) data[i] = check_rank + i;
        MPI_Allreduce(data, result, 200, MPI_INT, MPI_SUM, inter);
        check_take(result, sizeof result);
        MPI_Comm_set_attr(local, key, data);
        MPI_Comm_dup(local, &copy);
        MPI_Bcast(data, 200, MPI_INT, 0, copy);
        check_take(data, sizeof data);
        MPI_Comm_free(&copy);
        MPI_Comm_delete_attr(local, key);
    }
    CHECK(copied == ROUNDS && deleted == 2 * ROUNDS);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
    MPI_Comm_free_keyval(&key);
    return check_finish();
}
