/* puzzle: solutions of triangular peg solitaire, after the program Tripuzzle of C.-P. Wen's thesis (1995).

   A breadth-first search over boards: all boards with the same number of pegs are in a hash table
   that is spread over the processes, with the number of ways to reach each. The boards that follow are
   sent to the processes whose part of the next table they belong in, one or many to a message. */
#include "mail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MOVES = 128 };

/* Rows, the hole that is empty at first, the pegs at which to stop, the number of ways to get there (modulo 2**64)
   and of boards on the way. Class S is the known puzzle with 15 holes; tests/puzzle_rules.rs counts all of them by
   the rules alone. */
static const struct {
    int rows, row, column, last_pegs;
    uint64_t solutions, boards;
} classes[CLASSES] = {
    {5, 0, 0, 1, 29760, 3015},
    {6, 0, 0, 1, 43419942138, 291986},
    {7, 4, 2, 16, 116706792420, 8913088},
    {7, 4, 2, 14, 13858518894294, 23612102},
};

struct entry {
    uint64_t ways;
    uint32_t board; /* 0: the place is empty */
    uint32_t unused;
};

struct table {
    struct entry *entry;
    uint64_t mask, count;
};

struct search {
    int processes, moves;
    uint32_t from_and_over[MOST_MOVES], to[MOST_MOVES];
    struct table now, next;
    struct mail *mail;
};

static struct table make_table(uint64_t places)
{
    struct table table = {allocate(places * sizeof *table.entry), places - 1, 0};
    memset(table.entry, 0, places * sizeof *table.entry);
    return table;
}

static void add_ways(struct table *table, uint32_t board, uint64_t ways)
{
    if (2 * table->count > table->mask) {
        struct table larger = make_table(2 * (table->mask + 1));
        for (uint64_t i = 0; i <= table->mask; i++)
            if (table->entry[i].board != 0)
                add_ways(&larger, table->entry[i].board, table->entry[i].ways);
        free(table->entry);
        *table = larger;
    }
    /* Other bits choose the process. */
    uint64_t place = mix(board) & table->mask;
    while (table->entry[place].board != 0 && table->entry[place].board != board)
        place = (place + 1) & table->mask;
    if (table->entry[place].board == 0)
        table->count++;
    table->entry[place].board = board;
    table->entry[place].ways += ways;
}

static void insert_boards(void *owner, int source, const void *items, long count)
{
    struct search *search = owner;
    const struct entry *item = items;
    (void)source;
    for (long i = 0; i < count; i++)
        add_ways(&search->next, item[i].board, item[i].ways);
}

static int hole(int row, int column)
{
    return row * (row + 1) / 2 + column;
}

static void find_moves(struct search *search, int rows)
{
    static const int direction[6][2] = {{0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, -1}};
    for (int row = 0; row < rows; row++) {
        for (int column = 0; column <= row; column++) {
            for (int d = 0; d < 6; d++) {
                int to_row = row + 2 * direction[d][0], to_column = column + 2 * direction[d][1];
                if (to_row < 0 || to_row >= rows || to_column < 0 || to_column > to_row)
                    continue;
                int over = hole(row + direction[d][0], column + direction[d][1]);
                search->from_and_over[search->moves] = UINT32_C(1) << hole(row, column) | UINT32_C(1) << over;
                search->to[search->moves++] = UINT32_C(1) << hole(to_row, to_column);
            }
        }
    }
}

static int process_of(const struct search *search, uint32_t board)
{
    return (int)((mix(board) >> 40) % (uint64_t)search->processes);
}

/* Sends all boards that follow from this process's boards; returns how many those are. */
static uint64_t expand(struct search *search)
{
    uint64_t moves = 0;
    for (uint64_t i = 0; i <= search->now.mask; i++) {
        const struct entry *entry = &search->now.entry[i];
        for (int m = 0; entry->board != 0 && m < search->moves; m++) {
            uint32_t taken = search->from_and_over[m], put = search->to[m];
            if ((entry->board & taken) != taken || (entry->board & put) != 0)
                continue;
            uint32_t board = (entry->board & ~taken) | put;
            mail_post(search->mail, process_of(search, board), &(struct entry){entry->ways, board, 0});
            moves++;
        }
    }
    mail_end_phase(search->mail);
    return moves;
}

int main(int argc, char **argv)
{
    int class = CLASS_A;
    long aggregate = 64;
    const struct option_entry options[] = {
        CLASS_OPTION(&class),
        {"--aggregate", "boards in a message", OPTION_NUMBER, &aggregate, 1, 100000, NULL},
        {0}};
    struct search search = {0};
    struct outcome outcome = {.program = "PUZZLE: breadth-first search with a distributed hash table", .unit = "moves"};
    uint64_t solutions = 0, boards = 0, moves = 0;

    MPI_Init(&argc, &argv);
    read_options(argc, argv, options);
    search.processes = process_count();
    int rows = classes[class].rows, holes = hole(rows, 0);
    uint32_t first = ((UINT32_C(1) << holes) - 1) & ~(UINT32_C(1) << hole(classes[class].row, classes[class].column));
    find_moves(&search, rows);
    search.now = make_table(1024);
    search.next = make_table(1024);
    search.mail = mail_open(sizeof(struct entry), aggregate, insert_boards, &search);
    if (process_of(&search, first) == process_rank())
        add_ways(&search.now, first, 1);
    double start = clock_start();
    for (int pegs = holes - 1; pegs > classes[class].last_pegs; pegs--) {
        moves += expand(&search);
        struct table done = search.now;
        search.now = search.next;
        search.next = done;
        memset(done.entry, 0, (done.mask + 1) * sizeof *done.entry);
        search.next.count = 0;
        boards += search.now.count;
    }
    outcome.seconds = clock_stop(start);
    for (uint64_t i = 0; i <= search.now.mask; i++)
        solutions += search.now.entry[i].ways;
    solutions = sum_of_all(solutions);
    boards = sum_of_all(boards);
    outcome.verified = solutions == classes[class].solutions && boards == classes[class].boards;
    outcome.class = class;
    outcome.operations = (double)sum_of_all(moves);
    snprintf(outcome.size, sizeof outcome.size, "%d rows, from %d pegs to %d, %ld boards a message", rows, holes - 1,
             classes[class].last_pegs, aggregate);
    snprintf(outcome.result, sizeof outcome.result, "%llu ways, %llu boards", (unsigned long long)solutions,
             (unsigned long long)boards);
    mail_close(search.mail);
    free(search.now.entry);
    free(search.next.entry);
    return finish(&outcome);
}
