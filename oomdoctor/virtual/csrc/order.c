/* The order of work: what was put on which stream, and how much of it the host can know to be done.

   Nothing runs, so nothing takes time; but libraries decide by events what memory may be used again.
   The host runs ahead of a card that is busy. What a stream has been given is done when somebody waits
   for it: for the stream, for an event after it, or for work that itself waited for it. It is also done
   when the stream was given DEPTH more, since CUDA lets the host run no further ahead, and when it was
   asked for MOST_QUERIES times, so that a loop which asks again and again ends. A thread that gives no
   work to a card (NCCL's watchdog) looks on from time to time, and finds it done. With
   OOMDOCTOR_VIRTUAL_EVENTS=ready events are done at once, as on a card that waits for the host. */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

#define STREAMS VC_MOST_STREAMS
#define BUCKETS 1024
#define DEPTH 1024
#define MOST_QUERIES 1000

struct event {
    const void *handle;
    struct event *next;
    int stream, queries;
    struct vc_moment after;
};

static struct stream {
    uintptr_t key;
    int card, queries;
    unsigned long done;
    struct vc_moment last; /* what precedes further work: its own, and what it waited for */
} streams[STREAMS];
static int stream_count;
static struct event *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int gives_work;

/* The default streams of a card are one here. Too many streams: -1, whose work is done at once. */
static int stream_of(const void *handle)
{
    int card = vc_current_card();
    uintptr_t key = (uintptr_t)handle <= 2 ? 8 + (uintptr_t)card : (uintptr_t)handle;
    for (int i = 0; i < stream_count; i++)
        if (streams[i].key == key)
            return i;
    if (stream_count == STREAMS)
        return -1;
    streams[stream_count].key = key;
    streams[stream_count].card = card;
    return stream_count++;
}

static struct event **place_of(const void *handle)
{
    struct event **place = &buckets[((uintptr_t)handle >> 6) % BUCKETS];
    while (*place && (*place)->handle != handle)
        place = &(*place)->next;
    return place;
}

static void merge(struct vc_moment *into, const struct vc_moment *other)
{
    for (int i = 0; i < stream_count; i++)
        if (other->at[i] > into->at[i])
            into->at[i] = other->at[i];
}

static void mark_done(const struct vc_moment *moment)
{
    for (int i = 0; i < stream_count; i++)
        if (moment->at[i] > streams[i].done)
            streams[i].done = moment->at[i];
}

struct vc_work vc_launch(const void *handle)
{
    struct vc_work work = {-1, 0};
    gives_work = 1;
    pthread_mutex_lock(&lock);
    work.stream = stream_of(handle);
    if (work.stream >= 0) {
        struct stream *stream = &streams[work.stream];
        work.number = ++stream->last.at[work.stream];
        if (work.number > DEPTH && stream->done < work.number - DEPTH)
            stream->done = work.number - DEPTH;
    }
    pthread_mutex_unlock(&lock);
    if (vc_transfers && work.number % 64 == 0)
        vc_settle_what_came();
    return work;
}

void vc_record(const void *handle, const void *stream)
{
    gives_work = 1;
    pthread_mutex_lock(&lock);
    struct event **place = place_of(handle);
    if (!*place && (*place = calloc(1, sizeof **place)))
        (*place)->handle = handle;
    if (*place) {
        (*place)->queries = 0;
        (*place)->stream = stream_of(stream);
        memset(&(*place)->after, 0, sizeof (*place)->after);
        if ((*place)->stream >= 0)
            (*place)->after = streams[(*place)->stream].last;
    }
    pthread_mutex_unlock(&lock);
}

void vc_forget_event(const void *handle)
{
    pthread_mutex_lock(&lock);
    struct event **place = place_of(handle), *gone = *place;
    if (gone)
        *place = gone->next;
    free(gone);
    pthread_mutex_unlock(&lock);
}

void vc_wait(const void *stream, const void *handle)
{
    pthread_mutex_lock(&lock);
    struct event *event = *place_of(handle);
    int index = stream_of(stream);
    if (event && index >= 0)
        merge(&streams[index].last, &event->after);
    pthread_mutex_unlock(&lock);
}

static int is_over(unsigned long number, int index, int *queries)
{
    return !vc_settings()->events_late || !gives_work || index < 0 ||
           streams[index].done >= number || ++*queries >= MOST_QUERIES;
}

int vc_is_event_done(const void *handle)
{
    pthread_mutex_lock(&lock);
    struct event *event = *place_of(handle);
    int over = !event || event->stream < 0 ||
               is_over(event->after.at[event->stream], event->stream, &event->queries);
    if (over && event && gives_work)
        mark_done(&event->after);
    pthread_mutex_unlock(&lock);
    return over;
}

int vc_is_stream_done(const void *handle)
{
    pthread_mutex_lock(&lock);
    int index = stream_of(handle);
    struct stream *stream = index < 0 ? NULL : &streams[index];
    int over = !stream || is_over(stream->last.at[index], index, &stream->queries);
    if (over && stream) {
        stream->queries = 0;
        if (gives_work)
            mark_done(&stream->last);
    }
    pthread_mutex_unlock(&lock);
    return over;
}

/* What was waited for is done, and so has come what other ranks sent for it. */
static void finish(const struct vc_moment *moment)
{
    mark_done(moment);
    pthread_mutex_unlock(&lock);
    vc_settle_before(moment);
}

void vc_finish_event(const void *handle)
{
    struct vc_moment moment = {{0}};
    pthread_mutex_lock(&lock);
    struct event *event = *place_of(handle);
    if (event)
        moment = event->after;
    finish(&moment);
}

void vc_finish_stream(const void *handle)
{
    struct vc_moment moment = {{0}};
    pthread_mutex_lock(&lock);
    int index = stream_of(handle);
    if (index >= 0)
        moment = streams[index].last;
    finish(&moment);
}

void vc_finish_card(void)
{
    struct vc_moment moment = {{0}};
    int card = vc_current_card();
    pthread_mutex_lock(&lock);
    for (int i = 0; i < stream_count; i++)
        if (streams[i].card == card)
            merge(&moment, &streams[i].last);
    finish(&moment);
}
