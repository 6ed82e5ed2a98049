/* Random MPI programs: a seed determines all that a program does, and every byte is checked. */
#include "apart.h"
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char help[] =
    "Usage: mpirun -np N patterns SEED | --from A --count N  [OPTION]...\n"
    "  --from A      the first of several seeds\n"
    "  --count N     how many seeds, one after the other\n"
    "  --steps N     only the first N steps of each program\n"
    "  --skip LIST   leave out steps or actions of steps: 2,5.1 is step 2 and action 1 of step 5\n"
    "  --print       print the programs and end; needs no launcher\n"
    "  --time        check nothing, and print the seconds that each program took\n"
    "  --verbose     say when a program begins\n"
    "Example: mpirun -np 6 patterns --from 1 --count 100\n"
    "A program needs as many processes as `--print` says, 6 at most; more stand by.\n";

struct request {
    uint64_t from;
    long count;
    bool prints, times;
};

static _Noreturn void refuse(const char *what, const char *argument)
{
    fprintf(stderr, "patterns: %s%s; --help lists the options\n", argument, what);
    exit(2);
}

static uint64_t number(const char *text)
{
    char *end;
    if (text == NULL || *text < '0' || *text > '9')
        refuse(" is no number", text == NULL ? "nothing" : text);
    uint64_t value = strtoull(text, &end, 10);
    if (*end != '\0')
        refuse(" is no number", text);
    return value;
}

static void read_skipped(const char *list)
{
    const char *text = list;
    while (text != NULL && *text != '\0') {
        char *end;
        unsigned long step = strtoul(text, &end, 10), action = 0;
        bool whole = *end != '.', well = end != text && step < MAX_STEPS;
        if (!whole) {
            text = end + 1;
            action = strtoul(text, &end, 10);
            well = well && end != text && action < MAX_ACTIONS;
        }
        if (!well || (*end != ',' && *end != '\0'))
            refuse(" is no list of steps", list);
        settings.skipped[step] |= whole ? ~(uint64_t)0 : (uint64_t)1 << action;
        text = *end == ',' ? end + 1 : end;
    }
}

static struct request read_options(int argc, char **argv)
{
    struct request request = {0, 1, false, false};
    bool named = false;
    settings = (struct settings){.checks = true, .steps = MAX_STEPS};
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--help") == 0) {
            fputs(help, stdout);
            exit(0);
        } else if (strcmp(name, "--print") == 0) {
            request.prints = true;
        } else if (strcmp(name, "--time") == 0) {
            request.times = true;
            settings.checks = false;
        } else if (strcmp(name, "--verbose") == 0) {
            settings.verbose = true;
        } else if (strcmp(name, "--from") == 0) {
            request.from = number(value);
            named = true;
            i++;
        } else if (strcmp(name, "--count") == 0) {
            request.count = (long)number(value);
            i++;
        } else if (strcmp(name, "--steps") == 0) {
            settings.steps = (int)(number(value) < MAX_STEPS ? number(value) : MAX_STEPS);
            i++;
        } else if (strcmp(name, "--skip") == 0) {
            if (value == NULL)
                refuse(" needs a list", name);
            read_skipped(value);
            i++;
        } else if (name[0] >= '0' && name[0] <= '9') {
            request.from = number(name);
            named = true;
        } else {
            refuse(" is no option", name);
        }
    }
    if (!named)
        refuse("no seed is given", "");
    return request;
}

static bool has_threads(const struct request *request)
{
    for (long i = 0; i < request->count; i++)
        if (seed_has_threads(request->from + (uint64_t)i))
            return true;
    return false;
}

/* Those who take no part wait without taking the others' cores. */
static void gather_all(void)
{
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int done = 0; !done;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done)
            nanosleep(&(struct timespec){0, 300000}, NULL);
    }
}

/* A program's seconds, and how far apart two processes' cores were before and after. */
struct times {
    double seconds, before, after;
};

static void report(const struct plan *plan, bool prints_times, MPI_Comm comm, uint64_t checksum, const struct times *times,
                   long *failed)
{
    int rank;
    long wrong = atomic_exchange(&wrongs, 0), sum = 0;
    uint64_t total = 0;
    double longest = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Allreduce(&wrong, &sum, 1, MPI_LONG, MPI_SUM, comm);
    MPI_Reduce(&checksum, &total, 1, MPI_UINT64_T, MPI_SUM, 0, comm);
    MPI_Reduce(&times->seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, comm);
    *failed += sum > 0;
    if (rank != 0 || sum > 0)
        return;
    if (prints_times)
        printf("seed %llu: %.6f s, cores %.0f and %.0f ns apart\n", (unsigned long long)plan->seed, longest, times->before,
               times->after);
    else
        printf("seed %llu: ok, checksum %016llx\n", (unsigned long long)plan->seed, (unsigned long long)total);
    fflush(stdout);
}

static void run_seed(uint64_t seed, bool prints_times, long *failed)
{
    static struct plan plan;
    int rank, ranks;
    draw_plan(&plan, seed);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < plan.ranks)
        fail("seed %llu needs %d processes; start that many with mpirun -np", (unsigned long long)seed, plan.ranks);
    if (settings.verbose && rank == 0) {
        printf("seed %llu begins\n", (unsigned long long)seed);
        fflush(stdout);
    }
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, rank < plan.ranks ? 0 : MPI_UNDEFINED, rank, &comm);
    struct times times = {0, prints_times ? cores_apart() : 0, 0};
    uint64_t checksum = 0;
    if (comm != MPI_COMM_NULL)
        times.seconds = run_plan(&plan, comm, &checksum);
    times.after = prints_times ? cores_apart() : 0;
    if (comm != MPI_COMM_NULL) {
        report(&plan, prints_times, comm, checksum, &times, failed);
        MPI_Comm_free(&comm);
    }
    gather_all();
}

/* A program that takes all memory by a fault is the first to be ended, before what else runs on the machine. */
static void go_first(void)
{
    FILE *file = fopen("/proc/self/oom_score_adj", "w");
    if (file != NULL) {
        fputs("1000", file);
        fclose(file);
    }
}

int main(int argc, char **argv)
{
    const struct request request = read_options(argc, argv);
    long failed = 0;
    for (long i = 0; request.prints && i < request.count; i++) {
        static struct plan plan;
        draw_plan(&plan, request.from + (uint64_t)i);
        print_plan(&plan);
    }
    if (request.prints)
        return 0;
    go_first();
    int provided, wanted = has_threads(&request) ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, wanted, &provided);
    if (provided < wanted)
        fail("this MPI library has no MPI_THREAD_MULTIPLE, which a seed needs");
    for (long i = 0; i < request.count; i++)
        run_seed(request.from + (uint64_t)i, request.times, &failed);
    MPI_Finalize();
    return failed > 0 ? 1 : 0;
}
