/* The end of a snapshot: which lists of events there are, and the settings as JSON. */
#include <stdio.h>
#include <string.h>

#include "reader.h"

static int put(Reader *r, const char *text) {
    return column_add(r, SETTINGS, text, strlen(text));
}

static int put_text(Reader *r, uint64_t number) {
    const uint64_t *ends = (const uint64_t *)(void *)r->columns[TEXT_ENDS].bytes;
    const char *bytes = r->columns[TEXT_BYTES].bytes;
    uint64_t first = number ? ends[number - 1] : 0;
    if (put(r, "\"")) return -1;
    for (uint64_t at = first; at < ends[number]; at++) {
        unsigned char one = (unsigned char)bytes[at];
        char escaped[8];
        if (one < 0x20 || one == '"' || one == '\\') {
            snprintf(escaped, sizeof escaped, "\\u%04x", one);
            if (put(r, escaped)) return -1;
        } else if (column_add(r, SETTINGS, &bytes[at], 1)) {
            return -1;
        }
    }
    return put(r, "\"");
}

static int put_real(Reader *r, uint64_t bits) {
    double real;
    char text[40];
    memcpy(&real, &bits, sizeof real);
    if (real != real) return put(r, "NaN");
    if (real - real != 0) return put(r, real > 0 ? "Infinity" : "-Infinity");
    snprintf(text, sizeof text, "%.17g", real);
    if (strpbrk(text, ".e") == NULL) strcat(text, ".0");
    return put(r, text);
}

static int put_value(Reader *r, Value one, int depth) {
    char text[32];
    if (depth > MOST_DEPTH) return fail(r, STRANGE);
    switch (one.tag) {
    case NONE: return put(r, "null");
    case TRUTH: return put(r, one.value ? "true" : "false");
    case TEXT: return put_text(r, one.value);
    case REAL: return put_real(r, one.value);
    case EMPTY: return put(r, "[]");
    case WHOLE:
        snprintf(text, sizeof text, "%llu", (unsigned long long)one.value);
        return put(r, text);
    case NEGATIVE:
        snprintf(text, sizeof text, "%lld", (long long)one.value);
        return put(r, text);
    case OPEN: break;
    default: return fail(r, STRANGE);
    }
    const Container *container = &r->containers[one.value];
    int named = container->kind == DICTIONARY;
    if (!named && container->kind != LIST) return fail(r, STRANGE);
    if (put(r, named ? "{" : "[")) return -1;
    for (uint64_t at = 0; at < container->count; at++) {
        const char *before = at == 0 ? "" : named && at % 2 ? ":" : ",";
        if (put(r, before) || put_value(r, container->items[at], depth + 1)) return -1;
    }
    return put(r, named ? "}" : "]");
}

/* Write down which rows a list has. */
static int range(Reader *r, Value one, uint32_t rows) {
    uint64_t row[2] = {0, 0};
    if (one.tag != EMPTY && one.tag != rows) return fail(r, STRANGE);
    if (one.tag == rows) memcpy(row, r->columns[RANGES].bytes + one.value * sizeof row, sizeof row);
    return column_add(r, WHICH_ROWS, row, sizeof row);
}

static int traces(Reader *r, Value one) {
    if (one.tag == EMPTY) return 0;
    if (one.tag != OPEN || r->containers[one.value].kind != LIST) return fail(r, STRANGE);
    const Container *list = &r->containers[one.value];
    for (uint64_t at = 0; at < list->count; at++)
        if (range(r, list->items[at], EVENTS)) return -1;
    return 0;
}

/* Write down which rows the segments, the annotations and the traces have, in this order. */
int finish(Reader *r, Value root) {
    Value segments = {0, NONE}, notes = {0, EMPTY}, listed = {0, EMPTY};
    if (root.tag != OPEN || r->containers[root.value].kind != DICTIONARY) return fail(r, STRANGE);
    const Container *all = &r->containers[root.value];
    for (uint64_t at = 0; at + 1 < all->count; at += 2) {
        Value one = all->items[at + 1];
        for (uint64_t other = at + 2; other < all->count; other += 2)
            if (all->items[other].value == all->items[at].value) return fail(r, STRANGE);
        switch (all->items[at].value) {
        case W_SEGMENTS: segments = one; break;
        case W_ANNOTATIONS: notes = one; break;
        case W_DEVICE_TRACES: listed = one; break;
        case W_SETTINGS:
            if (one.tag != OPEN || put_value(r, one, 0)) return fail(r, STRANGE);
            break;
        default: break;
        }
    }
    return range(r, segments, SEGMENTS) || range(r, notes, NOTES) || traces(r, listed);
}
