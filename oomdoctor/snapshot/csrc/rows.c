/* What becomes of a dictionary or list that is put somewhere: rows of the columns. */
#include <string.h>

#include "reader.h"

#define STRANGE_HERE(r) return fail((r), STRANGE)

/* The values of a dictionary by the known words that are its keys. */
typedef struct {
    Value at[W_COUNT];
    uint64_t has;
} Known;

static int has(const Known *known, int word) { return (int)(known->has >> word & 1); }

static void look(const Container *dictionary, Known *known) {
    known->has = 0;
    for (uint64_t at = 0; at + 1 < dictionary->count; at += 2) {
        uint64_t word = dictionary->items[at].value;
        if (word < W_COUNT) {
            known->at[word] = dictionary->items[at + 1];
            known->has |= (uint64_t)1 << word;
        }
    }
}

static int whole(Reader *r, const Known *known, int word, int needed, uint64_t *found) {
    if (!has(known, word)) {
        if (needed) STRANGE_HERE(r);
        return 0;
    }
    if (known->at[word].tag != WHOLE) STRANGE_HERE(r);
    *found = known->at[word].value;
    return 0;
}

/* The number of a stack, one more than it is; 0 stands for no frames. */
static int stack_of(Reader *r, const Known *known, uint64_t *found) {
    *found = 0;
    if (!has(known, W_FRAMES)) return 0;
    switch (known->at[W_FRAMES].tag) {
    case STACK: *found = known->at[W_FRAMES].value + 1; return 0;
    case EMPTY:
    case NONE: return 0;
    default: STRANGE_HERE(r);
    }
}

/* The number of a pool, one more than it is; 0 stands for none said. */
static int pool_of(Reader *r, const Known *known, int word, uint64_t *found) {
    *found = 0;
    if (!has(known, word) || known->at[word].tag == NONE) return 0;
    if (known->at[word].tag != POOL) STRANGE_HERE(r);
    *found = known->at[word].value + 1;
    return 0;
}

static int event_row(Reader *r, const Known *known) {
    uint64_t address = 0, size = 0, stream = 0, time = 0, stack, pool, note = W_NOTHING;
    int free_only;
    int64_t action, streams;
    if (known->at[W_ACTION].tag != TEXT) STRANGE_HERE(r);
    free_only = known->at[W_ACTION].value == W_OOM || known->at[W_ACTION].value == W_SNAPSHOT;
    if (whole(r, known, free_only ? W_DEVICE_FREE : W_ADDR, !free_only, &address)) return -1;
    if (whole(r, known, W_SIZE, 1, &size) || whole(r, known, W_STREAM, 0, &stream)) return -1;
    if (has(known, W_TIME) && known->at[W_TIME].tag == WHOLE) time = known->at[W_TIME].value;
    if (time >> 63) time = 0;
    if (stack_of(r, known, &stack) || pool_of(r, known, W_POOL_ID, &pool)) return -1;
    if (has(known, W_NOTE) && known->at[W_NOTE].tag != NONE) {
        if (known->at[W_NOTE].tag != TEXT) STRANGE_HERE(r);
        note = known->at[W_NOTE].value;
    }
    if ((action = action_number(r, known->at[W_ACTION].value)) < 0) return -1;
    if ((streams = stream_number(r, stream)) < 0) return -1;
    uint8_t action8 = (uint8_t)action;
    uint16_t stream16 = (uint16_t)streams, pool16 = (uint16_t)pool;
    uint32_t stack32 = (uint32_t)stack, note32 = (uint32_t)note;
    r->has_notes |= note != W_NOTHING;
    r->events++;
    return column_add(r, EVENT_ACTION, &action8, 1) || column_add(r, EVENT_ADDRESS, &address, 8) ||
           column_add(r, EVENT_SIZE, &size, 8) || column_add(r, EVENT_STREAM, &stream16, 2) ||
           column_add(r, EVENT_POOL, &pool16, 2) || column_add(r, EVENT_STACK, &stack32, 4) ||
           column_add(r, EVENT_TIME, &time, 8) || column_add(r, EVENT_NOTE, &note32, 4);
}

static int block_row(Reader *r, const Known *known) {
    uint64_t row[6] = {0, 0, 0, 0, 0, 0}; /* has an address, address, size, requested, state, stack */
    const uint64_t *older;
    row[0] = (uint64_t)has(known, W_ADDRESS);
    if (whole(r, known, W_ADDRESS, 0, &row[1]) || whole(r, known, W_SIZE, 1, &row[2])) return -1;
    if (known->at[W_STATE].tag != TEXT) STRANGE_HERE(r);
    row[4] = known->at[W_STATE].value;
    row[3] = row[2];
    if (has(known, W_HISTORY) && known->at[W_HISTORY].tag == HISTORY) {
        const uint64_t *ranges = (const uint64_t *)(void *)r->columns[RANGES].bytes;
        older = (const uint64_t *)(void *)r->columns[HISTORY_ROWS].bytes;
        older += ranges[2 * known->at[W_HISTORY].value] * 2;
        row[3] = older[0];
        row[5] = older[1];
    } else if (has(known, W_HISTORY) && known->at[W_HISTORY].tag != EMPTY) {
        STRANGE_HERE(r);
    } else if (stack_of(r, known, &row[5])) {
        return -1;
    }
    if (whole(r, known, W_REQUESTED_SIZE, 0, &row[3])) return -1;
    return column_add(r, BLOCK_ROWS, row, sizeof row);
}

static int segment_row(Reader *r, const Known *known) {
    /* device, address, size, stream, kind (0 not said, 1 small, 2 other), expandable, pool, first
       block, blocks */
    uint64_t row[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0};
    if (whole(r, known, W_DEVICE, 0, &row[0]) || whole(r, known, W_ADDRESS, 1, &row[1]) ||
        whole(r, known, W_TOTAL_SIZE, 1, &row[2]) || whole(r, known, W_STREAM, 0, &row[3]) ||
        pool_of(r, known, W_SEGMENT_POOL_ID, &row[6]))
        return -1;
    if (has(known, W_SEGMENT_POOL_ID) && row[6] == 0) STRANGE_HERE(r);
    if (has(known, W_SEGMENT_TYPE) && known->at[W_SEGMENT_TYPE].tag != NONE) {
        if (known->at[W_SEGMENT_TYPE].tag != TEXT) STRANGE_HERE(r);
        row[4] = known->at[W_SEGMENT_TYPE].value == W_SMALL ? 1 : 2;
    }
    if (has(known, W_IS_EXPANDABLE)) {
        if (known->at[W_IS_EXPANDABLE].tag != TRUTH) STRANGE_HERE(r);
        row[5] = known->at[W_IS_EXPANDABLE].value;
    }
    if (known->at[W_BLOCKS].tag == BLOCKS) {
        const uint64_t *ranges = (const uint64_t *)(void *)r->columns[RANGES].bytes;
        row[7] = ranges[2 * known->at[W_BLOCKS].value];
        row[8] = ranges[2 * known->at[W_BLOCKS].value + 1];
    } else if (known->at[W_BLOCKS].tag != EMPTY) {
        STRANGE_HERE(r);
    }
    return column_add(r, SEGMENT_ROWS, row, sizeof row);
}

static int note_row(Reader *r, const Known *known) {
    uint64_t row[4] = {0, 0, 0, 0}; /* stage, name, device, time */
    if (!has(known, W_NAME) || known->at[W_NAME].tag != TEXT) STRANGE_HERE(r);
    if (known->at[W_STAGE].tag != TEXT) STRANGE_HERE(r);
    row[0] = known->at[W_STAGE].value;
    row[1] = known->at[W_NAME].value;
    if (whole(r, known, W_DEVICE, 1, &row[2]) || whole(r, known, W_TIME, 1, &row[3])) return -1;
    return column_add(r, NOTE_ROWS, row, sizeof row);
}

static int history_row(Reader *r, const Known *known) {
    uint64_t row[2] = {0, 0}; /* bytes asked for, stack */
    if (whole(r, known, W_REAL_SIZE, 1, &row[0]) || stack_of(r, known, &row[1])) return -1;
    return column_add(r, HISTORY_ROWS, row, sizeof row);
}

static int is_frame(const Known *known) {
    return has(known, W_FILENAME) && has(known, W_NAME) && has(known, W_LINE);
}

static int64_t known_frame(Reader *r, const Known *known) {
    const Value *name = &known->at[W_NAME], *file = &known->at[W_FILENAME];
    const Value *line = &known->at[W_LINE];
    if (name->tag != TEXT || file->tag != TEXT || line->tag != WHOLE) return fail(r, STRANGE);
    return frame_number(r, name->value, file->value, line->value);
}

int as_frame(Reader *r, uint32_t number, Value *found) {
    Known known;
    look(&r->containers[number], &known);
    if (!is_frame(&known) || has(&known, W_ACTION)) STRANGE_HERE(r);
    int64_t frame = known_frame(r, &known);
    if (frame < 0) return -1;
    found->tag = FRAME;
    found->value = (uint64_t)frame;
    return 0;
}

/* Return what a list is when it is put somewhere; it is gone then, unless it is a loose one. */
static int list_value(Reader *r, uint32_t number, Value *found) {
    Container *list = &r->containers[number];
    int64_t named;
    uint32_t tag = list->rows;
    if (tag == OPEN) return 0;
    if (tag == 0) {
        found->tag = EMPTY;
        let_go(r, number, (uint32_t)EMPTY << 28);
        return 0;
    }
    if (tag == FRAME) {
        if ((named = stack_number(r, list->items, list->count)) < 0) return -1;
        found->tag = STACK;
        found->value = (uint64_t)named;
        let_go(r, number, (uint32_t)STACK << 28 | (uint32_t)named);
        return 0;
    }
    if ((named = range_number(r, list->first, list->count)) < 0) return -1;
    found->tag = tag;
    found->value = (uint64_t)named;
    let_go(r, number, (uint32_t)GONE << 28);
    return 0;
}

static size_t row_size(uint32_t rows) {
    return rows == BLOCKS ? 48 : rows == SEGMENTS ? 72 : rows == NOTES ? 32 : 16;
}

static uint64_t row_count(Reader *r, uint32_t rows) {
    int which = rows == BLOCKS     ? BLOCK_ROWS
                : rows == SEGMENTS ? SEGMENT_ROWS
                : rows == NOTES    ? NOTE_ROWS
                                   : HISTORY_ROWS;
    return rows == EVENTS ? r->events : r->columns[which].size / row_size(rows);
}

/* Put a row at the end of a list, all rows of which stand one behind the other. */
static int add_row(Reader *r, Container *list, uint32_t rows, int (*write)(Reader *, const Known *),
                   const Known *known) {
    uint64_t before = row_count(r, rows);
    if (list->rows == 0) {
        list->rows = (uint8_t)rows;
        list->first = before;
    } else if (list->rows != rows || list->first + list->count != before) {
        STRANGE_HERE(r);
    }
    list->count++;
    return write(r, known);
}

static int dictionary_into_list(Reader *r, Container *list, Value one) {
    Known known;
    uint32_t number = (uint32_t)one.value;
    int done;
    look(&r->containers[number], &known);
    if (has(&known, W_ACTION)) {
        done = add_row(r, list, EVENTS, event_row, &known);
    } else if (is_frame(&known)) {
        int64_t frame = known_frame(r, &known);
        Value made = {(uint64_t)frame, FRAME};
        if (frame < 0) return -1;
        let_all_go(r, number, (uint32_t)FRAME << 28 | (uint32_t)frame);
        return into_list(r, list, made);
    } else if (has(&known, W_BLOCKS)) {
        done = add_row(r, list, SEGMENTS, segment_row, &known);
    } else if (has(&known, W_STATE)) {
        done = add_row(r, list, BLOCKS, block_row, &known);
    } else if (has(&known, W_STAGE)) {
        done = add_row(r, list, NOTES, note_row, &known);
    } else if (has(&known, W_REAL_SIZE)) {
        done = add_row(r, list, HISTORY, history_row, &known);
    } else { /* of another version of PyTorch: that there was one is all that is kept */
        Value none = {0, NONE};
        let_all_go(r, number, (uint32_t)GONE << 28);
        if (list->rows == OPEN && list->items[list->count - 1].tag == NONE) return 0;
        return into_list(r, list, none);
    }
    if (done) return -1;
    let_all_go(r, number, (uint32_t)GONE << 28);
    return 0;
}

/* Return what stands for a container that came again before it was put anywhere. */
static Value forwarded(Reader *r, uint32_t number) {
    Value found = r->containers[number].forward;
    let_go(r, number, found.tag << 28 | (uint32_t)found.value);
    return found;
}

int into_list(Reader *r, Container *list, Value one) {
    if (one.tag == OPEN) {
        Container *put = &r->containers[one.value];
        if (put == list || put->kind == FREE) STRANGE_HERE(r);
        if (put->kind == DICTIONARY) return dictionary_into_list(r, list, one);
        if (put->kind == FORWARD)
            one = forwarded(r, (uint32_t)one.value);
        else if (list_value(r, (uint32_t)one.value, &one))
            return -1;
    }
    uint8_t rows = one.tag == FRAME ? FRAME : OPEN;
    if (list->rows && list->rows != rows) STRANGE_HERE(r);
    list->rows = rows;
    if (one.tag == OPEN) own(r, (uint32_t)one.value);
    return keep(r, list, one);
}

int into_dictionary(Reader *r, Container *dictionary, Value key, Value value) {
    if (key.tag != TEXT) STRANGE_HERE(r);
    if (value.tag == OPEN) {
        Container *put = &r->containers[value.value];
        if (put == dictionary || put->kind == FREE) STRANGE_HERE(r);
        if (put->kind == FORWARD)
            value = forwarded(r, (uint32_t)value.value);
        else if (put->kind == LIST && list_value(r, (uint32_t)value.value, &value))
            return -1;
        if (value.tag == OPEN) own(r, (uint32_t)value.value);
    }
    return keep(r, dictionary, key) || keep(r, dictionary, value);
}
