/* What the parts of a running random program share. */
#ifndef PATTERNS_RUN_H
#define PATTERNS_RUN_H

#include "plan.h"

#include <mpi.h>
#include <stdatomic.h>

/* Memory of one buffer, or of several. */
struct area {
    const struct memory *memory;
    size_t length;
    unsigned char *base;
    void *whole;       /* what was got, which has more around it */
    size_t whole_length;
};

/* A buffer: guard bytes, the message's span, guard bytes. */
struct buffer {
    struct area *area;
    size_t offset, length; /* with the guard bytes, which a send buffer does not have */
    size_t lead;           /* guard bytes before the message */
    uint64_t key;          /* of its content; 0: to be written anew */
};

/* One side of a message in this process. */
struct side {
    bool own;              /* this process has this side */
    struct segment *segments;
    int count;
    long span;
    MPI_Datatype type;
    int elements;          /* of the datatype */
    bool type_is_made;
    MPI_Request request;
    struct buffer buffer;
};

struct live_message {
    struct side sent, received;
};

/* An action while its step lasts. */
struct live_action {
    const struct action *action;
    int number;
    int first_tag; /* of MAX_MESSAGES; no other action of the program has them: who runs ahead is not taken for another */
    long executions;
    long received[MAX_RANKS]; /* of a funnel, from each process */
    struct live_message messages[MAX_MESSAGES];
    struct buffer sending, receiving; /* of a collective */
    struct area areas[2 * MAX_MESSAGES + 2];
    int area_count;
};

/* Memory for what is expected. */
struct scratch {
    unsigned char *bytes;
    size_t length;
};

/* One thread of one process. */
struct context {
    const struct plan *plan;
    const struct step *step;
    int step_number, thread, rank, ranks;
    MPI_Comm comm, control; /* of messages, and of the words that announce posted receives */
    struct live_action *actions; /* MAX_ACTIONS of them */
    struct scratch image, packed;
    unsigned char *stack;
    size_t stack_left;
    uint64_t skipped;       /* a bit for each action that is left out */
    uint64_t checksum;
};

/* Options of the command line. */
struct settings {
    bool checks, verbose;
    int steps;                       /* only so many */
    uint64_t skipped[MAX_STEPS];     /* a bit for each action that is left out */
};
extern struct settings settings;

/* content.c */
void write_content(unsigned char *to, uint64_t key, size_t from, size_t length);
unsigned char *room(struct scratch *scratch, size_t length);
/* Position of the first byte in which they differ; `length` if there is none. */
size_t first_difference(const unsigned char *left, const unsigned char *right, size_t length);
uint64_t checksum_of(const unsigned char *bytes, size_t length, uint64_t key);
/* Compares and says what is wrong. */
bool compare(struct context *context, const struct live_action *action, int message, const char *what,
             const unsigned char *found, const unsigned char *expected, size_t length, long base);
/* Says that something is wrong, once for each process and seed. */
void wrong(struct context *context, const struct live_action *action, int message, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
extern atomic_long wrongs;
/* Ends all processes after a sentence: the program cannot go on. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* memory.c */
size_t place_of(const struct memory *memory, size_t length, size_t alignment);
void make_area(struct context *context, struct area *area, const struct memory *memory, size_t length);
/* Gives the memory back and gets it again; what a move keeps is checked first. Its bytes then mean nothing. */
void renew_area(struct context *context, const struct live_action *action, struct area *area);
void free_area(struct area *area);
void free_statics(void);
static inline unsigned char *bytes_of(const struct buffer *buffer)
{
    return buffer->area->base + buffer->offset;
}

/* types.c */
MPI_Datatype basic_type(int element);
void describe_side(struct side *side, const struct layout *layout, long bytes, int element);
void forget_side(struct side *side);
void make_type(struct side *side, const struct layout *layout, long bytes, int element);
void free_type(struct side *side);

/* calls.c: each in SITES instances */
struct envelope {
    void *buffer;
    int count;
    MPI_Datatype type;
    int peer, tag;
    MPI_Comm comm;
};
void send_now(enum send_kind kind, int site, const struct envelope *envelope);
void send_begin(enum send_kind kind, int site, const struct envelope *envelope, MPI_Request *request);
void receive_now(enum receive_kind kind, int site, const struct envelope *envelope, MPI_Status *status);
void receive_begin(enum receive_kind kind, int site, const struct envelope *envelope, MPI_Request *request);
void send_receive(int site, const struct envelope *send, const struct envelope *receive, MPI_Status *status);
void send_receive_replace(int site, const struct envelope *send, int source, MPI_Status *status);
void start(int site, MPI_Request *request);
void start_all(int site, int count, MPI_Request *requests);
void complete(enum completion completion, int site, int count, MPI_Request *requests, MPI_Status *statuses);

/* action.c */
uint64_t key_of(const struct context *context, const struct live_action *action, int message, long version);
void prepare_action(struct context *context, struct live_action *action);
void finish_action(struct live_action *action);
void renew_action(struct context *context, struct live_action *action);
void fill_buffers(struct context *context, struct live_action *action);
void check_sent(struct context *context, struct live_action *action);
/* The buffer of `slot` holds what message `expected` was in that version. */
void check_received(struct context *context, struct live_action *action, int slot, int expected, long version,
                    const MPI_Status *status);
/* Writes what a message contains, packed. */
void pack_expected(const struct context *context, const struct live_action *action, int message, long version, unsigned char *packed);
void make_buffer(struct context *context, struct live_action *action, const struct memory *memory, struct buffer *buffer,
                 size_t length, size_t alignment, bool guarded);
static inline int tag_of(const struct live_action *action, int message)
{
    return action->first_tag + (action->action->kind == FUNNEL ? 0 : message);
}
static inline bool persists(const struct message *message, bool sends)
{
    return sends ? send_persists(message->send) : message->receive == RECV_INIT;
}
struct envelope envelope_of(const struct context *context, const struct live_action *action, int message, bool sends);

/* batch.c, exchange.c, collective.c, fork.c: an execution */
void run_batch(struct context *context, struct live_action *action);
void run_exchange(struct context *context, struct live_action *action);
void run_replace(struct context *context, struct live_action *action);
void run_funnel(struct context *context, struct live_action *action);
void prepare_collective(struct context *context, struct live_action *action);
void run_collective(struct context *context, struct live_action *action);
void run_fork(struct context *context, struct live_action *action);

/* steps.c */
/* Runs the program; gives the seconds that its loops took. */
double run_plan(const struct plan *plan, MPI_Comm comm, uint64_t *checksum);

#endif
