/* Two threads initialise a session each at the same moment (MPI 4.0, 11.3), and messages follow. */
#include "check.h"
#include <pthread.h>

enum { LENGTH = 100000, ROUNDS = 40, THREADS = 4 };

static MPI_Session sessions[THREADS];
static pthread_barrier_t barrier;

static void *initialise(void *session) {
    pthread_barrier_wait(&barrier);
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session) == MPI_SUCCESS);
    return NULL;
}

int main(void) {
    MPI_Group group;
    MPI_Comm comm;
    pthread_t threads[THREADS];
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, initialise, &sessions[i]) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    MPI_Group_from_session_pset(sessions[0], "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "copytune-test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_rank(comm, &check_rank);
    MPI_Comm_size(comm, &check_size);
    unsigned char *out = check_allocate(LENGTH), *in = check_allocate(LENGTH);
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        check_fill(out, LENGTH, round + (uint64_t)check_rank);
        MPI_Sendrecv(out, LENGTH, MPI_BYTE, right, 0, in, LENGTH, MPI_BYTE, left, 0, comm, MPI_STATUS_IGNORE);
        check_equal(in, LENGTH, round + (uint64_t)left);
    }
    uint64_t sums[8] = {0};
    CHECK(check_size <= 8);
    MPI_Gather(&check_sum, 1, MPI_UINT64_T, sums, 1, MPI_UINT64_T, 0, comm);
    for (int i = 0; check_rank == 0 && i < check_size; i++)
        printf("rank %d: %016llx\n", i, (unsigned long long)sums[i]);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
    for (int i = 0; i < THREADS; i++) CHECK(MPI_Session_finalize(&sessions[i]) == MPI_SUCCESS);
    return 0;
}
