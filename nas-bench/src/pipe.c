/* pipe: a pipeline of processes, after the program PIPE of C.-P. Wen's thesis (1995).

   The first process makes items; each takes some that have come, computes, and hands them on. The edge to
   the next process holds a limited number, which grants come back for. What the thesis tries on it are
   options: how many items make a message, how many an edge holds, whether the next computation waits until
   the last items have gone, and whether all that is collected goes before a computation. */
#include "mail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAYLOAD = 10 };

/* Items, how many are taken at a time at most, and the units of computation for each. */
static const struct {
    long items, batch, units;
} classes[CLASSES] = {{500, 10, 100}, {100000, 10, 4000}, {400000, 10, 8000}, {1000000, 10, 8000}};

/* An item of some 100 bytes, or a grant of room for so many. */
struct item {
    int64_t number, granted;
    uint64_t payload[PAYLOAD];
};

struct queue {
    struct item *item;
    long begin, count, room;
};

struct stage {
    int processes, rank;
    long items, batch, units, capacity;
    bool pipelined, flush;
    struct queue arrived, leaving;
    long granted, left; /* room on the edge ahead; items that have gone there */
    struct mail *mail;
};

static struct queue make_queue(long room)
{
    return (struct queue){allocate((size_t)room * sizeof(struct item)), 0, 0, room};
}

static void put(struct queue *queue, const struct item *item)
{
    if (queue->count == queue->room)
        fail("more items have come than were granted");
    queue->item[(queue->begin + queue->count++) % queue->room] = *item;
}

static struct item take(struct queue *queue)
{
    struct item item = queue->item[queue->begin];
    queue->begin = (queue->begin + 1) % queue->room;
    queue->count--;
    return item;
}

static void take_items(void *owner, int source, const void *items, long count)
{
    struct stage *stage = owner;
    const struct item *item = items;
    for (long i = 0; i < count; i++) {
        if (source > stage->rank)
            stage->granted += item[i].granted;
        else
            put(&stage->arrived, &item[i]);
    }
}

static struct item make_item(int64_t number)
{
    struct item item = {.number = number};
    for (int i = 0; i < PAYLOAD; i++)
        item.payload[i] = mix((uint64_t)(number * PAYLOAD + i));
    return item;
}

/* Sends the items that are leaving, as far as there is room. */
static void hand_on(struct stage *stage)
{
    while (stage->leaving.count > 0 && stage->granted > 0) {
        struct item item = take(&stage->leaving);
        mail_post(stage->mail, stage->rank + 1, &item);
        stage->granted--;
        stage->left++;
    }
}

/* What is collected goes when there is nothing else to do. */
static void await_mail(struct stage *stage)
{
    mail_flush(stage->mail);
    mail_wait(stage->mail);
}

/* Hands on until at most `most` items are leaving. */
static void await_room(struct stage *stage, long most)
{
    hand_on(stage);
    while (stage->leaving.count > most) {
        await_mail(stage);
        hand_on(stage);
    }
}

static void compute(const struct stage *stage, struct item *item)
{
    static volatile uint64_t sink;
    uint64_t number = item->payload[0];
    for (long i = 0; i < stage->units; i++)
        number = number * 6364136223846793005u + 1442695040888963407u;
    sink = number;
    (void)sink;
}

/* Takes up to a batch of items and returns room for them. */
static long take_batch(struct stage *stage, int64_t done, struct item *batch)
{
    long count = 0, most = stage->batch < stage->items - done ? stage->batch : stage->items - done;
    if (stage->rank == 0) {
        for (; count < most; count++)
            batch[count] = make_item(done + count);
        return count;
    }
    mail_poll(stage->mail);
    while (stage->arrived.count == 0)
        await_mail(stage);
    while (count < most && stage->arrived.count > 0)
        batch[count++] = take(&stage->arrived);
    mail_post(stage->mail, stage->rank - 1, &(struct item){.granted = count});
    return count;
}

/* Processes all items; returns their checksum, 0 if one was wrong or out of order. */
static uint64_t run(struct stage *stage)
{
    struct item *batch = allocate((size_t)stage->batch * sizeof *batch);
    bool last = stage->rank == stage->processes - 1, right = true;
    uint64_t sum = 1;
    for (int64_t done = 0; done < stage->items;) {
        long count = take_batch(stage, done, batch);
        if (stage->flush)
            mail_flush(stage->mail);
        for (long i = 0; i < count; i++) {
            struct item expected = make_item(done + i);
            compute(stage, &batch[i]);
            right = right && memcmp(&batch[i], &expected, sizeof expected) == 0;
            sum = mix(sum ^ batch[i].payload[PAYLOAD - 1]);
        }
        done += count;
        if (last)
            continue;
        /* Those of the batch before must have gone; with pipelining their wait has been while this one was computed. */
        await_room(stage, 0);
        for (long i = 0; i < count; i++)
            put(&stage->leaving, &batch[i]);
        await_room(stage, stage->pipelined ? stage->batch : 0);
    }
    await_room(stage, 0);
    mail_end_phase(stage->mail);
    free(batch);
    return right ? sum : 0;
}

int main(int argc, char **argv)
{
    int class = CLASS_A;
    long aggregate = 10;
    struct stage stage = {.capacity = 15};
    const struct option_entry options[] = {
        CLASS_OPTION(&class),
        {"--aggregate", "items in a message; fewer go when a process is idle", OPTION_NUMBER, &aggregate, 1, 100000,
         NULL},
        {"--capacity", "items that an edge holds", OPTION_NUMBER, &stage.capacity, 1, 1000000, NULL},
        {"--units", "units of computation for an item (0: as the class says)", OPTION_NUMBER, &stage.units, 0,
         100000000, NULL},
        {"--pipelined", "items leave while the next are computed", OPTION_FLAG, &stage.pipelined, 0, 0, NULL},
        {"--flush", "send what is collected before a computation", OPTION_FLAG, &stage.flush, 0, 0, NULL},
        {0}};
    struct outcome outcome = {.program = "PIPE: a pipeline with limited edges", .unit = "items"};

    MPI_Init(&argc, &argv);
    read_options(argc, argv, options);
    stage.processes = process_count();
    stage.rank = process_rank();
    stage.items = classes[class].items;
    stage.batch = classes[class].batch;
    stage.units = stage.units > 0 ? stage.units : classes[class].units;
    stage.granted = stage.capacity;
    stage.arrived = make_queue(stage.capacity);
    stage.leaving = make_queue(2 * stage.batch);
    stage.mail = mail_open(sizeof(struct item), aggregate, take_items, &stage);
    double start = clock_start();
    uint64_t sum = run(&stage);
    outcome.seconds = clock_stop(start);
    outcome.verified = sum != 0 && (stage.rank == stage.processes - 1 || stage.left == stage.items);
    outcome.class = class;
    outcome.operations = (double)stage.items;
    snprintf(outcome.size, sizeof outcome.size, "%ld items of %zu bytes, %ld a message, edges of %ld%s%s", stage.items,
             sizeof(struct item), aggregate, stage.capacity, stage.pipelined ? ", pipelined" : "",
             stage.flush ? ", flushed" : "");
    snprintf(outcome.result, sizeof outcome.result, "checksum %016llx", (unsigned long long)sum);
    free(stage.arrived.item);
    free(stage.leaving.item);
    mail_close(stage.mail);
    return finish(&outcome);
}
