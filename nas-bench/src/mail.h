/* Mail: many small items to any process, collected by destination and sent when enough have come
   together. Messages are received by any-source requests, and what they bring is handed to a function
   of the program. */
#ifndef MAIL_H
#define MAIL_H

#include "workload.h"

/* Is called with `count` items that came together, in the order in which `source` posted them. It may
   post items. */
typedef void mail_handler(void *owner, int source, const void *items, long count);

struct mail;

/* Opens the mail of all processes: items of `item_bytes` bytes, `threshold` of them to a message (1: no
   collecting). All must call it. */
struct mail *mail_open(size_t item_bytes, long threshold, mail_handler *handle, void *owner);
/* Ends it; nothing may be under way. All must call it. */
void mail_close(struct mail *mail);

/* Hands an item on: to this process's own handler at once, to another's when it has received it. */
void mail_post(struct mail *mail, int destination, const void *item);
/* Sends what has been collected, for one destination or for all. */
void mail_flush_to(struct mail *mail, int destination);
void mail_flush(struct mail *mail);
/* Handles the messages that have arrived; true if there was one. */
bool mail_poll(struct mail *mail);
/* Waits for a message and handles it. One must be under way or yet to be sent by another process. */
void mail_wait(struct mail *mail);
/* Sends what has been collected, and returns when all processes have called it and every item has been
   handled. Handlers may not post in the meantime. */
void mail_end_phase(struct mail *mail);

/* Items that this process has posted to others, and received from them. */
uint64_t mail_posted(const struct mail *mail);
uint64_t mail_received(const struct mail *mail);
/* Messages that this process has sent. */
uint64_t mail_messages(const struct mail *mail);

#endif
