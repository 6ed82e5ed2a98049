/* Rank 0 prints the variables that are named, its own and those of its parent, which started it: "own NAME=VALUE",
 * "parent NAME=VALUE", with nothing behind the sign where there is none. With "exit N" before the names the program ends with that
 * status, with "raise N" by that signal. Messages go round before, so that there is something to learn. */
#include "check.h"
#include <signal.h>
#include <unistd.h>

static char parent[1 << 20];
static size_t parent_length;

static const char *of_parent(const char *name) {
    size_t length = strlen(name);
    for (const char *at = parent; at < parent + parent_length; at += strlen(at) + 1)
        if (strncmp(at, name, length) == 0 && at[length] == '=') return at + length + 1;
    return "";
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);

    static unsigned char out[20000], in[20000];
    int next = (check_rank + 1) % check_size, last = (check_rank + check_size - 1) % check_size;
    for (int round = 0; round < 50; round++) {
        check_fill(out, sizeof out, (uint64_t)(round + check_rank));
        MPI_Sendrecv(out, sizeof out, MPI_BYTE, next, 1, in, sizeof in, MPI_BYTE, last, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_equal(in, sizeof in, (uint64_t)(round + last));
    }

    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)getppid());
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    parent_length = fread(parent, 1, sizeof parent - 1, file);
    CHECK(parent_length > 0);
    fclose(file);

    const char *end = NULL;
    int number = 0, first = 1;
    if (argc > 2 && (strcmp(argv[1], "exit") == 0 || strcmp(argv[1], "raise") == 0)) {
        end = argv[1];
        number = atoi(argv[2]);
        first = 3;
    }
    for (int i = first; check_rank == 0 && i < argc; i++) {
        const char *own = getenv(argv[i]);
        printf("own %s=%s\n", argv[i], own ? own : "");
        printf("parent %s=%s\n", argv[i], of_parent(argv[i]));
    }
    fflush(stdout);
    MPI_Finalize();
    if (end != NULL && strcmp(end, "raise") == 0) raise(number);
    return end != NULL ? number : 0;
}
