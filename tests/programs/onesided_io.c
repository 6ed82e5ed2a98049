/* One-sided communication and files: the libraries call their own point-to-point calls inside. */
#include "check.h"

enum { LENGTH = 20000, ROUNDS = 10 };

int main(int argc, char **argv) {
    check_init(&argc, &argv);
    CHECK(argc > 1); /* a directory to write into */
    unsigned char *window_memory, *out = check_allocate(LENGTH), *in = check_allocate(LENGTH);
    MPI_Win window;
    MPI_File file;
    char path[4096];
    int right = (check_rank + 1) % check_size, left = (check_rank + check_size - 1) % check_size;
    MPI_Win_allocate(LENGTH, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window_memory, &window);
    snprintf(path, sizeof path, "%s/data", argv[1]);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        check_fill(out, LENGTH, round + (uint64_t)check_rank);
        MPI_Win_fence(0, window);
        MPI_Put(out, LENGTH, MPI_BYTE, right, 0, LENGTH, MPI_BYTE, window);
        MPI_Win_fence(0, window);
        check_equal(window_memory, LENGTH, round + (uint64_t)left);
        MPI_Get(in, LENGTH, MPI_BYTE, right, 0, LENGTH, MPI_BYTE, window);
        MPI_Win_fence(0, window);
        check_equal(in, LENGTH, round + (uint64_t)check_rank);

        MPI_Offset place = (MPI_Offset)check_rank * LENGTH;
        MPI_File_write_at_all(file, place, out, LENGTH, MPI_BYTE, MPI_STATUS_IGNORE);
        MPI_File_sync(file);
        MPI_Barrier(MPI_COMM_WORLD);
        place = (MPI_Offset)left * LENGTH;
        MPI_File_read_at_all(file, place, in, LENGTH, MPI_BYTE, MPI_STATUS_IGNORE);
        check_equal(in, LENGTH, round + (uint64_t)left);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_File_close(&file);
    MPI_Win_free(&window);
    return check_finish();
}
