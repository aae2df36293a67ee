/* What the caller in Python asks for: to begin, to feed, to take the columns, to end. */
#include <stdlib.h>
#include <string.h>

#include "reader.h"

Reader *snapshot_begin(uint64_t seed) {
    Reader *r = calloc(1, sizeof *r);
    if (r == NULL) return NULL;
    r->seed = seed;
    if (known_words(r)) {
        snapshot_end(r);
        return NULL;
    }
    return r;
}

/* Read as much as there is; return what became of it. */
int snapshot_feed(Reader *r, const uint8_t *bytes, size_t size) {
    size_t at = 0;
    if (r->state != MORE) return r->state;
    uint8_t *made = grown(r->pending, &r->pending_room, r->pending_size + size, 1);
    if (made == NULL) return r->state = NO_MEMORY;
    r->pending = made;
    memcpy(r->pending + r->pending_size, bytes, size);
    r->pending_size += size;
    while (at < r->pending_size) {
        int64_t done = one_step(r, r->pending + at, r->pending_size - at);
        if (done <= 0) break;
        at += (size_t)done;
    }
    r->at += at;
    r->pending_size -= at;
    memmove(r->pending, r->pending + at, r->pending_size);
    return r->state;
}

/* Give the memory back that only reading needs. */
void snapshot_rest(Reader *r) {
    for (uint32_t at = 0; at < r->container_count; at++) free(r->containers[at].items);
    free(r->containers);
    free(r->stack);
    free(r->marks);
    free(r->memo);
    free(r->pending);
    free(r->texts.slots);
    free(r->stacks.slots);
    free(r->frames.slots);
    r->containers = NULL;
    r->container_count = 0;
    r->stack = NULL;
    r->marks = r->memo = NULL;
    r->pending = NULL;
    r->texts.slots = r->stacks.slots = r->frames.slots = NULL;
    if (r->state == MORE) r->state = CUT_OFF;
}

uint64_t snapshot_place(const Reader *r) { return r->at; }

int snapshot_has_notes(const Reader *r) { return r->has_notes != 0; }

uint64_t snapshot_column(const Reader *r, int which, const char **bytes) {
    if (which < 0 || which >= COLUMNS) return 0;
    *bytes = r->columns[which].bytes;
    return r->columns[which].size;
}

void snapshot_drop(Reader *r, int which) {
    if (which < 0 || which >= COLUMNS) return;
    free(r->columns[which].bytes);
    memset(&r->columns[which], 0, sizeof r->columns[which]);
}

void snapshot_end(Reader *r) {
    snapshot_rest(r);
    for (int which = 0; which < COLUMNS; which++) snapshot_drop(r, which);
    free(r);
}
