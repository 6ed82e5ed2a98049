/* The Wait and Test families with real and ignored statuses, null and inactive requests. */
#include "check.h"

enum { COUNT = 6, LENGTH = 6000, ROUNDS = 15, WAYS = 11 };

static unsigned char *out, *in[COUNT];
static MPI_Request requests[COUNT];

/* Completes all COUNT requests; requests[0] may be null. */
static void complete(int way) {
    MPI_Status statuses[COUNT];
    int indices[COUNT], index, flag = 0, done = 0, left = requests[0] == MPI_REQUEST_NULL ? COUNT - 1 : COUNT;
    switch (way) {
    case 0:
        for (int i = 0; i < COUNT; i++) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        break;
    case 1:
        for (int i = COUNT - 1; i >= 0; i--) {
            MPI_Wait(&requests[i], &statuses[i]);
            CHECK(i == 0 || statuses[i].MPI_TAG == i);
        }
        break;
    case 2: MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE); break;
    case 3:
        MPI_Waitall(COUNT, requests, statuses);
        for (int i = 1; i < COUNT; i++) CHECK(statuses[i].MPI_TAG == i);
        break;
    case 4:
        for (; left > 0; left--) {
            MPI_Waitany(COUNT, requests, &index, &statuses[0]);
            CHECK(index >= 0 && index < COUNT && statuses[0].MPI_TAG == index);
        }
        MPI_Waitany(COUNT, requests, &index, MPI_STATUS_IGNORE);
        CHECK(index == MPI_UNDEFINED);
        break;
    case 5:
        while (left > 0) {
            MPI_Waitsome(COUNT, requests, &done, indices, statuses);
            for (int i = 0; i < done; i++) CHECK(statuses[i].MPI_TAG == indices[i]);
            left -= done;
        }
        MPI_Waitsome(COUNT, requests, &done, indices, MPI_STATUSES_IGNORE);
        CHECK(done == MPI_UNDEFINED);
        break;
    case 6:
        for (int i = 0; i < COUNT; i++)
            for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, i % 2 ? &statuses[i] : MPI_STATUS_IGNORE);
        break;
    case 7:
        while (!flag) MPI_Testall(COUNT, requests, &flag, MPI_STATUSES_IGNORE);
        break;
    case 8:
        while (!flag) MPI_Testall(COUNT, requests, &flag, statuses);
        for (int i = 1; i < COUNT; i++) CHECK(statuses[i].MPI_TAG == i);
        break;
    case 9:
        while (left > 0) {
            MPI_Testany(COUNT, requests, &index, &flag, &statuses[0]);
            if (flag) {
                CHECK(index != MPI_UNDEFINED && statuses[0].MPI_TAG == index);
                left--;
            }
        }
        break;
    default:
        while (left > 0) {
            MPI_Testsome(COUNT, requests, &done, indices, MPI_STATUSES_IGNORE);
            left -= done;
        }
    }
    for (int i = 0; i < COUNT; i++) CHECK(requests[i] == MPI_REQUEST_NULL);
}

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    out = check_allocate(LENGTH * COUNT);
    for (int i = 0; i < COUNT; i++) in[i] = check_allocate(LENGTH);
    for (uint64_t round = 0; round < ROUNDS; round++)
        for (int way = 0; way < WAYS; way++) {
            uint64_t seed = round * WAYS + (uint64_t)way;
            int first = way % 2; /* half of the rounds keep request 0 null */
            requests[0] = MPI_REQUEST_NULL;
            if (check_rank == 0) {
                for (int i = first; i < COUNT; i++)
                    MPI_Irecv(in[i], LENGTH, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
                complete(way);
                for (int i = first; i < COUNT; i++) check_equal(in[i], LENGTH, seed + (uint64_t)i);
            } else if (check_rank == 1) {
                for (int i = COUNT - 1; i >= first; i--) {
                    check_fill(out, LENGTH, seed + (uint64_t)i);
                    MPI_Send(out, LENGTH, MPI_BYTE, 0, i, MPI_COMM_WORLD);
                }
            }
        }
    /* Nothing to wait for: empty arrays, null and inactive requests give the empty status. */
    MPI_Status status;
    int flag = 0, index = 7;
    MPI_Request null = MPI_REQUEST_NULL, inactive;
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    MPI_Waitany(0, NULL, &index, &status);
    CHECK(index == MPI_UNDEFINED);
    MPI_Wait(&null, &status);
    CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
    MPI_Test(&null, &flag, &status);
    CHECK(flag);
    MPI_Recv_init(in[0], LENGTH, MPI_BYTE, check_rank, 1, MPI_COMM_WORLD, &inactive);
    MPI_Wait(&inactive, &status);
    CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && inactive != MPI_REQUEST_NULL);
    MPI_Request_get_status(inactive, &flag, MPI_STATUS_IGNORE);
    CHECK(flag);
    MPI_Request_free(&inactive);
    CHECK(inactive == MPI_REQUEST_NULL);
    return check_finish();
}
