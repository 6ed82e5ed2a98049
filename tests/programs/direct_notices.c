/* Messages whose senders tell where they lie: direct_notices WAY [MICROSECONDS]. Every byte is checked. */
#define _GNU_SOURCE
#ifndef LENGTH_IN_PAGES
#define LENGTH_IN_PAGES 24
#endif
#include "direct_exchange.h"
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Ways to send. */
enum { SEND, SSEND, RSEND, BSEND, SENDRECV, REPLACE, ISEND, KINDS };
static const char *const kinds[KINDS] = {"send", "ssend", "rsend", "bsend", "sendrecv", "replace", "isend"};

enum { TURNS = 300, SHORT = LENGTH_IN_PAGES <= 4 };

/* So many 24ths of a buffer, in whole pages, but at least one. */
#define PART(n) (((n)*LENGTH_IN_PAGES / 24 > 0 ? (n)*LENGTH_IN_PAGES / 24 : 1) * PAGE)

static void send_as(int kind, unsigned char *out, int length, int tag) {
    int other = 1 - check_rank;
    char none[1];
    MPI_Request request;
    switch (kind) {
    case SEND: MPI_Send(out, length, MPI_BYTE, other, tag, MPI_COMM_WORLD); break;
    case SSEND: MPI_Ssend(out, length, MPI_BYTE, other, tag, MPI_COMM_WORLD); break;
    case RSEND: MPI_Rsend(out, length, MPI_BYTE, other, tag, MPI_COMM_WORLD); break;
    case BSEND: MPI_Bsend(out, length, MPI_BYTE, other, tag, MPI_COMM_WORLD); break;
    case SENDRECV:
        MPI_Sendrecv(out, length, MPI_BYTE, other, tag, none, 0, MPI_BYTE, MPI_PROC_NULL, tag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        break;
    case REPLACE:
        MPI_Sendrecv_replace(out, length, MPI_BYTE, other, tag, MPI_PROC_NULL, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        break;
    default:
        MPI_Isend(out, length, MPI_BYTE, other, tag, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* Rank 0 sends what is there, rank 1 receives it into `in`; a ready send needs the receive to be there. */
static void pass_as_is(unsigned char *out, size_t length, int kind, uint64_t expected) {
    if (check_rank == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        send_as(kind, out, (int)length, 1);
    } else {
        MPI_Request request;
        memset(in, 0x5a, length + 1);
        MPI_Irecv(in, (int)length, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_equal(in, length, expected);
        CHECK(in[length] == 0x5a);
    }
}

/* With other bytes than before; they are overwritten as soon as the send is over. */
static void pass(unsigned char *out, size_t length, int kind) {
    seed += 2;
    check_fill(out, length, seed);
    pass_as_is(out, length, kind, seed);
    memset(out, 0x33, length);
}

/* Messages in both directions at once. */
static void exchange_all(unsigned char *out) {
    int other = 1 - check_rank;
    for (int i = 0; i < TURNS; i++) {
        seed += 2;
        check_fill(out, LENGTH, seed + (uint64_t)check_rank);
        memset(in, 0x5a, LENGTH + 1);
        MPI_Sendrecv(out, LENGTH, MPI_BYTE, other, 1, in, LENGTH, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        memset(out, 0x33, LENGTH);
        check_equal(in, LENGTH, seed + (uint64_t)other);
        CHECK(in[LENGTH] == 0x5a);
    }
    CHECK(munmap(out, LENGTH) == 0);
}

/* Rank 1 sends out of memory that it may share with others, and that is not promoted. */
static void one_sided(void) {
    int kind = check_rank == 1 ? MAP_SHARED : MAP_PRIVATE;
    unsigned char *out = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    CHECK(out != MAP_FAILED);
    exchange_all(out);
}

static void two_sided(void) { exchange_all(pages(NULL, LENGTH)); }

/* All messages in one way. */
static void pass_all(int kind) {
    unsigned char *even = pages(NULL, LENGTH), *odd = pages(NULL, LENGTH), *attached = malloc(LENGTH + MPI_BSEND_OVERHEAD);
    CHECK(attached != NULL);
    MPI_Buffer_attach(attached, LENGTH + MPI_BSEND_OVERHEAD);
    for (int i = 0; i < TURNS; i++)
        if (i % 2)
            pass(odd + 1000, LENGTH - 3000, kind);
        else
            pass(even, LENGTH, kind);
    void *detached;
    int size;
    MPI_Buffer_detach(&detached, &size);
    free(attached);
    CHECK(munmap(even, LENGTH) == 0);
    CHECK(munmap(odd, LENGTH) == 0);
}

/* The kernel's own call, which nobody can follow. */
static void *move(void *from, size_t length, void *to) {
    register long flags __asm__("r10") = MREMAP_MAYMOVE | MREMAP_FIXED;
    register void *target __asm__("r8") = to;
    long result = SYS_mremap;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(from), "S"(length), "d"(length), "r"(flags), "r"(target)
                     : "rcx", "r11", "memory");
    CHECK(result == (long)to);
    return to;
}

static void exchange(unsigned char *one, unsigned char *other, size_t length, unsigned char *room) {
    move(one, length, room);
    move(other, length, one);
    move(room, length, other);
}

/* Two promoted buffers change places, or parts of theirs, before nearly every send. */
static void exchanged(void) {
    unsigned char *one = pages(NULL, LENGTH), *other = pages(NULL, LENGTH), *room = pages(NULL, LENGTH);
    for (int i = 0; i < 4 * REPEATS; i++) pass(i % 2 ? one : other, LENGTH, SEND);
    for (int i = 0; i < TURNS; i++) {
        uint64_t first = seed += 2, second = seed += 2;
        check_fill(one, LENGTH, first);
        check_fill(other, LENGTH, second);
        exchange(one, other, LENGTH, room);
        pass_as_is(one, LENGTH, i % 5 == 0 ? ISEND : SEND, second);
        pass_as_is(other, LENGTH, i % 3 == 0 ? ISEND : SEND, first);
        if (i % 8 == 0) {
            exchange(one, other, PART(5), room);
            pass(one, LENGTH, SEND);
            pass(other, LENGTH, SEND);
            exchange(one, other, PART(5), room);
        }
    }
    munmap(one, LENGTH);
    munmap(other, LENGTH);
    munmap(room, LENGTH);
}

/* Between blocking and nonblocking sends of it, memory becomes other memory. */
static void alternating(void) {
    unsigned char *place = pages(NULL, LENGTH), *out = place + 1000;
    size_t length = LENGTH - 3000;
    for (int round = 0; round < 10 * ROUNDS; round++) {
        for (int i = 0; i < 2 * REPEATS; i++) pass(out, length, i % 3 == 2 ? ISEND : SEND);
        switch (round % 5) {
        case 0:
            CHECK(munmap(place, LENGTH) == 0);
            CHECK(pages(place, LENGTH) == place);
            break;
        case 1: pages(place + PART(8), PART(4)); break;
        case 2: CHECK(madvise(place, LENGTH, MADV_DONTNEED) == 0); break;
        case 3:
            seed += 2;
            check_fill(out, length, seed);
            CHECK(mprotect(place + PART(3), PART(7), PROT_READ) == 0);
            pass_as_is(out, length, round % 2 ? SEND : ISEND, seed);
            CHECK(mprotect(place + PART(3), PART(7), PROT_READ | PROT_WRITE) == 0);
            break;
        default: /* The pages at the ends, which are no whole ones of the message. */
            pages(place, PAGE);
            pages(place + LENGTH - PAGE, PAGE);
        }
        pass(out, length, round % 2 ? SEND : ISEND);
        pass(out, length, round % 2 ? ISEND : SEND);
    }
    CHECK(munmap(place, LENGTH) == 0);
}

/* Where a buffer lay once there is nothing any more: nobody looks there and makes memory of it. */
static void given_back(void) {
    unsigned char *one = pages(NULL, LENGTH), *other = pages(NULL, LENGTH);
    long without = arena();
    for (int i = 0; i < 8 * REPEATS; i++) pass(i < 4 * REPEATS ? one : other, LENGTH, SEND);
    long before = arena() - without;
    CHECK(munmap(one, LENGTH) == 0);
    CHECK(munmap(other, LENGTH) == 0);
    CHECK(pages(other, LENGTH) == other);
    for (int i = 0; i < 8 * REPEATS; i++) pass(other, LENGTH, SEND);
    CHECK(before < 2 * LENGTH || arena() - without < 2 * LENGTH);
    CHECK(munmap(other, LENGTH) == 0);
}

/* Parts of a buffer that was promoted as a whole: nobody asks for their promotion. */
static void parts(void) {
    unsigned char *whole = pages(NULL, LENGTH);
    for (int i = 0; i < REPEATS; i++) pass(whole, LENGTH, SEND);
    for (int i = 0; i < TURNS; i++) {
        pass(whole, LENGTH / 2, SEND);
        pass(whole + 5 * PAGE + 1000, LENGTH / 2, SEND);
    }
    CHECK(munmap(whole, LENGTH) == 0);
}

/* Its middle is promoted first, as a message of its own, then what is behind that, then all: also where malloc gives the
   place of several freed buffers to one. */
static void joined(void) {
    enum { ALL = 24 * PAGE, SOME = 6 * PAGE };
    unsigned char *all = pages(NULL, ALL);
    for (int i = 0; i < 300; i++) pass(all + 8 * PAGE, SOME, SEND);
    for (int i = 0; i < 300; i++) pass(all + 16 * PAGE, SOME, SEND);
    for (int i = 0; i < 3000; i++) pass(all + 100, ALL - 200, SEND);
    CHECK(munmap(all, ALL) == 0);
}

/* Between them so many messages that no notice can show that the sender looks none up any more: short and empty ones, and
   collectives. Meanwhile the memory may become other memory. */
static void interrupted(void) {
    enum { BETWEEN = 600 };
    unsigned char *out = pages(NULL, LENGTH);
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < TURNS / 3; i++) pass(out, LENGTH, SEND);
        for (int i = 0; i < BETWEEN; i++)
            if (round % 3 == 2)
                MPI_Barrier(MPI_COMM_WORLD);
            else if (check_rank == 0)
                MPI_Send(out, round % 3 * 8, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
            else
                MPI_Recv(in, round % 3 * 8, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (round % 2) {
            CHECK(munmap(out, LENGTH) == 0);
            CHECK(pages(out, LENGTH) == out);
        }
    }
    CHECK(munmap(out, LENGTH) == 0);
}

/* More messages than can be shown, each promoted by itself; then one more, again and again. */
static void numerous(void) {
    enum { NUMBER = 300, EACH = SHORT ? 5 * PAGE : 6 * PAGE, SENT = EACH - PAGE };
    unsigned char *all = pages(NULL, (NUMBER + 1) * EACH) + 100;
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < NUMBER; i++) pass(all + i * EACH, SENT, SEND);
    for (int i = 0; i < 10000; i++) pass(all + NUMBER * EACH, SENT, SEND);
    CHECK(munmap(all - 100, (NUMBER + 1) * EACH) == 0);
}

/* Two threads of rank 0 send, from a buffer of their own and then both from the same. */
static pthread_barrier_t barrier;
static unsigned char *same;
static uint64_t same_seed;

static void pass_in_thread(unsigned char *out, unsigned char *back, size_t length, int tag, uint64_t expected) {
    if (check_rank == 0) {
        send_as(tag % 2 ? SSEND : SEND, out, (int)length, tag);
        return;
    }
    memset(back, 0x5a, length);
    MPI_Recv(back, (int)length, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (size_t i = 0; i < length; i++) CHECK(back[i] == check_byte(expected, i));
}

static void *send_in_thread(void *argument) {
    int tag = *(int *)argument;
    size_t length = LENGTH - 100 - (size_t)tag * 5000;
    unsigned char *out = malloc(length), *back = malloc(LENGTH);
    CHECK(out != NULL && back != NULL);
    for (uint64_t round = 0; round < TURNS; round++) {
        uint64_t own = 4 * round + (uint64_t)tag;
        check_fill(out, length, own);
        pass_in_thread(out, back, length, tag, own);
        memset(out, 0x33, length);
        pthread_barrier_wait(&barrier);
        if (tag == 0) {
            same_seed = 4 * round + 2;
            check_fill(same, LENGTH, same_seed);
        }
        pthread_barrier_wait(&barrier);
        pass_in_thread(same, back, LENGTH, tag, same_seed);
        pthread_barrier_wait(&barrier);
    }
    free(out);
    free(back);
    return NULL;
}

static volatile int over;
static void *map_and_unmap(void *argument) {
    (void)argument;
    for (unsigned round = 0; !over; round++) {
        size_t length = (size_t)(1 + round % 30) * PAGE;
        unsigned char *room = pages(NULL, length);
        memset(room, 0x77, length);
        if (round % 3 == 0) {
            unsigned char *wider = mremap(room, length, 2 * length, MREMAP_MAYMOVE);
            CHECK(wider != MAP_FAILED && wider[length] == 0);
            room = wider;
            length *= 2;
        }
        CHECK(munmap(room, length) == 0);
    }
    return NULL;
}

static void threads(void) {
    pthread_t senders[2], mapper;
    int tags[2] = {0, 1};
    same = pages(NULL, LENGTH);
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    CHECK(pthread_create(&mapper, NULL, map_and_unmap, NULL) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&senders[i], NULL, send_in_thread, &tags[i]) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_join(senders[i], NULL) == 0);
    over = 1;
    CHECK(pthread_join(mapper, NULL) == 0);
}

/* More threads than can tell anything, one after the other and at once; each ends with its last send. */
static void *send_some(void *argument) {
    int tag = *(int *)argument;
    unsigned char *out = pages(NULL, LENGTH), *back = malloc(LENGTH);
    for (uint64_t round = 0; round < 3 * REPEATS; round++) {
        check_fill(out, LENGTH, round);
        pass_in_thread(out, back, LENGTH, tag, round);
        memset(out, 0x33, LENGTH);
    }
    CHECK(munmap(out, LENGTH) == 0);
    free(back);
    return NULL;
}

static void crowd(void) {
    enum { CROWD = 20 };
    pthread_t threads[CROWD];
    int tags[CROWD];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CROWD; i++) {
            tags[i] = i;
            CHECK(pthread_create(&threads[i], NULL, send_some, &tags[i]) == 0);
        }
        for (int i = 0; i < CROWD; i++) CHECK(pthread_join(threads[i], NULL) == 0);
        int alone = 0;
        CHECK(pthread_create(&threads[0], NULL, send_some, &alone) == 0);
        CHECK(pthread_join(threads[0], NULL) == 0);
    }
}

/* Rank 0 is killed inside a blocking send, before its message is received. */
static long delay;

static void killed(void) {
    unsigned char *out = pages(NULL, LENGTH);
    long process = getpid();
    for (int i = 0; i < 4 * REPEATS; i++) pass(out, LENGTH, SEND);
    MPI_Bcast(&process, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    seed += 2;
    if (check_rank == 0) {
        check_fill(out, LENGTH, seed);
        MPI_Send(out, LENGTH, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        /* Nobody lets it get here before it is killed. */
        for (;;) pause();
    }
    usleep((useconds_t)delay);
    CHECK(kill((pid_t)process, SIGKILL) == 0);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    memset(in, 0x5a, LENGTH);
    /* An error, or the message, or the launcher ends this process first. */
    if (MPI_Recv(in, LENGTH, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS)
        check_equal(in, LENGTH, seed);
    _exit(3);
}

int main(int argc, char **argv) {
    static const struct way ways[] = {
        {"exchanged", exchanged}, {"alternating", alternating}, {"given_back", given_back}, {"parts", parts}, {"joined", joined}, {"numerous", numerous}, {"interrupted", interrupted}, {"threads", threads}, {"crowd", crowd}, {"one_sided", one_sided}, {"two_sided", two_sided}, {"killed", killed}};
    int provided, wanted = MPI_THREAD_SINGLE;
    CHECK(argc > 1);
    if (argc > 2) delay = strtol(argv[2], NULL, 10);
    if (strcmp(argv[1], "threads") == 0 || strcmp(argv[1], "crowd") == 0) wanted = MPI_THREAD_MULTIPLE;
    CHECK(MPI_Init_thread(&argc, &argv, wanted, &provided) == MPI_SUCCESS && provided >= wanted);
    MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &check_size);
    CHECK(check_size == 2);
    in = malloc(LENGTH + 1);
    CHECK(in != NULL);
    for (int kind = 0; kind < KINDS; kind++)
        if (strcmp(argv[1], kinds[kind]) == 0) {
            pass_all(kind);
            return check_finish();
        }
    run_way(ways, sizeof ways / sizeof *ways, argv[1]);
    return check_finish();
}
