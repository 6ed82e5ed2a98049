/* windows WAY LENGTH ROUNDS: rank 0 posts LENGTH receives in a loop of their own, lets rank 1 send, and completes them by WAY. So
   all messages are copied in other calls than those that posted them. With "late", rank 1 keeps rank 0 waiting in each round, which
   polls some ten thousand times meanwhile. */
#include "check.h"
#include <unistd.h>

enum { BYTES = 16384, MOST = 512 };

static MPI_Request requests[MOST];

static void complete(const char *way, int length, const unsigned char *token) {
    int index, done, flag = 0, indices[MOST], left = length;
    if (strcmp(way, "wait") == 0) {
        for (int i = 0; i < length; i++) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    } else if (strcmp(way, "waitany") == 0) {
        for (int i = 0; i < length; i++) MPI_Waitany(length, requests, &index, MPI_STATUS_IGNORE);
    } else if (strcmp(way, "waitsome") == 0) {
        for (; left > 0; left -= done) MPI_Waitsome(length, requests, &done, indices, MPI_STATUSES_IGNORE);
    } else if (strcmp(way, "testall") == 0 || strcmp(way, "late") == 0) {
        while (!flag) MPI_Testall(length, requests, &flag, MPI_STATUSES_IGNORE);
    } else if (strcmp(way, "elsewhere") == 0) {
        /* Rank 1 sends the token last, so all has come when it does. */
        MPI_Recv((void *)token, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < length; i++) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    } else {
        MPI_Waitall(length, requests, MPI_STATUSES_IGNORE);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    const char *way = argv[1];
    int length = atoi(argv[2]), rounds = atoi(argv[3]);
    int persistent = strcmp(way, "start") == 0, tokens = strcmp(way, "elsewhere") == 0;
    CHECK(length <= MOST);
    check_init(&argc, &argv);
    unsigned char *data = check_allocate((size_t)BYTES * (size_t)length), token = 1;
    if (persistent && check_rank == 0)
        for (int i = 0; i < length; i++)
            MPI_Recv_init(data + (size_t)i * BYTES, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
    for (int round = 0; round < rounds; round++) {
        if (check_rank == 0) {
            for (int i = 0; i < length; i++) {
                if (persistent)
                    MPI_Start(&requests[i]);
                else
                    MPI_Irecv(data + (size_t)i * BYTES, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
            }
            MPI_Send(&token, 1, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
            complete(way, length, &token);
            for (int i = 0; i < length; i++)
                check_equal(data + (size_t)i * BYTES, BYTES, (uint64_t)(round * length + i));
        } else if (check_rank == 1) {
            for (int i = 0; i < length; i++)
                check_fill(data + (size_t)i * BYTES, BYTES, (uint64_t)(round * length + i));
            MPI_Recv(&token, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (strcmp(way, "late") == 0) usleep(4000);
            for (int i = 0; i < length; i++)
                MPI_Send(data + (size_t)i * BYTES, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
            if (tokens) MPI_Send(&token, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        }
    }
    if (persistent && check_rank == 0)
        for (int i = 0; i < length; i++) MPI_Request_free(&requests[i]);
    free(data);
    return check_finish();
}
