/* Remembers what the host wrote to a card, as far as it is small.

   Nothing computes here, so most of what lies on a card is unknown and reads as zero. But programs
   steer themselves by small values that the host itself sent: counts, flags, pickled objects. Copies
   and fills of up to 1 MiB are kept by the byte, follow copies from card to card, and are what a
   copy to the host delivers. What a kernel writes over stays as it was, unless somebody says otherwise
   (inside/known_values.py): a value can be stale. */
#include "virtual.h"

#include <stdlib.h>
#include <string.h>

#define GRAIN 256
#define BUCKETS (1 << 14)
#define MOST_GRAINS (1 << 18)
#define WIDE ((size_t)16 << 20) /* what the operators that also run on the host may note */

struct grain {
    uintptr_t number; /* address / GRAIN */
    struct grain *next;
    unsigned char recent; /* written since the hand last passed */
    unsigned char bytes[GRAIN], known[GRAIN];
};

static struct grain *buckets[BUCKETS];
static struct grain *all[MOST_GRAINS];
static size_t grains, hand;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct grain **bucket_of(uintptr_t number)
{
    return &buckets[(number * 0x9E3779B97F4A7C15ULL) >> 50];
}

/* A grain to be filled: a new one, or where there are too many one that was not written lately
   (weights that a program loads are written once, what it asks about again and again). */
static struct grain *spare(void)
{
    if (grains < MOST_GRAINS) {
        struct grain *made = calloc(1, sizeof *made);
        if (made)
            all[grains++] = made;
        return made;
    }
    while (all[hand]->recent) {
        all[hand]->recent = 0;
        hand = (hand + 1) % MOST_GRAINS;
    }
    struct grain *old = all[hand], **place = bucket_of(old->number);
    hand = (hand + 1) % MOST_GRAINS;
    while (*place != old)
        place = &(*place)->next;
    *place = old->next;
    memset(old->known, 0, GRAIN);
    return old;
}

static struct grain *grain_of(uintptr_t address, int make)
{
    uintptr_t number = address / GRAIN;
    struct grain **bucket = bucket_of(number);
    for (struct grain *one = *bucket; one; one = one->next)
        if (one->number == number)
            return one;
    struct grain *made = make ? spare() : NULL;
    if (!made)
        return NULL;
    made->number = number;
    made->next = *bucket;
    return *bucket = made;
}

/* The bytes of [address, address + left) that lie in the first grain. */
static size_t in_grain(uintptr_t address, size_t left)
{
    size_t room = GRAIN - address % GRAIN;
    return left < room ? left : room;
}

static void keep(uintptr_t address, const unsigned char *source, int value, size_t bytes)
{
    for (size_t done = 0, n; done < bytes; done += n) {
        n = in_grain(address + done, bytes - done);
        struct grain *one = grain_of(address + done, 1);
        if (!one)
            continue;
        size_t at = (address + done) % GRAIN;
        if (source)
            memcpy(one->bytes + at, source + done, n);
        else
            memset(one->bytes + at, value, n);
        memset(one->known + at, 1, n);
        one->recent = 1;
    }
}

static void forget_grains(uintptr_t first, uintptr_t end)
{
    for (int i = 0; i < BUCKETS; i++)
        for (struct grain *one = buckets[i]; one; one = one->next)
            if (one->number >= first && one->number < end)
                memset(one->known, 0, GRAIN);
}

static void forget(uintptr_t address, size_t bytes)
{
    if (!grains)
        return;
    if (bytes > 16 * VC_SMALL) { /* looking at every grain is quicker than at every address */
        forget_grains(address / GRAIN, (address + bytes + GRAIN - 1) / GRAIN);
        return;
    }
    for (size_t done = 0, n; done < bytes; done += n) {
        n = in_grain(address + done, bytes - done);
        struct grain *one = grain_of(address + done, 0);
        if (one)
            memset(one->known + (address + done) % GRAIN, 0, n);
    }
}

/* What another rank sends comes before what is written after it. */
#define AFTER_TRANSFERS(address, bytes, overwritten) \
    do { \
        if (vc_transfers) \
            vc_settle(address, bytes, overwritten); \
    } while (0)

void vc_written(uintptr_t address, const void *source, size_t bytes)
{
    AFTER_TRANSFERS(address, bytes, 1);
    pthread_mutex_lock(&lock);
    if (bytes <= VC_SMALL)
        keep(address, source, 0, bytes);
    else
        forget(address, bytes);
    pthread_mutex_unlock(&lock);
}

void vc_noted(uintptr_t address, const void *source, size_t bytes)
{
    AFTER_TRANSFERS(address, bytes, 1);
    pthread_mutex_lock(&lock);
    keep(address, source, 0, bytes);
    pthread_mutex_unlock(&lock);
}

/* Zeros read as zeros without being kept. Kernels clear their own counters so, and what they write
   there must not pass for known when the memory is used again. */
void vc_filled(uintptr_t address, int value, size_t bytes)
{
    AFTER_TRANSFERS(address, bytes, 1);
    pthread_mutex_lock(&lock);
    if (value && bytes <= VC_SMALL)
        keep(address, NULL, value, bytes);
    else
        forget(address, bytes);
    pthread_mutex_unlock(&lock);
}

void vc_unknown(uintptr_t address, size_t bytes)
{
    AFTER_TRANSFERS(address, bytes, 1);
    pthread_mutex_lock(&lock);
    forget(address, bytes);
    pthread_mutex_unlock(&lock);
}

int vc_peek(uintptr_t address, unsigned char *target, unsigned char *known, size_t bytes)
{
    size_t count = 0;
    AFTER_TRANSFERS(address, bytes, 0);
    memset(target, 0, bytes);
    memset(known, 0, bytes);
    pthread_mutex_lock(&lock);
    for (size_t done = 0, n; done < bytes; done += n) {
        n = in_grain(address + done, bytes - done);
        struct grain *one = grain_of(address + done, 0);
        size_t at = (address + done) % GRAIN;
        for (size_t i = 0; one && i < n; i++)
            if (one->known[at + i]) {
                target[done + i] = one->bytes[at + i];
                known[done + i] = 1;
                count++;
            }
    }
    pthread_mutex_unlock(&lock);
    return count == bytes ? 1 : count ? 2 : 0;
}

int vc_known(uintptr_t address, void *target, size_t bytes)
{
    memset(target, 0, bytes);
    unsigned char *known = bytes <= WIDE ? malloc(bytes + 1) : NULL;
    int all = known && vc_peek(address, target, known, bytes) == 1;
    free(known);
    return all;
}

void vc_put(uintptr_t address, const unsigned char *source, const unsigned char *known,
            size_t bytes)
{
    pthread_mutex_lock(&lock);
    for (size_t start = 0, end; start < bytes; start = end) {
        for (end = start + 1; end < bytes && known[end] == known[start];)
            end++;
        if (known[start])
            keep(address + start, source + start, 0, end - start);
        else
            forget(address + start, end - start);
    }
    pthread_mutex_unlock(&lock);
}

static void copy_between_cards(uintptr_t target, uintptr_t source, size_t bytes)
{
    unsigned char *data = bytes <= VC_SMALL ? malloc(2 * bytes + 1) : NULL;
    int some = data && vc_peek(source, data, data + bytes, bytes);
    vc_unknown(target, bytes);
    if (some)
        vc_put(target, data, data + bytes, bytes);
    free(data);
}

void vc_copy(void *target, const void *source, size_t bytes)
{
    int to_card = vc_card_of(target) >= 0, from_card = vc_card_of(source) >= 0;
    if (to_card && from_card) {
        copy_between_cards((uintptr_t)target, (uintptr_t)source, bytes);
    } else if (to_card) {
        vc_written((uintptr_t)target, source, bytes);
    } else if (from_card) {
        if (!vc_known((uintptr_t)source, target, bytes) && bytes <= VC_MESSAGE)
            vc_count_unknown_read();
    } else if (target && source) {
        memmove(target, source, bytes);
    }
}
