/* Direct copies under load: direct_load WAY. A way that cannot be gone here says so on stderr: "skipped: REASON". */
#define _GNU_SOURCE
#include "direct_exchange.h"
#include <errno.h>
#include <unistd.h>

/* Ten thousand buffers, one after the other, of random sizes; some are sent more often. */
static void churn(void) {
    uint64_t random = 4711;
    for (int round = 0; round < 10000; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t length = 2 * PAGE + (size_t)(random >> 40) % (round % 50 ? 24 * PAGE : LENGTH - 2 * PAGE);
        unsigned char *out = malloc(length);
        CHECK(out != NULL);
        for (int times = round % 8 ? 1 : 5; times > 0; times--) swap_once(out, length);
        free(out);
    }
}

/* The value in kB of a line of a /proc file, from the line that begins with `from` on; -1: there is none. */
static long number_in(const char *path, const char *from, const char *name) {
    char line[512];
    long value = -1;
    int found = from == NULL;
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    while (value < 0 && fgets(line, sizeof line, file) != NULL) {
        if (!found)
            found = strncmp(line, from, strlen(from)) == 0;
        else if (strncmp(line, name, strlen(name)) == 0)
            value = strtol(line + strlen(name), NULL, 10);
    }
    fclose(file);
    return value;
}

/* A number for each position, quickly: positions 8 bytes apart are told from each other. */
static uint64_t word_at(uint64_t stamp, size_t position) { return (position + 1) * 0x9e3779b97f4a7c15u ^ stamp; }

/* One buffer of 1 GiB, from rank 0 to rank 1. */
static void huge_buffer(void) {
    const size_t length = (size_t)1 << 30, words = length / sizeof(uint64_t);
    /* The buffers of both ranks, and what promotion asks for beside. */
    int enough = number_in("/proc/meminfo", NULL, "MemAvailable:") > 7l << 20;
    MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!enough) {
        if (check_rank == 0) fprintf(stderr, "skipped: less than 7 GiB of memory are free\n");
        return;
    }
    unsigned char *room = malloc(length + PAGE);
    CHECK(room != NULL);
    uint64_t *data = (uint64_t *)(room + 24);
    for (uint64_t stamp = 1; stamp <= REPEATS; stamp++) {
        if (check_rank == 0) {
            for (size_t i = 0; i < words; i++) data[i] = word_at(stamp, i);
            MPI_Send(data, (int)length, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        } else {
            memset(data, 0x5a, length);
            MPI_Recv(data, (int)length, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (size_t i = 0; i < words; i++) CHECK(data[i] == word_at(stamp, i));
        }
    }
    free(room);
}

/* Whether the kernel makes huge pages of shared memory when it is asked to (MADV_COLLAPSE, Linux 6.1). */
static int collapses(size_t huge) {
    int file = memfd_create("probe", 0);
    CHECK(file >= 0 && ftruncate(file, (off_t)(2 * huge)) == 0);
    unsigned char *room = mmap(NULL, 3 * huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(room != MAP_FAILED);
    unsigned char *place = room + (huge - (uintptr_t)room % huge) % huge;
    CHECK(mmap(place, 2 * huge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == place);
    memset(place, 1, 2 * huge);
    int done = madvise(place, 2 * huge, 25 /* MADV_COLLAPSE */) == 0;
    munmap(room, 3 * huge);
    close(file);
    return done;
}

/* A buffer in huge pages keeps them. */
static void huge_pages(void) {
    const size_t huge = 2 << 20, length = 8 << 20;
    unsigned char *room = pages(NULL, length + huge);
    unsigned char *out = room + (huge - (uintptr_t)room % huge) % huge;
    madvise(out, length, MADV_HUGEPAGE);
    memset(out, 1, length);
    char address[40];
    snprintf(address, sizeof address, "%lx-", (unsigned long)(uintptr_t)out);
    int usable = number_in("/proc/self/smaps", address, "AnonHugePages:") >= 8 << 10 && collapses(huge);
    MPI_Allreduce(MPI_IN_PLACE, &usable, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!usable) {
        if (check_rank == 0) fprintf(stderr, "skipped: no transparent huge pages, or none of shared memory\n");
        return;
    }
    in = realloc(in, length);
    swap(out, length);
    long private_kb = number_in("/proc/self/smaps", address, "AnonHugePages:");
    long shared_kb = number_in("/proc/self/smaps", address, "ShmemPmdMapped:");
    fprintf(stderr, "huge pages of rank %d: %ld kB private, %ld kB shared\n", check_rank, private_kb, shared_kb);
    swap_once(out, length);
    CHECK(private_kb + shared_kb >= 6 << 10);
    munmap(room, length + huge);
}

int main(int argc, char **argv) {
    static const struct way ways[] = {{"churn", churn}, {"huge-buffer", huge_buffer}, {"huge-pages", huge_pages}};
    CHECK(argc > 1);
    check_init(&argc, &argv);
    CHECK(check_size == 2);
    in = malloc(LENGTH);
    run_way(ways, sizeof ways / sizeof *ways, argv[1]);
    return check_finish();
}
