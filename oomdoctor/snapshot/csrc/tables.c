/* Columns that grow, and tables of texts, frames and stacks, each of which is kept once. */
#include <stdlib.h>
#include <string.h>

#include "reader.h"

void *grown(void *old, size_t *room, size_t needed, size_t each) {
    size_t more = *room + *room / 2;
    if (needed <= *room) return old;
    if (more < needed) more = needed;
    if (more < 64) more = 64;
    if (more > SIZE_MAX / 2 / each) return NULL;
    void *made = realloc(old, more * each);
    if (made != NULL) *room = more;
    return made;
}

int column_add(Reader *r, int which, const void *bytes, size_t size) {
    Column *column = &r->columns[which];
    if (size > SIZE_MAX / 4 - column->size) return fail(r, NO_MEMORY);
    if (column->size + size > column->room) {
        void *made = grown(column->bytes, &column->room, column->size + size, 1);
        if (made == NULL) return fail(r, NO_MEMORY);
        column->bytes = made;
    }
    if (size) memcpy(column->bytes + column->size, bytes, size);
    column->size += size;
    return 0;
}

static uint64_t mixed(uint64_t one, uint64_t other) {
    one ^= other;
    one *= 0x9E3779B97F4A7C15u;
    return one ^ one >> 29;
}

static uint64_t hash_of(uint64_t seed, const uint8_t *bytes, size_t size) {
    uint64_t found = mixed(seed, size), part;
    for (; size >= 8; bytes += 8, size -= 8) {
        memcpy(&part, bytes, 8);
        found = mixed(found, part);
    }
    part = 0;
    if (size) memcpy(&part, bytes, size);
    return mixed(mixed(found, part), seed);
}

/* Where the entry with a number lies, and how long it is. */
static const uint8_t *entry(Reader *r, int ends, int bytes, size_t each, uint64_t number,
                            size_t *size) {
    const uint64_t *all = (const uint64_t *)(void *)r->columns[ends].bytes;
    uint64_t first = number ? all[number - 1] : 0;
    *size = (size_t)(all[number] - first) * each;
    return (const uint8_t *)r->columns[bytes].bytes + first * each;
}

typedef struct {
    Index *index;
    int ends, bytes;   /* columns; without ends, entries are `each` bytes long */
    size_t each;
} Table;

static const uint8_t *listed(Reader *r, const Table *table, uint64_t number, size_t *size) {
    if (table->ends >= 0)
        return entry(r, table->ends, table->bytes, table->each, number, size);
    *size = table->each;
    return (const uint8_t *)r->columns[table->bytes].bytes + number * table->each;
}

static int widen(Reader *r, const Table *table) {
    Index *index = table->index;
    uint64_t room = index->room ? index->room * 2 : 1024;
    uint32_t *slots = calloc(room, sizeof *slots);
    if (slots == NULL) return fail(r, NO_MEMORY);
    for (uint64_t number = 0; number < index->count; number++) {
        size_t size;
        const uint8_t *bytes = listed(r, table, number, &size);
        uint64_t at = hash_of(r->seed, bytes, size) & (room - 1);
        while (slots[at]) at = (at + 1) & (room - 1);
        slots[at] = (uint32_t)number + 1;
    }
    free(index->slots);
    index->slots = slots;
    index->room = room;
    return 0;
}

/* Return the number of an entry, which is added where there is none yet; -1 for want of memory. */
static int64_t numbered(Reader *r, const Table *table, const uint8_t *bytes, size_t size) {
    Index *index = table->index;
    if (index->count * 2 >= index->room && widen(r, table)) return -1;
    uint64_t at = hash_of(r->seed, bytes, size) & (index->room - 1);
    for (; index->slots[at]; at = (at + 1) & (index->room - 1)) {
        size_t there;
        const uint8_t *other = listed(r, table, index->slots[at] - 1, &there);
        if (there == size && (size == 0 || memcmp(other, bytes, size) == 0))
            return (int64_t)index->slots[at] - 1;
    }
    if (index->count >= (1u << 28) - 1) {
        fail(r, STRANGE);
        return -1;
    }
    if (column_add(r, table->bytes, bytes, size)) return -1;
    if (table->ends >= 0) {
        uint64_t end = r->columns[table->bytes].size / table->each;
        if (column_add(r, table->ends, &end, sizeof end)) return -1;
    }
    index->slots[at] = (uint32_t)++index->count;
    return (int64_t)index->count - 1;
}

int64_t text_number(Reader *r, const uint8_t *bytes, size_t size) {
    Table table = {&r->texts, TEXT_ENDS, TEXT_BYTES, 1};
    return numbered(r, &table, bytes, size);
}

int64_t frame_number(Reader *r, uint64_t name, uint64_t file, uint64_t line) {
    Table table = {&r->frames, -1, FRAME_ROWS, 3 * sizeof(uint64_t)};
    uint64_t row[3] = {name, file, line};
    return numbered(r, &table, (const uint8_t *)row, sizeof row);
}

int64_t stack_number(Reader *r, const Value *frames, uint64_t count) {
    Table table = {&r->stacks, STACK_ENDS, STACK_FRAMES, sizeof(uint32_t)};
    uint32_t few[256], *all = few;
    int64_t found;
    few[0] = 0;
    if (count > 256 && (all = malloc(count * sizeof *all)) == NULL) {
        fail(r, NO_MEMORY);
        return -1;
    }
    for (uint64_t at = 0; at < count; at++) all[at] = (uint32_t)frames[at].value;
    found = numbered(r, &table, (const uint8_t *)all, count * sizeof *all);
    if (all != few) free(all);
    return found;
}

/* Return the place of some words in a short column, -1 where it is full. */
static int64_t among(Reader *r, int which, const uint64_t *words, size_t each, uint64_t most,
                     uint64_t *last) {
    Column *column = &r->columns[which];
    size_t bytes = each * sizeof *words;
    uint64_t count = column->size / bytes;
    if (*last < count && memcmp(column->bytes + *last * bytes, words, bytes) == 0)
        return (int64_t)*last;
    for (uint64_t at = 0; at < count; at++)
        if (memcmp(column->bytes + at * bytes, words, bytes) == 0) return (int64_t)(*last = at);
    if (count >= most) {
        fail(r, STRANGE);
        return -1;
    }
    if (column_add(r, which, words, bytes)) return -1;
    return (int64_t)(*last = count);
}

int64_t pool_number(Reader *r, uint64_t first, uint64_t second) {
    uint64_t pair[2] = {first, second};
    return among(r, POOL_PAIRS, pair, 2, MOST_STREAMS, &r->last_pool);
}

int64_t stream_number(Reader *r, uint64_t stream) {
    return among(r, STREAM_NUMBERS, &stream, 1, MOST_STREAMS, &r->last_stream);
}

int64_t action_number(Reader *r, uint64_t text) {
    uint64_t last = UINT64_MAX;
    return among(r, ACTION_TEXTS, &text, 1, MOST_ACTIONS, &last);
}

int64_t range_number(Reader *r, uint64_t first, uint64_t count) {
    uint64_t row[2] = {first, count};
    if (column_add(r, RANGES, row, sizeof row)) return -1;
    return (int64_t)(r->columns[RANGES].size / sizeof row) - 1;
}
