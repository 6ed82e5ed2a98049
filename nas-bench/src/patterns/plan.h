/* The plan of a random program: what every process does, drawn from a seed alone. */
#ifndef PATTERNS_PLAN_H
#define PATTERNS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MAX_RANKS = 6,
    MAX_STEPS = 8,
    MAX_ACTIONS = 5,
    MAX_MESSAGES = 12,
    MAX_THREADS = 3,
    MAX_SEGMENTS = 4096,
    SITES = 6 /* instances of each call, see calls.c */
};

/* Kinds of sends; blocking ones first, then nonblocking, then persistent ones, each in the same order. */
enum send_kind {
    SEND, SSEND, BSEND, RSEND,
    ISEND, ISSEND, IBSEND, IRSEND,
    SEND_INIT, SSEND_INIT, BSEND_INIT, RSEND_INIT,
    SEND_KINDS
};

/* Kinds of receives; those from MPROBE_IMRECV on leave a request. */
enum receive_kind {
    RECV, PROBE_RECV, IPROBE_RECV, MPROBE_MRECV, IMPROBE_MRECV,
    MPROBE_IMRECV, IRECV, RECV_INIT,
    RECEIVE_KINDS
};

/* How the requests of an action are completed. */
enum completion {
    WAIT_FORWARDS, WAIT_BACKWARDS, WAITALL, WAITALL_BY_DIRECTION, WAITANY, WAITSOME,
    TEST_EACH, TESTALL, TESTANY, TESTSOME, STATUS_THEN_WAIT,
    COMPLETIONS
};

/* How a message lies in memory. */
enum layout_kind { CONTIGUOUS, VECTOR, INDEXED, STRUCT, RESIZED, OVERLAPPING, LAYOUTS };

struct layout {
    enum layout_kind kind;
    long block, stride; /* bytes, multiples of the element; of INDEXED and STRUCT the least ones */
    uint64_t key;       /* of the irregular ones' drawing */
};

/* Where memory comes from. */
enum area_kind { HEAP, HEAP_ALIGNED, MAPPED, MAPPED_SHARED, STACK, STATIC, AREA_KINDS };

/* How memory is given back and got again between two executions of an action. */
enum renewal { KEPT, FREED, REMAPPED_IN_PLACE, MOVED, DISCARDED, RENEWALS };

struct message {
    int source, target;
    long bytes;
    int element; /* bytes of the basic datatype */
    enum send_kind send;
    enum receive_kind receive;
    struct layout sent, received;
    int send_site, receive_site;
    bool early;        /* the receive is posted before any send of the action */
    bool any_source, any_tag;
    int buffer;        /* the message of whose send buffer this is a part; its own number: a buffer of its own */
    long offset;       /* where in that buffer */
    long room;         /* by how much the receive is longer than the message */
    bool fresh_type;   /* datatypes are made for each execution and freed while it lasts */
};

enum action_kind { BATCH, EXCHANGE, REPLACE, FUNNEL, COLLECTIVE, FORK, ACTION_KINDS };

enum collective {
    BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, ALLTOALLV,
    IBARRIER, IBCAST, IALLREDUCE, IALLGATHER,
    COLLECTIVES
};

struct memory {
    enum area_kind kind;
    bool together;     /* the buffers of an action and a direction are parts of one area */
    int place;         /* of a buffer: 0 at the start, 1 at the end of pages, else this far behind the start */
    int gap;           /* bytes between buffers of one area */
    enum renewal renewal;
    int period;        /* executions between two renewals */
};

struct action {
    enum action_kind kind;
    bool outer;        /* executed by the outer loop */
    int count;         /* messages */
    struct message messages[MAX_MESSAGES];
    enum completion completions[MAX_RANKS];
    bool startall;
    enum collective meeting; /* before a batch's completion, after a funnel's; BARRIER, ALLREDUCE, or COLLECTIVES for none */
    struct memory sending, receiving;
    int refill;        /* executions with the same content */
    bool wipe;         /* receive buffers are overwritten before each execution */
    int work;          /* rounds of computation before it */
    enum collective collective;
    int root, site;    /* root: also the process that forks */
    long bytes;        /* of a collective, for each process */
};

struct step {
    int outer, inner;  /* iterations of the two nested loops */
    int threads;       /* action a is thread a % threads' */
    int interval;      /* microseconds between signals, 0: none */
    int count;
    struct action actions[MAX_ACTIONS];
};

struct plan {
    uint64_t seed;
    int ranks;
    bool threads;      /* MPI_THREAD_MULTIPLE is needed */
    int count;
    struct step steps[MAX_STEPS];
};

/* A source of random numbers: SplitMix64 (Steele, Lea, Flood 2014). */
struct random { uint64_t state; };
uint64_t draw(struct random *random);
/* A number below `limit`, which is at least 1. */
long draw_below(struct random *random, long limit);
/* Mixes two numbers into one. */
uint64_t mix(uint64_t a, uint64_t b);

/* Whether the programs of a seed use threads: alike for 16 seeds at a time, so that jobs with and without can be made. */
bool seed_has_threads(uint64_t seed);
/* Draws the plan of a seed. */
void draw_plan(struct plan *plan, uint64_t seed);
/* Draws the messages, memory and calls of an action; its kind is given. */
void draw_action(struct random *random, const struct plan *plan, const struct step *step, struct action *action, long limit);
void print_plan(const struct plan *plan);

static inline bool send_blocks(enum send_kind kind) { return kind < ISEND; }
static inline bool send_persists(enum send_kind kind) { return kind >= SEND_INIT; }
/* SEND, SSEND, BSEND or RSEND. */
static inline enum send_kind send_mode(enum send_kind kind) { return kind % 4; }
static inline bool receive_blocks(enum receive_kind kind) { return kind < MPROBE_IMRECV; }

/* A run of bytes of a message. */
struct segment { long offset, length; };
/* The runs in the order in which the message has them; gives their number and, in `span`, the bytes from the buffer's start to the last one's end. */
int find_segments(const struct layout *layout, long bytes, int element, struct segment *segments, long *span);

#endif
