/* Reads the pickle of a memory snapshot as a stream and keeps it in columns.
 *
 * The file is fed in pieces. Instructions make values on a stack, as in any reader of pickles; but
 * a dictionary that is put into a list becomes a row of the columns by the keys that it has, and is
 * forgotten. What refers to it later, as nothing does in what PyTorch writes, is not read here:
 * then the caller reads the file in another way, or refuses it.
 *
 * Nothing is called, no name is looked up, and no number of the file says how much is reserved.
 */
#ifndef OOMDOCTOR_SNAPSHOT_READER_H
#define OOMDOCTOR_SNAPSHOT_READER_H

#include <stddef.h>
#include <stdint.h>

/* No name of ours meets one of the C library: all but the interface stays within. */
#pragma GCC visibility push(hidden)

enum {
    MOST_OPEN = 10000,         /* lists and dictionaries that are in nothing yet */
    MOST_VALUES = 1 << 20,     /* on the stack, and in values that become no row */
    MOST_TEXT = 64 << 20,      /* bytes of one text */
    MOST_ACTIONS = 200,
    MOST_STREAMS = 4096,       /* and pools */
    MOST_DEPTH = 50            /* of the settings */
};

/* What became of a piece. */
enum { MORE = 0, DONE = 1, STRANGE = 2, FORBIDDEN = 3, NO_MEMORY = 4, CUT_OFF = 5 };

/* The kinds of values. Those up to OPEN fit into the memo with 28 bits. */
enum {
    GONE,    /* became a row, or a part of something else */
    TEXT,    /* the number of a text */
    POOL,    /* the number of a pair of numbers */
    STACK,   /* the number of a list of frames */
    FRAME,   /* the number of a frame */
    EMPTY,   /* a list of nothing */
    OPEN,    /* the number of a container */
    NONE, TRUTH, WHOLE, NEGATIVE, HUGE_NUMBER, REAL,
    EVENTS, BLOCKS, SEGMENTS, NOTES, HISTORY /* the number of a range of rows */
};

typedef struct {
    uint64_t value;
    uint32_t tag;
} Value;

/* What a container is. A list is of the kind of its rows; FORWARD is one that came again before it
 * was put anywhere, and stands for the value `forward`. */
enum { FREE, DICTIONARY, LIST, FORWARD };

typedef struct {
    uint8_t kind;
    uint8_t rows;       /* of a list: 0, FRAME, EVENTS, BLOCKS, SEGMENTS, NOTES, HISTORY or OPEN */
    uint8_t memoized;
    uint32_t memo;      /* its place in the memo; the next free container */
    uint64_t first;     /* of the rows of a list, whose number is `count` */
    uint64_t count, room;
    Value *items;       /* of a dictionary: keys and values in turn */
    Value forward;
} Container;

typedef struct {
    char *bytes;
    size_t size, room;
} Column;

typedef struct {
    uint32_t *slots;    /* numbers, one more than they are */
    uint64_t room, count;
} Index;

/* The columns by the numbers that the caller asks for them. */
enum {
    EVENT_ACTION, EVENT_ADDRESS, EVENT_SIZE, EVENT_STREAM, EVENT_POOL, EVENT_STACK, EVENT_TIME,
    EVENT_NOTE, TEXT_ENDS, TEXT_BYTES, FRAME_ROWS, STACK_ENDS, STACK_FRAMES, POOL_PAIRS,
    STREAM_NUMBERS, ACTION_TEXTS, SEGMENT_ROWS, BLOCK_ROWS, NOTE_ROWS, WHICH_ROWS, SETTINGS,
    HISTORY_ROWS, RANGES, COLUMNS
};

/* Keys and other texts that are known by their numbers; the order is that of `WORDS`. */
enum {
    W_ACTION, W_ADDR, W_SIZE, W_STREAM, W_TIME, W_FRAMES, W_POOL_ID, W_NOTE, W_DEVICE_FREE,
    W_FILENAME, W_NAME, W_LINE, W_ADDRESS, W_TOTAL_SIZE, W_SEGMENT_TYPE, W_SEGMENT_POOL_ID,
    W_IS_EXPANDABLE, W_BLOCKS, W_DEVICE, W_REQUESTED_SIZE, W_STATE, W_HISTORY, W_REAL_SIZE,
    W_STAGE, W_SEGMENTS, W_DEVICE_TRACES, W_SETTINGS, W_ANNOTATIONS, W_NOTHING, W_OOM, W_SNAPSHOT,
    W_SMALL, W_COUNT
};

typedef struct Reader {
    int state;              /* MORE until something ended it */
    uint64_t at;            /* bytes that were read before `pending` */
    uint8_t *pending;
    size_t pending_size, pending_room;
    Value *stack;
    size_t depth, stack_room;
    uint32_t *marks;
    size_t mark_count, mark_room;
    uint32_t *memo;
    uint64_t memo_count, memo_room;
    Container *containers;
    uint32_t container_count, container_room, container_free, open;
    uint64_t loose;         /* values in containers */
    uint64_t seed;
    Column columns[COLUMNS];
    Index texts, stacks, frames;
    uint64_t events, has_notes, last_stream, last_pool;
} Reader;

/* tables.c: what is kept once and known by its number */
int column_add(Reader *r, int which, const void *bytes, size_t size);
int64_t text_number(Reader *r, const uint8_t *bytes, size_t size);
int64_t stack_number(Reader *r, const Value *frames, uint64_t count);
int64_t frame_number(Reader *r, uint64_t name, uint64_t file, uint64_t line);
int64_t pool_number(Reader *r, uint64_t first, uint64_t second);
int64_t stream_number(Reader *r, uint64_t stream);
int64_t action_number(Reader *r, uint64_t text);
int64_t range_number(Reader *r, uint64_t first, uint64_t count);
void *grown(void *old, size_t *room, size_t needed, size_t each);

/* rows.c: what becomes of a container that is put somewhere */
int into_list(Reader *r, Container *list, Value one);
int into_dictionary(Reader *r, Container *dictionary, Value key, Value value);
int as_frame(Reader *r, uint32_t number, Value *found);

/* finish.c: what the whole is */
int finish(Reader *r, Value root);

/* reader.c: containers */
int keep(Reader *r, Container *into, Value one);
void let_go(Reader *r, uint32_t number, uint32_t remembered);
void own(Reader *r, uint32_t number);
void let_all_go(Reader *r, uint32_t number, uint32_t remembered);

int fail(Reader *r, int state);
int known_words(Reader *r);
int64_t one_step(Reader *r, const uint8_t *at, size_t left);

#pragma GCC visibility pop

/* interface.c */
Reader *snapshot_begin(uint64_t seed);
int snapshot_feed(Reader *r, const uint8_t *bytes, size_t size);
void snapshot_rest(Reader *r);
uint64_t snapshot_place(const Reader *r);
int snapshot_has_notes(const Reader *r);
uint64_t snapshot_column(const Reader *r, int which, const char **bytes);
void snapshot_drop(Reader *r, int which);
void snapshot_end(Reader *r);

#endif
