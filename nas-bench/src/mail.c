#include "mail.h"

#include <stdlib.h>
#include <string.h>

/* Receives that are posted at a time. */
enum { WINDOW = 8 };
/* A message of items, and one after which the source sends none in this phase. */
enum { TAG_ITEMS = 1, TAG_LAST };

struct parcel {
    unsigned char *items;
    long count;
    MPI_Request request; /* of the send */
    struct parcel *next; /* on its way, or free */
};

struct mail {
    MPI_Comm comm;
    int processes, rank;
    size_t item_bytes;
    long threshold;
    mail_handler *handle;
    void *owner;
    struct parcel **collecting; /* by destination; NULL if there is nothing */
    struct parcel *sent, *free;
    long parcels;               /* on their way */
    unsigned char *received[WINDOW];
    MPI_Request receives[WINDOW];
    int oldest;                 /* receive: messages match receives in the order in which these were posted */
    int depth;                  /* of handlers */
    int ended;                  /* sources that have ended the phase */
    uint64_t items_posted, items_received, messages;
};

static void post_receive(struct mail *mail, int slot)
{
    MPI_Irecv(mail->received[slot], (int)((size_t)mail->threshold * mail->item_bytes), MPI_BYTE, MPI_ANY_SOURCE,
              MPI_ANY_TAG, mail->comm, &mail->receives[slot]);
}

struct mail *mail_open(size_t item_bytes, long threshold, mail_handler *handle, void *owner)
{
    struct mail *mail = allocate(sizeof *mail);
    *mail = (struct mail){.item_bytes = item_bytes, .threshold = threshold, .handle = handle, .owner = owner};
    MPI_Comm_dup(MPI_COMM_WORLD, &mail->comm);
    mail->processes = process_count();
    mail->rank = process_rank();
    mail->collecting = allocate((size_t)mail->processes * sizeof *mail->collecting);
    for (int p = 0; p < mail->processes; p++)
        mail->collecting[p] = NULL;
    for (int slot = 0; slot < WINDOW; slot++) {
        mail->received[slot] = allocate((size_t)threshold * item_bytes);
        post_receive(mail, slot);
    }
    return mail;
}

/* Takes the parcels that have been sent back to the free ones. */
static void collect_sent(struct mail *mail)
{
    struct parcel **link = &mail->sent;
    while (*link != NULL) {
        struct parcel *parcel = *link;
        int done;
        MPI_Test(&parcel->request, &done, MPI_STATUS_IGNORE);
        if (!done) {
            link = &parcel->next;
            continue;
        }
        *link = parcel->next;
        parcel->next = mail->free;
        mail->free = parcel;
        mail->parcels--;
    }
}

static void await_sent(struct mail *mail)
{
    for (struct parcel *parcel = mail->sent; parcel != NULL; parcel = parcel->next)
        MPI_Wait(&parcel->request, MPI_STATUS_IGNORE);
    collect_sent(mail);
}

static struct parcel *new_parcel(struct mail *mail)
{
    /* A handler cannot wait: what it waited for might be for the caller to handle. */
    long enough = 4L + 2L * mail->processes;
    while (mail->free == NULL) {
        collect_sent(mail);
        if (mail->free != NULL || mail->parcels < enough || mail->depth > 0)
            break;
        mail_poll(mail);
    }
    struct parcel *parcel = mail->free;
    if (parcel != NULL) {
        mail->free = parcel->next;
    } else {
        parcel = allocate(sizeof *parcel);
        parcel->items = allocate((size_t)mail->threshold * mail->item_bytes);
    }
    parcel->count = 0;
    return parcel;
}

static void send_parcel(struct mail *mail, int destination, struct parcel *parcel, int tag)
{
    MPI_Isend(parcel->items, (int)((size_t)parcel->count * mail->item_bytes), MPI_BYTE, destination, tag, mail->comm,
              &parcel->request);
    parcel->next = mail->sent;
    mail->sent = parcel;
    mail->parcels++;
    mail->messages++;
}

void mail_flush_to(struct mail *mail, int destination)
{
    struct parcel *parcel = mail->collecting[destination];
    if (parcel == NULL)
        return;
    mail->collecting[destination] = NULL;
    send_parcel(mail, destination, parcel, TAG_ITEMS);
}

void mail_flush(struct mail *mail)
{
    for (int p = 0; p < mail->processes; p++)
        mail_flush_to(mail, p);
}

void mail_post(struct mail *mail, int destination, const void *item)
{
    if (destination == mail->rank) {
        mail->handle(mail->owner, mail->rank, item, 1);
        return;
    }
    if (mail->collecting[destination] == NULL) {
        /* While it waits for a parcel, a handler may begin one for the same destination. */
        struct parcel *parcel = new_parcel(mail);
        if (mail->collecting[destination] != NULL)
            mail_flush_to(mail, destination);
        mail->collecting[destination] = parcel;
    }
    struct parcel *parcel = mail->collecting[destination];
    memcpy(parcel->items + (size_t)parcel->count * mail->item_bytes, item, mail->item_bytes);
    parcel->count++;
    mail->items_posted++;
    if (parcel->count == mail->threshold)
        mail_flush_to(mail, destination);
}

/* Handles the message of the oldest receive and posts that anew. */
static void handle_oldest(struct mail *mail, const MPI_Status *status)
{
    int slot = mail->oldest, bytes;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    long count = bytes / (long)mail->item_bytes;
    mail->oldest = (slot + 1) % WINDOW;
    if (count > 0) {
        mail->items_received += (uint64_t)count;
        mail->depth++;
        mail->handle(mail->owner, status->MPI_SOURCE, mail->received[slot], count);
        mail->depth--;
    }
    if (status->MPI_TAG == TAG_LAST)
        mail->ended++;
    post_receive(mail, slot);
}

bool mail_poll(struct mail *mail)
{
    bool any = false;
    for (;;) {
        MPI_Status status;
        int arrived;
        MPI_Test(&mail->receives[mail->oldest], &arrived, &status);
        if (!arrived)
            return any;
        any = true;
        handle_oldest(mail, &status);
    }
}

void mail_wait(struct mail *mail)
{
    MPI_Status status;
    MPI_Wait(&mail->receives[mail->oldest], &status);
    handle_oldest(mail, &status);
}

void mail_end_phase(struct mail *mail)
{
    for (int i = 1; i < mail->processes; i++) {
        int destination = (mail->rank + i) % mail->processes;
        struct parcel *parcel = mail->collecting[destination];
        if (parcel == NULL)
            parcel = new_parcel(mail);
        mail->collecting[destination] = NULL;
        send_parcel(mail, destination, parcel, TAG_LAST);
    }
    while (mail->ended < mail->processes - 1)
        mail_wait(mail);
    mail->ended = 0;
    await_sent(mail);
    /* Else the next phase's items could come to a process that is still in this one. */
    MPI_Barrier(mail->comm);
}

static void free_parcels(struct parcel *parcel)
{
    while (parcel != NULL) {
        struct parcel *next = parcel->next;
        free(parcel->items);
        free(parcel);
        parcel = next;
    }
}

void mail_close(struct mail *mail)
{
    await_sent(mail);
    for (int slot = 0; slot < WINDOW; slot++) {
        MPI_Cancel(&mail->receives[slot]);
        MPI_Wait(&mail->receives[slot], MPI_STATUS_IGNORE);
        free(mail->received[slot]);
    }
    free_parcels(mail->free);
    free(mail->collecting);
    MPI_Comm_free(&mail->comm);
    free(mail);
}

uint64_t mail_posted(const struct mail *mail)
{
    return mail->items_posted;
}

uint64_t mail_received(const struct mail *mail)
{
    return mail->items_received;
}

uint64_t mail_messages(const struct mail *mail)
{
    return mail->messages;
}
