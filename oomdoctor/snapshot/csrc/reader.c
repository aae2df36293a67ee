/* The instructions of a pickle, and what the caller asks for. */
#include "reader.h"

#include <stdlib.h>
#include <string.h>

static const char *const WORDS[W_COUNT] = {
    "action", "addr", "size", "stream", "time_us", "frames", "pool_id", "user_metadata",
    "device_free", "filename", "name", "line", "address", "total_size", "segment_type",
    "segment_pool_id", "is_expandable", "blocks", "device", "requested_size", "state", "history",
    "real_size", "stage", "segments", "device_traces", "allocator_settings",
    "external_annotations", "", "oom", "snapshot", "small"};

int fail(Reader *r, int state) {
    if (r->state == MORE) r->state = state;
    return -1;
}

int keep(Reader *r, Container *into, Value one) {
    size_t room = into->room;
    if (++r->loose > MOST_VALUES) return fail(r, STRANGE);
    Value *items = grown(into->items, &room, into->count + 1, sizeof *items);
    if (items == NULL) return fail(r, NO_MEMORY);
    into->items = items;
    into->room = room;
    into->items[into->count++] = one;
    return 0;
}

static void remember(Reader *r, const Container *one, uint32_t what) {
    if (one->memoized) r->memo[one->memo] = what;
}

/* Take a container that is put into another one out of the memo. */
void own(Reader *r, uint32_t number) { remember(r, &r->containers[number], (uint32_t)GONE << 28); }

/* Forget a container; the memo has something else in its place. */
void let_go(Reader *r, uint32_t number, uint32_t remembered) {
    Container *one = &r->containers[number];
    remember(r, one, remembered);
    if (one->kind == DICTIONARY || one->rows == FRAME || one->rows == OPEN) r->loose -= one->count;
    if (one->room > 256) {
        free(one->items);
        one->items = NULL;
        one->room = 0;
    }
    one->kind = FREE;
    one->memo = r->container_free;
    r->container_free = number + 1;
    r->open--;
}

/* The same, with what is in it. */
void let_all_go(Reader *r, uint32_t number, uint32_t remembered) {
    Container *one = &r->containers[number];
    if (one->kind == DICTIONARY || (one->kind == LIST && one->rows == OPEN))
        for (uint64_t at = 0; at < one->count; at++)
            if (one->items[at].tag == OPEN)
                let_all_go(r, (uint32_t)one->items[at].value, (uint32_t)GONE << 28);
    let_go(r, number, remembered);
}

static int push(Reader *r, uint32_t tag, uint64_t value) {
    if (r->depth == r->stack_room) {
        if (r->depth >= MOST_VALUES) return fail(r, STRANGE);
        Value *made = grown(r->stack, &r->stack_room, r->depth + 1, sizeof *made);
        if (made == NULL) return fail(r, NO_MEMORY);
        r->stack = made;
    }
    r->stack[r->depth].tag = tag;
    r->stack[r->depth++].value = value;
    return 0;
}

static int open_one(Reader *r, uint8_t kind) {
    uint32_t number = r->container_free;
    if (++r->open > MOST_OPEN) return fail(r, STRANGE);
    if (number) {
        r->container_free = r->containers[--number].memo;
    } else {
        size_t room = r->container_room;
        Container *made = grown(r->containers, &room, r->container_count + 1, sizeof *made);
        if (made == NULL) return fail(r, NO_MEMORY);
        r->containers = made;
        r->container_room = (uint32_t)room;
        number = r->container_count++;
        memset(&r->containers[number], 0, sizeof *made);
    }
    Container *one = &r->containers[number];
    one->kind = kind;
    one->rows = one->memoized = 0;
    one->count = 0;
    return push(r, OPEN, number);
}

static int mark(Reader *r) {
    if (r->mark_count >= MOST_OPEN) return fail(r, STRANGE);
    uint32_t *made = grown(r->marks, &r->mark_room, r->mark_count + 1, sizeof *made);
    if (made == NULL) return fail(r, NO_MEMORY);
    r->marks = made;
    r->marks[r->mark_count++] = (uint32_t)r->depth;
    return 0;
}

/* How many values there are that the latest mark does not protect. */
static size_t loose_values(const Reader *r) {
    return r->depth - (r->mark_count ? r->marks[r->mark_count - 1] : 0);
}

static int put_in_memo(Reader *r, uint64_t number) {
    if (number != r->memo_count || loose_values(r) == 0) return fail(r, STRANGE);
    if (number == r->memo_room) {
        size_t room = r->memo_room;
        uint32_t *made = grown(r->memo, &room, number + 1, sizeof *made);
        if (made == NULL) return fail(r, NO_MEMORY);
        r->memo = made;
        r->memo_room = room;
    }
    if (number >= UINT32_MAX) return fail(r, STRANGE);
    Value top = r->stack[r->depth - 1];
    if (top.tag > OPEN) return fail(r, STRANGE);
    if (top.tag == OPEN) {
        Container *one = &r->containers[top.value];
        if (one->memoized || one->kind == FORWARD) return fail(r, STRANGE);
        one->memoized = 1;
        one->memo = (uint32_t)number;
    }
    r->memo[r->memo_count++] = top.tag << 28 | (uint32_t)top.value;
    return 0;
}

/* Say what a container is that comes again before it was put anywhere: a frame that stands in its
 * own stack twice, or a list of frames that a segment shares with its block. */
static int forward(Reader *r, uint32_t number, Value *found) {
    Container *one = &r->containers[number];
    if (one->kind == DICTIONARY) {
        if (as_frame(r, number, found)) return -1;
    } else if (one->kind == LIST && one->rows == FRAME) {
        int64_t named = stack_number(r, one->items, one->count);
        if (named < 0) return -1;
        found->tag = STACK;
        found->value = (uint64_t)named;
    } else if (one->kind == LIST && one->rows == 0) {
        found->tag = EMPTY;
        found->value = 0;
    } else {
        return fail(r, STRANGE);
    }
    r->loose -= one->count;
    one->count = 0;
    one->kind = FORWARD;
    one->rows = OPEN;
    one->forward = *found;
    remember(r, one, found->tag << 28 | (uint32_t)found->value);
    return 0;
}

static int get(Reader *r, uint64_t number) {
    if (number >= r->memo_count) return fail(r, STRANGE);
    uint32_t what = r->memo[number];
    Value found = {what & 0xFFFFFFFu, what >> 28};
    if (found.tag == GONE) return fail(r, STRANGE);
    if (found.tag == OPEN && forward(r, (uint32_t)found.value, &found)) return -1;
    return push(r, found.tag, found.value);
}

/* Put what stands above the latest mark into the container below it. */
static int put_all(Reader *r, uint8_t kind) {
    if (r->mark_count == 0) return fail(r, STRANGE);
    size_t first = r->marks[--r->mark_count], count = r->depth - first;
    if (loose_values(r) < count + 1 || r->stack[first - 1].tag != OPEN) return fail(r, STRANGE);
    Container *into = &r->containers[r->stack[first - 1].value];
    if (into->kind != kind || (kind == DICTIONARY && count % 2)) return fail(r, STRANGE);
    for (size_t at = first; at < r->depth; at += kind == DICTIONARY ? 2 : 1)
        if (kind == DICTIONARY ? into_dictionary(r, into, r->stack[at], r->stack[at + 1])
                               : into_list(r, into, r->stack[at]))
            return -1;
    r->depth = first;
    return 0;
}

/* Put the last value, or the last two, into the container before them. */
static int put_one(Reader *r, uint8_t kind) {
    size_t count = kind == DICTIONARY ? 2 : 1;
    if (loose_values(r) < count + 1) return fail(r, STRANGE);
    Value *values = &r->stack[r->depth - count];
    if (values[-1].tag != OPEN) return fail(r, STRANGE);
    Container *into = &r->containers[values[-1].value];
    if (into->kind != kind) return fail(r, STRANGE);
    if (kind == DICTIONARY ? into_dictionary(r, into, values[0], values[1])
                           : into_list(r, into, values[0]))
        return -1;
    r->depth -= count;
    return 0;
}

static int pair(Reader *r) {
    if (loose_values(r) < 2) return fail(r, STRANGE);
    Value *values = &r->stack[r->depth - 2];
    if (values[0].tag != WHOLE || values[1].tag != WHOLE) return fail(r, STRANGE);
    int64_t number = pool_number(r, values[0].value, values[1].value);
    if (number < 0) return -1;
    r->depth -= 2;
    return push(r, POOL, (uint64_t)number);
}

static uint64_t little(const uint8_t *bytes, size_t count) {
    uint64_t value = 0;
    for (size_t at = count; at-- > 0;) value = value << 8 | bytes[at];
    return value;
}

static int long_number(Reader *r, const uint8_t *bytes, size_t count) {
    if (count == 0) return push(r, WHOLE, 0);
    if (bytes[count - 1] & 0x80) {
        if (count > 8) return push(r, HUGE_NUMBER, 0);
        uint64_t value = little(bytes, count);
        if (count < 8) value |= UINT64_MAX << (8 * count);
        return push(r, NEGATIVE, value);
    }
    while (count > 8 && bytes[count - 1] == 0) count--;
    if (count > 8) return push(r, HUGE_NUMBER, 0);
    return push(r, WHOLE, little(bytes, count));
}

static int text(Reader *r, const uint8_t *bytes, size_t size) {
    int64_t number = text_number(r, bytes, size);
    return number < 0 ? -1 : push(r, TEXT, (uint64_t)number);
}

static int stop(Reader *r) {
    if (r->depth != 1 || r->mark_count) return fail(r, STRANGE);
    if (finish(r, r->stack[0])) return -1;
    r->state = DONE;
    return -1;
}

static int real(Reader *r, const uint8_t *bytes) {
    uint64_t bits = 0;
    for (int at = 0; at < 8; at++) bits = bits << 8 | bytes[at];
    return push(r, REAL, bits);
}

/* The bytes of an instruction without its text: 0 for one that no snapshot has. */
static size_t length_of(uint8_t sign) {
    switch (sign) {
    case '}': case ']': case '(': case 'N': case 'u': case 'e': case 'a': case 's': case '.':
    case 0x86: case 0x88: case 0x89: case 0x94: return 1;
    case 'K': case 'h': case 'q': case 0x80: case 0x8a: case 0x8c: return 2;
    case 'M': return 3;
    case 'J': case 'j': case 'r': case 'X': return 5;
    case 'G': case 0x8d: case 0x95: return 9;
    default: return 0;
    }
}

static int is_forbidden(uint8_t sign) {
    return sign && strchr("cRbioPQ\x81\x82\x83\x84\x92\x93", sign) != NULL;
}

/* Do one instruction; return its length, 0 where more bytes are needed, -1 at an end. */
int64_t one_step(Reader *r, const uint8_t *at, size_t left) {
    size_t size = length_of(*at), more = 0;
    if (size == 0) return fail(r, is_forbidden(*at) ? FORBIDDEN : STRANGE);
    if (left < size) return 0;
    switch (*at) {
    case 0x8a: case 0x8c: more = at[1]; break;
    case 'X': more = (size_t)little(at + 1, 4); break;
    case 0x8d:
        if (little(at + 1, 8) > MOST_TEXT) return fail(r, STRANGE);
        more = (size_t)little(at + 1, 8);
        break;
    default: break;
    }
    if (more > MOST_TEXT) return fail(r, STRANGE);
    if (left < size + more) return 0;
    int failed = 0;
    switch (*at) {
    case 'h': failed = get(r, at[1]); break;
    case 'j': failed = get(r, little(at + 1, 4)); break;
    case 0x94: failed = put_in_memo(r, r->memo_count); break;
    case 'q': failed = put_in_memo(r, at[1]); break;
    case 'r': failed = put_in_memo(r, little(at + 1, 4)); break;
    case '}': failed = open_one(r, DICTIONARY); break;
    case ']': failed = open_one(r, LIST); break;
    case '(': failed = mark(r); break;
    case 'u': failed = put_all(r, DICTIONARY); break;
    case 'e': failed = put_all(r, LIST); break;
    case 's': failed = put_one(r, DICTIONARY); break;
    case 'a': failed = put_one(r, LIST); break;
    case 'K': failed = push(r, WHOLE, at[1]); break;
    case 'M': failed = push(r, WHOLE, little(at + 1, 2)); break;
    case 'J': failed = long_number(r, at + 1, 4); break;
    case 0x8a: failed = more > 9 ? fail(r, STRANGE) : long_number(r, at + 2, more); break;
    case 0x8c: case 'X': case 0x8d: failed = text(r, at + size, more); break;
    case 'N': failed = push(r, NONE, 0); break;
    case 0x88: failed = push(r, TRUTH, 1); break;
    case 0x89: failed = push(r, TRUTH, 0); break;
    case 'G': failed = real(r, at + 1); break;
    case 0x86: failed = pair(r); break;
    case '.': failed = stop(r); break;
    case 0x80: failed = at[1] > 5 ? fail(r, STRANGE) : 0; break;
    default: break; /* a frame: only a hint at how much may be read at once */
    }
    return failed ? -1 : (int64_t)(size + more);
}

int known_words(Reader *r) {
    for (int word = 0; word < W_COUNT; word++)
        if (text_number(r, (const uint8_t *)WORDS[word], strlen(WORDS[word])) != word) return -1;
    return 0;
}
