/* What the message benchmarks share: their options, their messages and their statistics. */
#ifndef COMMON_H
#define COMMON_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_SIZES = 64 };

/* The message sizes of a run, in bytes. */
struct size_list {
    int count;
    long bytes[MAX_SIZES];
};

enum option_kind { OPTION_NUMBER, OPTION_FLAG, OPTION_CHOICE, OPTION_SIZES };

/* One option of a command line; a table of them ends with a name of NULL. */
struct option_entry {
    const char *name;           /* with its two dashes */
    const char *help;
    enum option_kind kind;
    void *target;               /* long, bool, int (index of the choice) or struct size_list */
    long least, greatest;       /* of numbers and sizes */
    const char *const *choices; /* of a choice; ends with NULL */
};

/* Reads the command line into the targets. On a wrong one process 0 says what is wrong, on --help
   what there is, and then all processes end MPI and the program. */
void read_options(int argc, char **argv, const struct option_entry *options);

/* Ends MPI and the program with a status of 2, after one sentence from process 0. All must call it. */
_Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends all processes with a status of 1, after one sentence from the one that calls it; if all do, from process 0. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The options on how a message lies in memory. */
struct layout {
    int kind; /* LAYOUT_CONTIGUOUS or LAYOUT_VECTOR */
    long block, stride;
};

enum { LAYOUT_CONTIGUOUS, LAYOUT_VECTOR };
extern const char *const layout_names[];

/* A message buffer: `blocks` blocks of `block` bytes, each `stride` bytes after the one before. To be
   sent and received as `count` elements of `type`. */
struct message {
    unsigned char *base;
    size_t blocks, block, stride;
    int count;
    MPI_Datatype type;
};

/* A zeroed message of `bytes` bytes that begins on a page. A size that is no multiple of the block is
   refused. */
struct message make_message(long bytes, const struct layout *layout);
void free_message(struct message *message);

/* Writes each byte of the message, all with the same value. */
void write_message(struct message *message, unsigned char value);
/* Reads each byte of the message. */
void read_message(const struct message *message);
/* The byte at a position of what has that seed. */
unsigned char content_byte(uint64_t seed, uint64_t position);
/* Writes bytes that depend on their position and on `seed`. */
void fill_message(struct message *message, uint64_t seed);
/* Position of the first byte that is not as fill_message wrote it, -1 if there is none. */
long first_wrong_byte(const struct message *message, uint64_t seed);

struct summary {
    double median, mean, deviation, least; /* deviation: the samples' standard deviation */
};

/* Figures of `count` samples (at least 1); sorts a copy. */
struct summary summarise(const double *samples, long count);

/* Memory that begins on a page, or the end of all processes. */
void *allocate(size_t bytes);

/* As often as users' benchmarks do it: `most` times up to 32 KiB, then as often as messages of `volume` bytes
   allow, but at least 10 times. */
long usual_iterations(long most, long volume, long bytes);

/* Prints the fields that every result line has: `"median_seconds": ...` and so on, without braces. */
void print_summary(const struct summary *summary);
/* Prints `, "samples": [...]`. */
void print_samples(const double *samples, long count);
/* Prints `, "mpi_library": "..."`. */
void print_library(void);

#endif
