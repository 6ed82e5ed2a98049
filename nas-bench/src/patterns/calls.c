/* The calls, each in several instances: copytune and its kin tell calls apart by their return addresses. */
#include "run.h"

#include <sched.h>

/* Without something that differs after each call, the compiler would make one of them all. */
#define INSTANCE(number, call)                                                                                         \
    case number:                                                                                                       \
        call;                                                                                                          \
        __asm__ volatile("# instance %0" ::"i"(number));                                                              \
        break;
#define EACH_SITE(call)                                                                                                \
    switch (site) {                                                                                                    \
        INSTANCE(0, call)                                                                                              \
        INSTANCE(1, call)                                                                                              \
        INSTANCE(2, call)                                                                                              \
        INSTANCE(3, call)                                                                                              \
        INSTANCE(4, call)                                                                                              \
        INSTANCE(5, call)                                                                                              \
    }
_Static_assert(SITES == 6, "EACH_SITE has as many instances");

#define ENVELOPE(e) (e)->buffer, (e)->count, (e)->type, (e)->peer, (e)->tag, (e)->comm

void send_now(enum send_kind kind, int site, const struct envelope *e)
{
    switch (kind) {
    case SEND: EACH_SITE(MPI_Send(ENVELOPE(e))) break;
    case SSEND: EACH_SITE(MPI_Ssend(ENVELOPE(e))) break;
    case BSEND: EACH_SITE(MPI_Bsend(ENVELOPE(e))) break;
    case RSEND: EACH_SITE(MPI_Rsend(ENVELOPE(e))) break;
    default: fail("send %d does not block", (int)kind);
    }
}

void send_begin(enum send_kind kind, int site, const struct envelope *e, MPI_Request *request)
{
    switch (kind) {
    case ISEND: EACH_SITE(MPI_Isend(ENVELOPE(e), request)) break;
    case ISSEND: EACH_SITE(MPI_Issend(ENVELOPE(e), request)) break;
    case IBSEND: EACH_SITE(MPI_Ibsend(ENVELOPE(e), request)) break;
    case IRSEND: EACH_SITE(MPI_Irsend(ENVELOPE(e), request)) break;
    case SEND_INIT: EACH_SITE(MPI_Send_init(ENVELOPE(e), request)) break;
    case SSEND_INIT: EACH_SITE(MPI_Ssend_init(ENVELOPE(e), request)) break;
    case BSEND_INIT: EACH_SITE(MPI_Bsend_init(ENVELOPE(e), request)) break;
    case RSEND_INIT: EACH_SITE(MPI_Rsend_init(ENVELOPE(e), request)) break;
    default: fail("send %d blocks", (int)kind);
    }
}

static void probe(bool matched, bool waits, int site, const struct envelope *e, MPI_Message *message, MPI_Status *status)
{
    int flag = 0;
    if (waits && matched) {
        EACH_SITE(MPI_Mprobe(e->peer, e->tag, e->comm, message, status))
    } else if (waits) {
        EACH_SITE(MPI_Probe(e->peer, e->tag, e->comm, status))
    } else {
        while (!flag) {
            if (matched) {
                EACH_SITE(MPI_Improbe(e->peer, e->tag, e->comm, &flag, message, status))
            } else {
                EACH_SITE(MPI_Iprobe(e->peer, e->tag, e->comm, &flag, status))
            }
            if (!flag)
                sched_yield();
        }
    }
}

void receive_now(enum receive_kind kind, int site, const struct envelope *e, MPI_Status *status)
{
    MPI_Message message = MPI_MESSAGE_NULL;
    struct envelope probed = *e;
    switch (kind) {
    case RECV:
        EACH_SITE(MPI_Recv(ENVELOPE(e), status))
        break;
    case PROBE_RECV:
    case IPROBE_RECV:
        probe(false, kind == PROBE_RECV, site, e, &message, status);
        probed.peer = status->MPI_SOURCE;
        probed.tag = status->MPI_TAG;
        EACH_SITE(MPI_Recv(ENVELOPE(&probed), status))
        break;
    case MPROBE_MRECV:
    case IMPROBE_MRECV:
        probe(true, kind == MPROBE_MRECV, site, e, &message, status);
        EACH_SITE(MPI_Mrecv(e->buffer, e->count, e->type, &message, status))
        break;
    default:
        fail("receive %d does not block", (int)kind);
    }
}

void receive_begin(enum receive_kind kind, int site, const struct envelope *e, MPI_Request *request)
{
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    switch (kind) {
    case IRECV:
        EACH_SITE(MPI_Irecv(ENVELOPE(e), request))
        break;
    case RECV_INIT:
        EACH_SITE(MPI_Recv_init(ENVELOPE(e), request))
        break;
    case MPROBE_IMRECV:
        probe(true, true, site, e, &message, &status);
        EACH_SITE(MPI_Imrecv(e->buffer, e->count, e->type, &message, request))
        break;
    default:
        fail("receive %d blocks", (int)kind);
    }
}

void send_receive(int site, const struct envelope *s, const struct envelope *r, MPI_Status *status)
{
    EACH_SITE(MPI_Sendrecv(s->buffer, s->count, s->type, s->peer, s->tag, r->buffer, r->count, r->type, r->peer, r->tag,
                           r->comm, status))
}

void send_receive_replace(int site, const struct envelope *s, int source, MPI_Status *status)
{
    EACH_SITE(MPI_Sendrecv_replace(s->buffer, s->count, s->type, s->peer, s->tag, source, s->tag, s->comm, status))
}

void start(int site, MPI_Request *request)
{
    EACH_SITE(MPI_Start(request))
}

void start_all(int site, int count, MPI_Request *requests)
{
    EACH_SITE(MPI_Startall(count, requests))
}

/* Testing and waiting one by one; a request that is only looked at stays. */
static void complete_each(enum completion completion, int site, int count, MPI_Request *requests, MPI_Status *statuses)
{
    for (int k = 0; k < count; k++) {
        int i = completion == WAIT_BACKWARDS ? count - 1 - k : k, flag = 0;
        if (completion == STATUS_THEN_WAIT && requests[i] != MPI_REQUEST_NULL) {
            MPI_Status status;
            EACH_SITE(MPI_Request_get_status(requests[i], &flag, &status))
        }
        flag = 0;
        while (completion == TEST_EACH && !flag) {
            EACH_SITE(MPI_Test(&requests[i], &flag, &statuses[i]))
            if (!flag)
                sched_yield();
        }
        if (completion != TEST_EACH) {
            EACH_SITE(MPI_Wait(&requests[i], &statuses[i]))
        }
    }
}

/* Any or some at a time, until none is active. */
static void complete_any(enum completion completion, int site, int count, MPI_Request *requests, MPI_Status *statuses)
{
    for (;;) {
        int indices[2 * MAX_MESSAGES], done = 0, flag = 1;
        MPI_Status some[2 * MAX_MESSAGES];
        switch (completion) {
        case WAITANY:
            EACH_SITE(MPI_Waitany(count, requests, indices, some))
            break;
        case TESTANY:
            EACH_SITE(MPI_Testany(count, requests, indices, &flag, some))
            break;
        case WAITSOME:
            EACH_SITE(MPI_Waitsome(count, requests, &done, indices, some))
            break;
        default:
            EACH_SITE(MPI_Testsome(count, requests, &done, indices, some))
            flag = done != 0;
            break;
        }
        if (!flag) {
            sched_yield();
            continue;
        }
        if (completion == WAITANY || completion == TESTANY)
            done = indices[0] == MPI_UNDEFINED ? MPI_UNDEFINED : 1;
        if (done == MPI_UNDEFINED)
            return;
        for (int i = 0; i < done; i++)
            statuses[indices[i]] = some[i];
    }
}

void complete(enum completion completion, int site, int count, MPI_Request *requests, MPI_Status *statuses)
{
    int flag = 0;
    switch (completion) {
    case WAITALL:
        EACH_SITE(MPI_Waitall(count, requests, statuses))
        return;
    case WAITALL_BY_DIRECTION:
        /* Sends are in the first half, receives in the second. */
        EACH_SITE(MPI_Waitall(count / 2, requests + count / 2, statuses + count / 2))
        EACH_SITE(MPI_Waitall(count / 2, requests, statuses))
        return;
    case TESTALL:
        while (!flag) {
            EACH_SITE(MPI_Testall(count, requests, &flag, statuses))
            if (!flag)
                sched_yield();
        }
        return;
    case WAITANY:
    case WAITSOME:
    case TESTANY:
    case TESTSOME:
        complete_any(completion, site, count, requests, statuses);
        return;
    default:
        complete_each(completion, site, count, requests, statuses);
        return;
    }
}
