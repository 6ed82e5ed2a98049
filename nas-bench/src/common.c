#include "common.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const layout_names[] = {"contiguous", "vector", NULL};

/* What the messages of this file begin with. */
static const char *program = "nas-bench";

static int own_rank(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static void say(const char *format, va_list arguments)
{
    /* One write, so that the lines of several processes do not mix. */
    char sentence[300];
    vsnprintf(sentence, sizeof sentence, format, arguments);
    fprintf(stderr, "%s: %s\n", program, sentence);
}

_Noreturn void refuse(const char *format, ...)
{
    if (own_rank() == 0) {
        va_list arguments;
        va_start(arguments, format);
        say(format, arguments);
        va_end(arguments);
    }
    MPI_Finalize();
    exit(2);
}

/* Waits, without MPI, which may be what has failed. */
static void wait_milliseconds(long milliseconds)
{
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000}, NULL);
}

_Noreturn void fail(const char *format, ...)
{
    enum { FIRST = 2000, HANDED_ON = 300 };
    /* What all find out at the same time, process 0 says, and ends the others while they wait. */
    if (own_rank() != 0)
        wait_milliseconds(FIRST);
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    /* Launchers may drop what they have not handed on when a process ends all. */
    wait_milliseconds(HANDED_ON);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

void *allocate(size_t bytes)
{
    const size_t page = 4096;
    void *memory = aligned_alloc(page, (bytes + page) / page * page);
    if (memory == NULL)
        fail("no memory for %zu bytes; use smaller messages, fewer iterations or a smaller class", bytes);
    return memory;
}

/* A whole number with an optional K or M (binary); false if the text is none or out of the bounds. */
static bool read_number(const char *text, const char **end, const struct option_entry *option, long *number)
{
    char *after;
    errno = 0;
    long value = strtol(text, &after, 10);
    if (after == text || errno != 0)
        return false;
    int shift = *after == 'K' ? 10 : *after == 'M' ? 20 : 0;
    if (shift != 0)
        after++;
    *end = after;
    if (value < option->least || value > option->greatest >> shift)
        return false;
    *number = value << shift;
    return *number >= option->least;
}

static bool read_sizes(const char *text, const struct option_entry *option)
{
    struct size_list *sizes = option->target;
    sizes->count = 0;
    for (;;) {
        if (sizes->count == MAX_SIZES || !read_number(text, &text, option, &sizes->bytes[sizes->count]))
            return false;
        sizes->count++;
        if (*text == '\0')
            return true;
        if (*text++ != ',')
            return false;
    }
}

static bool read_choice(const char *text, const struct option_entry *option)
{
    for (int i = 0; option->choices[i] != NULL; i++) {
        if (strcmp(text, option->choices[i]) == 0) {
            *(int *)option->target = i;
            return true;
        }
    }
    return false;
}

static bool read_value(const char *text, const struct option_entry *option)
{
    const char *end = text;
    switch (option->kind) {
    case OPTION_NUMBER:
        return read_number(text, &end, option, option->target) && *end == '\0';
    case OPTION_CHOICE:
        return read_choice(text, option);
    case OPTION_SIZES:
        return read_sizes(text, option);
    case OPTION_FLAG:
        break;
    }
    return false;
}

static const char *allowed_values(const struct option_entry *option)
{
    static char text[160];
    if (option->kind == OPTION_CHOICE) {
        text[0] = '\0';
        for (int i = 0; option->choices[i] != NULL; i++) {
            strncat(text, i == 0 ? "" : ", ", sizeof text - strlen(text) - 1);
            strncat(text, option->choices[i], sizeof text - strlen(text) - 1);
        }
    } else {
        snprintf(text, sizeof text, "%ld to %ld%s", option->least, option->greatest,
                 option->kind == OPTION_SIZES ? ", several separated by commas" : "");
    }
    return text;
}

static _Noreturn void help(const struct option_entry *options)
{
    if (own_rank() == 0) {
        printf("Usage: mpirun -np N %s [OPTION VALUE]...\n", program);
        for (; options->name != NULL; options++) {
            printf("  %-13s %s", options->name, options->help);
            if (options->kind != OPTION_FLAG)
                printf(" (%s)", allowed_values(options));
            putchar('\n');
        }
        puts("Numbers may end in K or M (times 1024, 1024 * 1024).");
    }
    MPI_Finalize();
    exit(0);
}

void read_options(int argc, char **argv, const struct option_entry *options)
{
    program = argv[0];
    for (int i = 1; i < argc; i++) {
        const struct option_entry *option = options;
        if (strcmp(argv[i], "--help") == 0)
            help(options);
        while (option->name != NULL && strcmp(argv[i], option->name) != 0)
            option++;
        if (option->name == NULL)
            refuse("%s is no option; --help lists them", argv[i]);
        if (option->kind == OPTION_FLAG) {
            *(bool *)option->target = true;
            continue;
        }
        if (i + 1 == argc)
            refuse("%s needs a value: %s", argv[i], allowed_values(option));
        i++;
        if (!read_value(argv[i], option))
            refuse("%s cannot be %s; use %s", option->name, argv[i], allowed_values(option));
    }
}

struct message make_message(long bytes, const struct layout *layout)
{
    struct message message = {.blocks = 1, .block = (size_t)bytes, .stride = (size_t)bytes,
                              .count = (int)bytes, .type = MPI_BYTE};
    if (layout->kind == LAYOUT_VECTOR) {
        if (bytes % layout->block != 0)
            refuse("--bytes %ld is no multiple of --block %ld", bytes, layout->block);
        if (layout->stride < layout->block)
            refuse("--stride %ld is less than --block %ld", layout->stride, layout->block);
        message.blocks = (size_t)(bytes / layout->block);
        message.block = (size_t)layout->block;
        message.stride = (size_t)layout->stride;
        message.count = 1;
        MPI_Type_vector((int)message.blocks, (int)layout->block, (int)layout->stride, MPI_BYTE, &message.type);
        MPI_Type_commit(&message.type);
    }
    message.base = allocate(message.blocks * message.stride);
    memset(message.base, 0, message.blocks * message.stride);
    return message;
}

void free_message(struct message *message)
{
    free(message->base);
    if (message->type != MPI_BYTE)
        MPI_Type_free(&message->type);
}

void write_message(struct message *message, unsigned char value)
{
    for (size_t b = 0; b < message->blocks; b++)
        memset(message->base + b * message->stride, value, message->block);
}

void read_message(const struct message *message)
{
    static volatile unsigned char sink;
    unsigned char sum = 0;
    for (size_t b = 0; b < message->blocks; b++) {
        const unsigned char *block = message->base + b * message->stride;
        for (size_t i = 0; i < message->block; i++)
            sum = (unsigned char)(sum + block[i]);
    }
    sink = sum;
    (void)sink;
}

/* The byte at a position of the message. The multiplier is odd and irregular, so that misplaced,
   repeated and stale bytes differ from the right ones nearly everywhere. */
unsigned char content_byte(uint64_t seed, uint64_t position)
{
    uint64_t mixed = (seed * 0x100000001b3u + position + 1) * 0x9e3779b97f4a7c15u;
    return (unsigned char)(mixed >> 56);
}

void fill_message(struct message *message, uint64_t seed)
{
    for (size_t b = 0; b < message->blocks; b++)
        for (size_t i = 0; i < message->block; i++)
            message->base[b * message->stride + i] = content_byte(seed, b * message->block + i);
}

long first_wrong_byte(const struct message *message, uint64_t seed)
{
    for (size_t b = 0; b < message->blocks; b++)
        for (size_t i = 0; i < message->block; i++)
            if (message->base[b * message->stride + i] != content_byte(seed, b * message->block + i))
                return (long)(b * message->block + i);
    return -1;
}

static int compare_samples(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

struct summary summarise(const double *samples, long count)
{
    struct summary summary = {0};
    double *sorted = allocate((size_t)count * sizeof *sorted);
    double squares = 0;
    memcpy(sorted, samples, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_samples);
    for (long i = 0; i < count; i++)
        summary.mean += samples[i] / (double)count;
    for (long i = 0; i < count; i++)
        squares += (samples[i] - summary.mean) * (samples[i] - summary.mean);
    summary.median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
    summary.deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
    summary.least = sorted[0];
    free(sorted);
    return summary;
}

void print_summary(const struct summary *summary)
{
    printf("\"median_seconds\": %.9e, \"mean_seconds\": %.9e, \"deviation_seconds\": %.9e, \"least_seconds\": %.9e",
           summary->median, summary->mean, summary->deviation, summary->least);
}

void print_samples(const double *samples, long count)
{
    printf(", \"samples\": [");
    for (long i = 0; i < count; i++)
        printf("%s%.9e", i == 0 ? "" : ", ", samples[i]);
    printf("]");
}

void print_library(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(text, &length);
    printf(", \"mpi_library\": \"");
    /* The first line, as far as a JSON string can hold it as it is. */
    for (const char *c = text; *c != '\0' && *c != '\n' && *c != ','; c++)
        putchar(*c < ' ' || *c == '"' || *c == '\\' ? ' ' : *c);
    printf("\"");
}

long usual_iterations(long most, long volume, long bytes)
{
    enum { FEW = 10, SHORT_BYTES = 32768 };
    if (bytes <= SHORT_BYTES)
        return most;
    long fit = volume / bytes;
    return fit < FEW ? FEW : fit < most ? fit : most;
}
