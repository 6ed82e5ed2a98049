#include "workload.h"

#include "apart.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const class_names[] = {"S", "W", "A", "B", NULL};

/* How far apart the cores were before the clock started first, if that is asked for. */
static double apart_before;

static bool asks_apart(void)
{
    const char *asked = getenv("NAS_APART");
    return asked != NULL && strcmp(asked, "0") != 0;
}

int process_rank(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int process_count(void)
{
    int count;
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    return count;
}

/* The name and version of the MPI library: its own text up to the first comma or the end of the line. */
static void library_name(char *name)
{
    int length;
    MPI_Get_library_version(name, &length);
    name[strcspn(name, ",\n")] = '\0';
    for (; *name != '\0'; name++)
        if (*name < ' ')
            *name = ' ';
}

int finish(const struct outcome *outcome)
{
    int verified = outcome->verified;
    double apart_after = asks_apart() ? cores_apart() : 0;
    MPI_Allreduce(MPI_IN_PLACE, &verified, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (process_rank() == 0) {
        char library[MPI_MAX_LIBRARY_VERSION_STRING];
        double seconds = outcome->seconds > 0 ? outcome->seconds : 1e-9;
        library_name(library);
        printf("%s\n  Class:           %s\n  Size:            %s\n", outcome->program, class_names[outcome->class],
               outcome->size);
        printf("  Processes:       %d\n  MPI library:     %s\n  Time in seconds: %.6f\n", process_count(), library,
               outcome->seconds);
        printf("  Rate:            %.4g million %s/s\n  Result:          %s\n", outcome->operations / seconds / 1e6,
               outcome->unit, outcome->result);
        if (apart_before > 0)
            printf("  Cores apart:     %.0f and %.0f ns\n", apart_before, apart_after);
        printf("  Verification: %s\n", verified ? "successful" : "failed");
        fflush(stdout);
    }
    MPI_Finalize();
    return verified ? 0 : 1;
}

double clock_start(void)
{
    static bool started;
    if (!started && asks_apart())
        apart_before = cores_apart();
    started = true;
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
}

double clock_stop(double start)
{
    double seconds = MPI_Wtime() - start;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

long share_begin(long total, int processes, int process)
{
    long rest = total % processes;
    return total / processes * process + (process < rest ? process : rest);
}

int share_owner(long total, int processes, long thing)
{
    long least = total / processes, rest = total % processes;
    long longer = rest * (least + 1);
    return (int)(thing < longer ? thing / (least + 1) : rest + (thing - longer) / least);
}

/* The finaliser of splitmix64 (Steele, Lea and Flood, 2014), whose constants are published. */
uint64_t mix(uint64_t number)
{
    number += 0x9e3779b97f4a7c15u;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
    number = (number ^ number >> 27) * 0x94d049bb133111ebu;
    return number ^ number >> 31;
}

double random_number(uint64_t seed, uint64_t index)
{
    return (double)(mix(mix(seed) + index) >> 11) * 0x1p-53;
}

uint64_t bits_of(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

uint64_t sum_of_all(uint64_t number)
{
    MPI_Allreduce(MPI_IN_PLACE, &number, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return number;
}
