/* Regions that a program marks (include/copytune.h), in one of the ways that the first argument names. With -DWITH_MPI it is an MPI
 * program, else there is no MPI. */

#include "../../include/copytune.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#ifdef WITH_MPI
#include <mpi.h>
#endif

static void answer(const char *what, int value)
{
    printf("%s: %d\n", what, value);
}

/* So many MPI calls, if this is an MPI program. */
static void call(int times)
{
    for (int i = 0; i < times; i++) {
#ifdef WITH_MPI
        MPI_Barrier(MPI_COMM_SELF);
#endif
    }
}

/* Everything in the wrong order, with the answers. */
static void errors(void)
{
    char too_long[200];
    memset(too_long, 'a', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = 0;
    answer("no name", copytune_region(NULL));
    answer("empty name", copytune_region(""));
    answer("long name", copytune_region(too_long));
    answer("two lines", copytune_region("a\nb"));
    int region = copytune_region("region");
    answer("found again", copytune_region("region") == region);
    answer("begin of none", copytune_begin(region + 1));
    answer("end of none", copytune_end(-1));
    answer("drop of none", copytune_drop(0));
    answer("begin of a great number", copytune_begin(2147483647));
    answer("end first", copytune_end(region));
    answer("drop first", copytune_drop(region));
    answer("no choices", copytune_variable(region, "v", 0, NULL));
    answer("less than none", copytune_variable(region, "v", -1, NULL));
    answer("too many choices", copytune_variable(region, "v", 1025, NULL));
    const char *const names[] = {"a", NULL};
    answer("a choice without a name", copytune_variable(region, "v", 2, names));
    const char *const twins[] = {"a", "a"};
    answer("two of one name", copytune_variable(region, "v", 2, twins));
    answer("variable", copytune_variable(region, "v", 3, NULL));
    answer("variable again", copytune_variable(region, "v", 3, NULL));
    answer("another of that name", copytune_variable(region, "v", 4, NULL));
    answer("choice of none", copytune_choice(region, 1));
    answer("choice below", copytune_choice(region, -1));
    answer("choice elsewhere", copytune_choice(99, 0));
    answer("begin", copytune_begin(region));
    answer("begin twice", copytune_begin(region));
    answer("variable inside", copytune_variable(region, "w", 3, NULL));
    answer("cost below 0", copytune_end_with(region, -1.0));
    answer("end after that", copytune_end(region));
    answer("variable afterwards", copytune_variable(region, "w", 3, NULL));
    int added = 0, refused = 0;
    for (int i = 0; i < 1000; i++) {
        char name[20];
        snprintf(name, sizeof name, "region %d", i);
        int got = copytune_region(name);
        added += got > 0;
        refused += got == COPYTUNE_TOO_MANY;
    }
    answer("regions", added);
    answer("refused", refused);
    int crowded = copytune_region("region 0");
    for (int i = 0; i < 20; i++) {
        char name[20];
        snprintf(name, sizeof name, "variable %d", i);
        int got = copytune_variable(crowded, name, 2, NULL);
        if (got < 0) {
            answer("variables", i);
            answer("one more", got);
            break;
        }
    }
}

/* From now on the library gets no memory, or it does again (tests/programs/failing_malloc.c). */
static void deny_memory(int deny)
{
    union {
        void *object;
        void (*function)(int);
    } found;
    found.object = dlsym(RTLD_DEFAULT, "failing_from_now");
    if (found.object)
        found.function(deny);
}

/* The functions for programs that were compiled with headers of these versions. */
static void versions(void)
{
    union {
        void *object;
        const struct copytune_functions *(*function)(int);
    } found;
    found.object = dlsym(RTLD_DEFAULT, "copytune_functions");
    for (int version = -1; version <= 3; version++)
        printf("version %d: %s\n", version, found.object && found.function(version) ? "there" : "none");
}

/* So many executions whose costs the program gives: best with choice "5" of 8 and "two" of 3. The mean cost of the last tenth. */
static void tuned(int executions)
{
    static const char *const names[] = {"zero", "one", "two"};
    int region = copytune_region("valley");
    int a = copytune_variable(region, "a", 8, NULL);
    int b = copytune_variable(region, "b", 3, names);
    unsigned seed = 1;
    double sum = 0;
    int counted = 0;
    for (int i = 0; i < executions; i++) {
        if (i == executions - executions / 4)
            deny_memory(1);
        copytune_begin(region);
        double x = copytune_choice(region, a) - 5, y = copytune_choice(region, b) - 2;
        double cost = 100 + 4 * x * x + 10 * y * y;
        if (i >= executions - executions / 10) {
            sum += cost;
            counted++;
        }
        seed = seed * 1103515245 + 12345;
        cost *= 1 + 0.02 * ((seed >> 16 & 0x7fff) / 32768.0 - 0.5);
        if (copytune_end_with(region, cost * 1e-6) < 0)
            printf("an error\n");
    }
    deny_memory(0);
    printf("mean cost %.1f\n", counted ? sum / counted : 0.0);
}

/* The same, and MPI calls mark the executions, more of them or fewer by what is chosen; how many there were. */
static void by_calls(int executions, int calls)
{
    int region = copytune_region_by_calls("turns");
    int a = copytune_variable(region, "a", 8, NULL), b = copytune_variable(region, "b", 3, NULL);
    unsigned seed = 1;
    double sum = 0;
    int counted = 0, untold = 0;
    for (int i = 0; i < executions; i++) {
        double x = copytune_choice(region, a) - 5;
        call(calls);
        double y = copytune_choice(region, b) - 2;
        call(calls * copytune_choice(region, b));
        double cost = 100 + 4 * x * x + 10 * y * y;
        if (i >= executions - executions / 10) {
            sum += cost;
            counted++;
        }
        seed = seed * 1103515245 + 12345;
        cost *= 1 + 0.02 * ((seed >> 16 & 0x7fff) / 32768.0 - 0.5);
        untold += copytune_end_with(region, cost * 1e-6) != 0;
    }
    printf("mean cost %.1f\nuntold %d\n", counted ? sum / counted : 0.0, untold);
    answer("begin", copytune_begin(region));
    answer("end", copytune_end(region));
    answer("drop", copytune_drop(region));
    answer("otherwise", copytune_region("turns"));
    answer("variable afterwards", copytune_variable(region, "c", 2, NULL));
}

static int turning;

static void *read_only(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100000; i++) {
        int choice = copytune_choice(turning, 0);
        if (choice < 0 || choice > 3)
            printf("choice %d\n", choice);
    }
    answer("told elsewhere", copytune_end_with(turning, 1.0));
    return NULL;
}

static void *turn(void *turns)
{
    for (int i = 0; i < (int)(long)turns; i++) {
        copytune_choice(turning, 0);
        call(1);
    }
    return NULL;
}

/* One thread executes the region, others read; when it ends, another one goes on. */
static void threads_by_calls(void)
{
    turning = copytune_region_by_calls("turning");
    copytune_variable(turning, "v", 4, NULL);
    answer("told too early", copytune_end_with(turning, 1.0));
    call(1);
    pthread_t thread;
    for (long turns = 100; turns <= 200; turns += 100) {
        pthread_create(&thread, NULL, turn, (void *)turns);
        pthread_join(thread, NULL);
    }
    copytune_choice(turning, 0);
    call(1);
    pthread_create(&thread, NULL, read_only, NULL);
    for (int i = 0; i < 1000; i++) {
        copytune_choice(turning, 0);
        call(1);
    }
    pthread_join(thread, NULL);
}

static int shared_region;
static long busy, done;

static void *execute(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20000; i++) {
        int begun = copytune_begin(shared_region);
        int choice = copytune_choice(shared_region, 0);
        if (choice < 0 || choice > 3)
            printf("choice %d\n", choice);
        if (begun == 0) {
            int ended = copytune_end(shared_region);
            if (ended)
                printf("end %d\n", ended);
            __atomic_add_fetch(&done, 1, __ATOMIC_RELAXED);
        } else if (begun == COPYTUNE_BUSY) {
            __atomic_add_fetch(&busy, 1, __ATOMIC_RELAXED);
        } else {
            printf("begin %d\n", begun);
        }
    }
    return NULL;
}

/* Many threads, one region. */
static void threads(void)
{
    pthread_t threads[4];
    shared_region = copytune_region("shared");
    copytune_variable(shared_region, "v", 4, NULL);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, execute, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("all: %ld\n", done + busy);
    /* A thread that ends inside a region does not take it with it for ever where its successor has its words; the library must only not
     * break. */
    copytune_begin(shared_region);
    printf("afterwards: %d\n", copytune_end(shared_region));
}

static unsigned char source[1 << 20], target[1 << 20];

static void *copies_of_one(void *number)
{
    static unsigned char own[4][65536 + 64];
    unsigned char *to = own[(long)number];
    for (int i = 0; i < 3000; i++) {
        size_t bytes = 4096 + (size_t)i * 17 % 61440, from = (size_t)i % 61;
        memset(to, 0, bytes + 1);
        if (copytune_memcpy(to, source + from, bytes) != to || memcmp(to, source + from, bytes) || to[bytes])
            printf("a wrong copy of %zu bytes\n", bytes);
    }
    return NULL;
}

/* Copies of all lengths, at several places and by several threads. */
static void copies(void)
{
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)(i * 2654435761u >> 13);
    for (size_t bytes = 0; bytes < sizeof source - 64; bytes = bytes * 3 / 2 + 1) {
        for (int i = 0; i < 30; i++) {
            memset(target, 0, bytes + 1);
            if (copytune_memcpy(target, source + i, bytes) != target || memcmp(target, source + i, bytes) || target[bytes])
                printf("a wrong copy of %zu bytes\n", bytes);
        }
    }
    for (int i = 0; i < 3000; i++)
        copytune_memcpy(target, source, 262144);
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, copies_of_one, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("copied\n");
}

/* A region that is timed alone, and one whose choices are timed by copytune. */
static void timed(int executions)
{
    int phase = copytune_region("phase"), work = copytune_region("work");
    int variant = copytune_variable(work, "variant", 2, NULL);
    volatile double sum = 0;
    copytune_begin(phase);
    for (int i = 0; i < executions; i++) {
        copytune_begin(work);
        int rounds = copytune_choice(work, variant) ? 1000 : 4000;
        for (int j = 0; j < rounds; j++)
            sum += j;
        copytune_end(work);
    }
    copytune_end(phase);
    printf("timed\n");
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : 0;
    /* From here on the processor's counter may not be read: what does is ended by a signal. */
    if (strcmp(way, "without the counter") == 0 && prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0) return 1;
    int before = copytune_region("before");
    copytune_begin(before);
    copytune_end(before);
#ifdef WITH_MPI
    int provided;
    int level = strcmp(way, "threads by calls") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, level, &provided);
#endif
    if (strcmp(way, "errors") == 0)
        errors();
    else if (strcmp(way, "tuned") == 0 || strcmp(way, "without the counter") == 0)
        tuned(number);
    else if (strcmp(way, "by calls") == 0)
        by_calls(number, argc > 3 ? atoi(argv[3]) : 1);
    else if (strcmp(way, "threads by calls") == 0)
        threads_by_calls();
    else if (strcmp(way, "threads") == 0)
        threads();
    else if (strcmp(way, "copies") == 0)
        copies();
    else if (strcmp(way, "timed") == 0)
        timed(number);
    else if (strcmp(way, "version") == 0)
        printf("version %d\n", copytune_version());
    else if (strcmp(way, "versions") == 0)
        versions();
    /* The ABI as this compiler sees it. */
    else if (strcmp(way, "layout") == 0)
        printf("%zu %zu %zu %zu %zu %zu %zu %zu %zu %zu %zu\n", sizeof(struct copytune_functions),
               offsetof(struct copytune_functions, version), offsetof(struct copytune_functions, region),
               offsetof(struct copytune_functions, variable), offsetof(struct copytune_functions, begin),
               offsetof(struct copytune_functions, choice), offsetof(struct copytune_functions, end),
               offsetof(struct copytune_functions, end_with), offsetof(struct copytune_functions, drop),
               offsetof(struct copytune_functions, memcpy), offsetof(struct copytune_functions, region_by_calls));
#ifdef WITH_MPI
    MPI_Finalize();
#endif
    return 0;
}
