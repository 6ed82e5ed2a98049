/* circuit: event-driven simulation of a combinational circuit, after the program CSWEC of C.-P. Wen's thesis (1995).

   Gates in layers, each with two inputs from the layer before and a delay of its own. An event is a
   change of a gate's output. The simulation is conservative: a gate goes on to the time up to which it
   knows both its inputs. A gate whose output has not changed for long says so by a null message. */
#include "mail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 2, MOST_DELAY = 4 };

/* Gates in a layer, layers (the first is the circuit's inputs), and changes of each input. */
static const struct {
    long width, layers, changes;
} classes[CLASSES] = {{64, 10, 20}, {512, 32, 200}, {1024, 64, 200}, {2048, 64, 400}};

enum { PERIOD = 16 }; /* mean time between two changes of an input of the circuit */

/* An event or, if the value is -1, a null message: the output stays as it is up to that time. */
struct event {
    int64_t time;
    int32_t value;
};

struct item {
    int32_t gate, input;
    struct event event;
};

/* What comes to an input of a gate: events in the order of their times. */
struct channel {
    struct event *event;
    long begin, count, room;
    int64_t known; /* all that happens up to here has come */
};

struct gate {
    struct channel in[INPUTS];
    int value[INPUTS], output, delay, kind;
    int64_t done, told; /* simulated up to here; what the gates behind know */
    bool queued;
    uint64_t events, trace;
    long fanouts, first_fanout;
};

struct fanout {
    int32_t gate, input;
};

struct circuit {
    int processes, rank;
    long width, layers, begin, columns; /* this process's columns, of every layer */
    int64_t end;
    long null_time;
    struct gate *gate;          /* [layer][column], own columns */
    struct fanout *fanout;
    struct gate **waiting;      /* a ring of gates that may go on */
    long work_begin, work_count, gates, finished;
    struct mail *mail;
};

static uint64_t gate_number(const struct circuit *c, long layer, long column)
{
    return (uint64_t)(layer * c->width + column);
}

/* The column of the gate in the layer before from which an input comes: mostly near. */
static long source_column(const struct circuit *c, long layer, long column, int input)
{
    uint64_t number = gate_number(c, layer, column) * INPUTS + (uint64_t)input;
    if (random_number(1, number) < 0.1)
        return (long)(random_number(2, number) * (double)c->width);
    long near = (long)(random_number(3, number) * 7) - 3;
    return (column + near + c->width) % c->width;
}

static int delay_of(const struct circuit *c, long layer, long column)
{
    return 1 + (int)(random_number(4, gate_number(c, layer, column)) * MOST_DELAY);
}

/* XOR hands on every change, the others some: 0 XOR, 1 NAND, 2 NOR. */
static int kind_of(const struct circuit *c, long layer, long column)
{
    double number = random_number(5, gate_number(c, layer, column));
    return number < 0.4 ? 0 : number < 0.7 ? 1 : 2;
}

static int evaluate(int kind, const int value[INPUTS])
{
    return kind == 0 ? value[0] ^ value[1] : kind == 1 ? !(value[0] & value[1]) : !(value[0] | value[1]);
}

static struct gate *own_gate(const struct circuit *c, long gate)
{
    return &c->gate[gate / c->width * c->columns + gate % c->width - c->begin];
}

static void put_to_work(struct circuit *c, struct gate *gate)
{
    if (gate->queued)
        return;
    gate->queued = true;
    c->waiting[(c->work_begin + c->work_count++) % c->gates] = gate;
}

static void take_event(struct circuit *c, const struct item *item)
{
    struct gate *gate = own_gate(c, item->gate);
    struct channel *in = &gate->in[item->input];
    in->known = item->event.time;
    if (item->event.value >= 0) {
        if (in->count == in->room) {
            struct event *larger = malloc((size_t)(2 * in->room + 4) * sizeof *larger);
            if (larger == NULL)
                fail("no memory for events; use a smaller class");
            for (long i = 0; i < in->count; i++)
                larger[i] = in->event[(in->begin + i) % in->room];
            free(in->event);
            in->event = larger;
            in->begin = 0;
            in->room = 2 * in->room + 4;
        }
        in->event[(in->begin + in->count++) % in->room] = item->event;
    }
    put_to_work(c, gate);
}

static void take_events(void *owner, int source, const void *items, long count)
{
    const struct item *item = items;
    (void)source;
    for (long i = 0; i < count; i++)
        take_event(owner, &item[i]);
}

/* Sends an event or a null message to all gates behind. */
static void send_event(struct circuit *c, struct gate *gate, int64_t time, int value)
{
    gate->told = time;
    for (long i = 0; i < gate->fanouts; i++) {
        struct fanout to = c->fanout[gate->first_fanout + i];
        struct item item = {to.gate, to.input, {time, value}};
        int process = share_owner(c->width, c->processes, to.gate % c->width);
        if (process == c->rank)
            take_event(c, &item);
        else
            mail_post(c->mail, process, &item);
    }
}

static void change_output(struct circuit *c, struct gate *gate, int64_t time, int output)
{
    gate->output = output;
    gate->events++;
    gate->trace = mix(gate->trace ^ mix((uint64_t)time * 2 + (uint64_t)output));
    send_event(c, gate, time, output);
}

/* Simulates a gate as far as its inputs are known. */
static void advance(struct circuit *c, struct gate *gate)
{
    int64_t known = gate->in[0].known < gate->in[1].known ? gate->in[0].known : gate->in[1].known;
    for (;;) {
        int64_t next = INT64_MAX;
        for (int i = 0; i < INPUTS; i++) {
            struct channel *in = &gate->in[i];
            if (in->count > 0 && in->event[in->begin].time < next)
                next = in->event[in->begin].time;
        }
        if (next > known)
            break;
        for (int i = 0; i < INPUTS; i++) {
            struct channel *in = &gate->in[i];
            if (in->count > 0 && in->event[in->begin].time == next) {
                gate->value[i] = in->event[in->begin].value;
                in->begin = (in->begin + 1) % in->room;
                in->count--;
            }
        }
        int output = evaluate(gate->kind, gate->value);
        if (output != gate->output)
            change_output(c, gate, next + gate->delay, output);
    }
    if (known == gate->done)
        return;
    bool last = known >= c->end && gate->done < c->end;
    gate->done = known;
    if (last)
        c->finished++;
    if (known + gate->delay > gate->told && (last || known + gate->delay - gate->told >= c->null_time))
        send_event(c, gate, known + gate->delay, -1);
}

/* Advances the gate that has waited longest. */
static void work(struct circuit *c)
{
    struct gate *gate = c->waiting[c->work_begin];
    c->work_begin = (c->work_begin + 1) % c->gates;
    c->work_count--;
    gate->queued = false;
    advance(c, gate);
}

/* All changes of an input of the circuit, and the word that no more will come. */
static void drive(struct circuit *c, struct gate *gate, long column, long changes)
{
    int64_t time = 0;
    for (long i = 0; i < changes; i++) {
        uint64_t number = (uint64_t)(column * changes + i);
        time += 1 + (int64_t)(random_number(6, number) * (2 * PERIOD - 1));
        change_output(c, gate, time, !gate->output);
    }
    send_event(c, gate, INT64_MAX / 2, -1);
}

/* Goes on until all own gates have come to the end. */
static void simulate(struct circuit *c, long changes)
{
    for (long column = 0; column < c->columns; column++) {
        drive(c, &c->gate[column], c->begin + column, changes);
        while (c->work_count > 0)
            work(c);
        mail_poll(c->mail);
    }
    while (c->finished < c->columns * (c->layers - 1)) {
        if (c->work_count == 0) {
            mail_flush(c->mail);
            mail_wait(c->mail);
            continue;
        }
        work(c);
        if (c->work_count % 16 == 0)
            mail_poll(c->mail);
    }
    mail_end_phase(c->mail);
}

/* The outputs of a layer when nothing changes, from those of the layer before. */
static void settle(const struct circuit *c, long layer, const int *before, int *outputs)
{
    for (long column = 0; column < c->width; column++) {
        int value[INPUTS];
        for (int i = 0; i < INPUTS; i++)
            value[i] = before[source_column(c, layer, column, i)];
        outputs[column] = evaluate(kind_of(c, layer, column), value);
    }
}

typedef bool layer_visitor(struct circuit *c, long layer, const int *before, const int *now);

/* Calls `visit` with each layer's outputs when the inputs have changed that often. */
static bool for_settled(struct circuit *c, long changes, layer_visitor *visit)
{
    int *before = allocate((size_t)c->width * sizeof *before), *now = allocate((size_t)c->width * sizeof *now);
    bool all = true;
    memset(before, 0, (size_t)c->width * sizeof *before);
    for (long column = 0; column < c->width; column++)
        now[column] = (int)(changes % 2);
    for (long layer = 0; layer < c->layers; layer++) {
        if (layer > 0)
            settle(c, layer, before, now);
        all = visit(c, layer, before, now) && all;
        int *swap = before;
        before = now;
        now = swap;
    }
    free(before);
    free(now);
    return all;
}

/* Sets the values of a layer before anything has changed. */
static bool set_layer(struct circuit *c, long layer, const int *before, const int *now)
{
    for (long i = 0; i < c->columns; i++) {
        struct gate *gate = &c->gate[layer * c->columns + i];
        long column = c->begin + i;
        *gate = (struct gate){.output = now[column], .delay = delay_of(c, layer, column),
                              .kind = kind_of(c, layer, column)};
        for (int input = 0; input < INPUTS && layer > 0; input++)
            gate->value[input] = before[source_column(c, layer, column, input)];
    }
    return true;
}

/* Whether the values of a layer are those to which the circuit settles. */
static bool check_layer(struct circuit *c, long layer, const int *before, const int *now)
{
    bool right = true;
    (void)before;
    for (long i = 0; i < c->columns; i++) {
        const struct gate *gate = &c->gate[layer * c->columns + i];
        right = right && gate->output == now[c->begin + i];
        right = right && gate->in[0].count == 0 && gate->in[1].count == 0;
    }
    return right;
}

static void make_circuit(struct circuit *c)
{
    c->begin = share_begin(c->width, c->processes, c->rank);
    c->columns = share_begin(c->width, c->processes, c->rank + 1) - c->begin;
    c->gates = c->layers * c->columns;
    c->gate = allocate((size_t)c->gates * sizeof *c->gate);
    c->waiting = allocate((size_t)c->gates * sizeof *c->waiting);
    c->fanout = allocate((size_t)(c->width * c->layers * INPUTS) * sizeof *c->fanout);
    for_settled(c, 0, set_layer);

    /* Each layer's fanouts, sorted by the gate that they come from: counted first, then placed. */
    long first = 0;
    for (long layer = 0; layer + 1 < c->layers; layer++) {
        struct gate *gates = &c->gate[layer * c->columns];
        for (int pass = 0; pass < 2; pass++) {
            for (long column = 0; column < c->width; column++) {
                for (int input = 0; input < INPUTS; input++) {
                    long source = source_column(c, layer + 1, column, input) - c->begin;
                    if (source < 0 || source >= c->columns)
                        continue;
                    struct gate *gate = &gates[source];
                    if (pass == 1)
                        c->fanout[gate->first_fanout + gate->fanouts] =
                            (struct fanout){(int32_t)gate_number(c, layer + 1, column), input};
                    gate->fanouts++;
                }
            }
            for (long i = 0; i < c->columns && pass == 0; i++) {
                gates[i].first_fanout = first;
                first += gates[i].fanouts;
                gates[i].fanouts = 0;
            }
        }
    }
}

static void free_circuit(struct circuit *c)
{
    for (long i = 0; i < c->gates; i++)
        for (int input = 0; input < INPUTS; input++)
            free(c->gate[i].in[input].event);
    free(c->gate);
    free(c->waiting);
    free(c->fanout);
}

int main(int argc, char **argv)
{
    int class = CLASS_A;
    long aggregate = 32;
    struct circuit c = {.null_time = 2 * PERIOD};
    const struct option_entry options[] = {
        CLASS_OPTION(&class),
        {"--aggregate", "events in a message; fewer go when a process is idle", OPTION_NUMBER, &aggregate, 1, 100000,
         NULL},
        {"--null", "time without a change after which a gate says so", OPTION_NUMBER, &c.null_time, 1, 1000000, NULL},
        {0}};
    struct outcome outcome = {.program = "CIRCUIT: conservative event-driven simulation", .unit = "events"};
    uint64_t sum = 0, events = 0;

    MPI_Init(&argc, &argv);
    read_options(argc, argv, options);
    c.processes = process_count();
    c.rank = process_rank();
    c.width = classes[class].width;
    c.layers = classes[class].layers;
    if (c.processes > c.width)
        refuse("%d processes are too many for %ld gates in a layer; use fewer", c.processes, c.width);
    /* Later than the last change of an input by more than all delays together. */
    c.end = 2 * PERIOD * classes[class].changes + (MOST_DELAY + 1) * c.layers;
    make_circuit(&c);
    c.mail = mail_open(sizeof(struct item), aggregate, take_events, &c);
    double start = clock_start();
    simulate(&c, classes[class].changes);
    outcome.seconds = clock_stop(start);
    outcome.verified = for_settled(&c, classes[class].changes, check_layer);
    for (long layer = 0; layer < c.layers; layer++) {
        for (long i = 0; i < c.columns; i++) {
            const struct gate *gate = &c.gate[layer * c.columns + i];
            sum += mix(gate->trace ^ mix(gate_number(&c, layer, c.begin + i)));
            events += gate->events;
        }
    }
    sum = sum_of_all(sum);
    events = sum_of_all(events);
    outcome.class = class;
    outcome.operations = (double)events;
    snprintf(outcome.size, sizeof outcome.size, "%ld layers of %ld gates, %ld events a message, null after %ld", c.layers,
             c.width, aggregate, c.null_time);
    snprintf(outcome.result, sizeof outcome.result, "%llu events, checksum %016llx", (unsigned long long)events,
             (unsigned long long)sum);
    mail_close(c.mail);
    free_circuit(&c);
    return finish(&outcome);
}
