/* Messages of other ranks that this one has asked for and not needed so far.

   As on real cards, a program goes on after it asked: what comes is put in its place when somebody
   reads there, or waits for the work, or when it has come before the next one is asked for. So two
   ranks that first receive and then send do not wait for each other. A rank that never answers is taken
   to hold, in a collective, what this one holds. */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

struct pending {
    struct vc_transfer is;
    size_t bytes; /* of the target */
    int dropped;  /* overwritten since: it is taken, and put nowhere */
    int busy;     /* a thread waits for it */
    struct pending *next;
};

int vc_transfers;
static struct pending *first;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t settled = PTHREAD_COND_INITIALIZER;

void vc_expect(const struct vc_transfer *transfer)
{
    struct pending *made = calloc(1, sizeof *made), **last = &first;
    int parts = transfer->operation == VC_NO_REDUCTION ? transfer->end - transfer->first : 1;
    made->is = *transfer;
    made->bytes = (size_t)parts * transfer->taken;
    pthread_mutex_lock(&lock);
    while (*last)
        last = &(*last)->next;
    *last = made;
    __atomic_add_fetch(&vc_transfers, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&lock);
    if (!transfer->ranks->members) /* a rank that runs alone */
        vc_settle_ranks(transfer->ranks);
}

static int fetch(const struct vc_transfer *is, int rank, int waits, struct vc_values *values)
{
    size_t bytes = 2 * values->bytes;
    if (is->own.data && rank == is->ranks->rank)
        memcpy(values->data, is->own.data, bytes);
    else if (!vc_fetch(is->ranks, rank, is->to, is->number, waits, values)) {
        if (!waits)
            return 0;
        if (is->own.data)
            memcpy(values->data, is->own.data, bytes);
    }
    return 1;
}

/* Put everything in its place; 0 if something has not come and is not waited for. */
static int take(struct pending *one, int waits)
{
    const struct vc_transfer *is = &one->is;
    int parts = is->end - is->first, came = 1;
    struct vc_values *from = calloc((size_t)parts, sizeof *from), whole = vc_room_for(one->bytes);
    for (int i = 0; i < parts && came; i++) {
        from[i] = vc_room_for(is->own.bytes);
        came = fetch(is, is->first + i, waits, &from[i]);
    }
    if (came && is->operation != VC_NO_REDUCTION)
        vc_reduce(is->type, is->operation, parts, from, is->offset, &whole);
    for (int i = 0; i < parts && came && is->operation == VC_NO_REDUCTION; i++) {
        memcpy(whole.data + (size_t)i * is->taken, from[i].data + is->offset, is->taken);
        memcpy(whole.known + (size_t)i * is->taken, from[i].known + is->offset, is->taken);
    }
    if (came && !one->dropped)
        vc_put(is->target, whole.data, whole.known, whole.bytes);
    for (int i = 0; i < parts; i++)
        free(from[i].data);
    free(from);
    free(whole.data);
    return came;
}

static unsigned long oldest_of(const struct vc_ranks *ranks)
{
    for (const struct pending *one = first; one; one = one->next)
        if (one->is.ranks == ranks && one->is.to == VC_TO_ALL)
            return one->is.number;
    return ~0ul;
}

static void remove_it(struct pending *one)
{
    struct vc_ranks *ranks = one->is.ranks;
    struct pending **place = &first;
    while (*place != one)
        place = &(*place)->next;
    *place = one->next;
    __atomic_sub_fetch(&vc_transfers, 1, __ATOMIC_SEQ_CST);
    free(one->is.own.data);
    free(one);
    vc_tell_taken(ranks, oldest_of(ranks));
}

/* Called with the lock, which is not held while others are waited for; 0: it has not come. */
static int settle_one(struct pending *one, int waits)
{
    if (one->busy) {
        if (waits)
            pthread_cond_wait(&settled, &lock);
        return waits;
    }
    one->busy = 1;
    pthread_mutex_unlock(&lock);
    int came = take(one, waits);
    pthread_mutex_lock(&lock);
    one->busy = 0;
    if (came)
        remove_it(one);
    pthread_cond_broadcast(&settled);
    return came;
}

static int is_in(const struct pending *one, uintptr_t address, size_t bytes)
{
    return one->is.target < address + bytes && address < one->is.target + one->bytes;
}

static int is_covered(const struct pending *one, uintptr_t address, size_t bytes)
{
    return address <= one->is.target && one->is.target + one->bytes <= address + bytes;
}

void vc_settle(uintptr_t address, size_t bytes, int overwritten)
{
    pthread_mutex_lock(&lock);
    for (struct pending *one = first; one;) {
        if (overwritten && !one->busy && is_covered(one, address, bytes))
            one->dropped = 1;
        if (one->dropped || !is_in(one, address, bytes)) {
            one = one->next;
            continue;
        }
        settle_one(one, 1);
        one = first;
    }
    pthread_mutex_unlock(&lock);
}

void vc_settle_before(const struct vc_moment *moment)
{
    if (!vc_transfers)
        return;
    pthread_mutex_lock(&lock);
    for (struct pending *one = first; one;) {
        int stream = one->is.work.stream;
        if (stream >= 0 && one->is.work.number <= moment->at[stream]) {
            settle_one(one, 1);
            one = first;
        } else {
            one = one->next;
        }
    }
    pthread_mutex_unlock(&lock);
}

void vc_settle_ranks(struct vc_ranks *ranks)
{
    pthread_mutex_lock(&lock);
    for (struct pending *one = first; one;) {
        int ours = one->is.ranks == ranks;
        if (ours)
            settle_one(one, 1);
        one = ours ? first : one->next;
    }
    pthread_mutex_unlock(&lock);
}

void vc_settle_what_came(void)
{
    pthread_mutex_lock(&lock);
    while (first && settle_one(first, 0))
        continue;
    pthread_mutex_unlock(&lock);
}

void vc_drop_transfers(struct vc_ranks *ranks)
{
    pthread_mutex_lock(&lock);
    for (struct pending *one = first, *next; one; one = next) {
        next = one->next;
        if (one->is.ranks != ranks || one->busy)
            continue;
        one->dropped = 1;
        if (!settle_one(one, 0))
            remove_it(one);
        next = first;
    }
    pthread_mutex_unlock(&lock);
}

unsigned long vc_oldest_transfer(struct vc_ranks *ranks)
{
    pthread_mutex_lock(&lock);
    unsigned long oldest = oldest_of(ranks);
    pthread_mutex_unlock(&lock);
    return oldest;
}
