/* What the parts of the virtual card share.

   Functions of the CUDA libraries carry the names those libraries give them; ours begin with vc_.
   Nothing is computed anywhere: memory is counted, questions are answered, work is let go. */
#ifndef OOMDOCTOR_VIRTUAL_H
#define OOMDOCTOR_VIRTUAL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define VC_MOST_CARDS 16
/* Card d owns [FIRST + d * 4 TiB, FIRST + (d + 1) * 4 TiB), below every mmap and heap address of
   the host: a host that follows such a pointer faults at once. */
#define VC_FIRST_ADDRESS 0x100000000000ULL
#define VC_ADDRESS_BITS 42
#define VC_PAGE ((size_t)2 << 20)
/* What is remembered of values: token ids, masks and counts, not activations. */
#define VC_SMALL ((size_t)1 << 20)
/* What is exchanged between ranks, and counted when it is read without being known. */
#define VC_MESSAGE ((size_t)64 << 10)
#define VC_MOST_STREAMS 64

/* What one card is like. */
struct vc_kind {
    char name[128];
    int major, minor, multiprocessors;
    size_t total_bytes;   /* as the card reports it to PyTorch */
    size_t context_bytes; /* taken by a process when it first uses the card */
    size_t others_bytes;  /* taken by strangers, from the start */
};

/* A program numbers the cards that CUDA_VISIBLE_DEVICES leaves it; `shown` has the machine's numbers. */
struct vc_settings {
    int cards, installed;
    int shown[VC_MOST_CARDS];
    struct vc_kind kinds[VC_MOST_CARDS]; /* by the machine's number */
    long fail_at;              /* the allocation of a process from which on the driver gives none */
    size_t pair_bytes;         /* taken by an NCCL communicator of two ranks */
    size_t communicator_bytes; /* taken by one of more ranks */
    double peer_wait_s;        /* how long a rank waits for another; 0: it runs alone */
    int events_late;           /* an event is done when the host can know it (order.c) */
};

/* settings.c */
const struct vc_settings *vc_settings(void);
int vc_machine_card(int card);
const struct vc_kind *vc_kind(int card);

/* usage.c: what all processes hold of the machine's cards */
void vc_open(int card);                /* a process begins to use a card: its context is there */
int vc_take(int card, size_t bytes);   /* 0, or 1: the card has not as many */
void vc_give(int card, size_t bytes);
size_t vc_used(int card);              /* by everybody */
size_t vc_used_here(int machine_card); /* by this process */
size_t vc_used_of_machine(int machine_card);
void vc_free_and_total(int card, size_t *unused, size_t *total);
#define VC_MOST_USERS 128
#define VC_STRANGER 4194304 /* no process has so high a number */
struct vc_user {
    int pid;
    size_t used;
};
int vc_users(int machine_card, struct vc_user *users);

/* cards.c: what is used of each card, and which one a thread works on */
int vc_current_card(void);
int vc_choose_card(int card);
int vc_card_of(const void *pointer); /* -1: no address of a card */
int vc_allocate(int card, size_t bytes, uintptr_t *address); /* 0, or 1: does not fit */
int vc_release(uintptr_t address);                           /* 0, or 1: not allocated */
size_t vc_block_of(uintptr_t address, uintptr_t *start);     /* its bytes; 0: none */
uintptr_t vc_reserve_addresses(int card, size_t bytes);
int vc_take_pages(int card, size_t bytes, unsigned long long *handle);
void vc_give_pages(unsigned long long handle);
void *vc_fresh_handle(void);

/* values.c: the little that is known of what lies on the cards */
void vc_written(uintptr_t address, const void *source, size_t bytes);
void vc_noted(uintptr_t address, const void *source, size_t bytes); /* whatever its size */
void vc_filled(uintptr_t address, int value, size_t bytes);
void vc_unknown(uintptr_t address, size_t bytes);
int vc_known(uintptr_t address, void *target, size_t bytes); /* 1: every byte was known */
/* The same with a flag for each byte; 0, 1 or 2: nothing, everything or a part is known. */
int vc_peek(uintptr_t address, unsigned char *target, unsigned char *known, size_t bytes);
void vc_put(uintptr_t address, const unsigned char *source, const unsigned char *known,
            size_t bytes);
void vc_copy(void *target, const void *source, size_t bytes); /* in any direction */

/* order.c: what was put on which stream, and how much of it is done */
struct vc_moment {
    unsigned long at[VC_MOST_STREAMS]; /* so much work of each stream */
};
struct vc_work {
    int stream;
    unsigned long number;
};
struct vc_work vc_launch(const void *stream);
void vc_record(const void *event, const void *stream);
void vc_forget_event(const void *event);
void vc_wait(const void *stream, const void *event);
int vc_is_event_done(const void *event);
int vc_is_stream_done(const void *stream);
void vc_finish_event(const void *event);
void vc_finish_stream(const void *stream);
void vc_finish_card(void);

/* transfers.c: messages of other ranks that have not come yet */
extern int vc_transfers; /* how many */
void vc_settle(uintptr_t address, size_t bytes, int overwritten);
void vc_settle_before(const struct vc_moment *moment);

/* host.c: host memory that CUDA handed out or knows of */
enum vc_host_kind { VC_NOT_OURS, VC_PINNED, VC_REGISTERED, VC_MANAGED };
void *vc_host_allocate(size_t bytes, enum vc_host_kind kind);
void vc_host_register(void *pointer, size_t bytes);
int vc_host_release(void *pointer); /* 0, or 1: not ours */
enum vc_host_kind vc_host_kind_of(const void *pointer);

/* attributes.c: cudaDeviceAttr and CUdevice_attribute share their numbers */
int vc_attribute(int attribute);           /* of the current card */
int vc_attribute_of(int card, int attribute);
int vc_binary_version(void); /* 86 for sm86 */
void vc_add_compiled(int version); /* one of those that torch has kernels for */

/* report.c: what the virtual card did not model */
void vc_report(const char *kind, const char *name); /* each pair once */
void vc_count_unknown_read(void);
void vc_set_finder(void (*function)(char *text, int room)); /* says which line is under way */
void vc_watch_crashes(void);
#define VC_REFUSED "refused" /* a question nobody answers: the call failed */
#define VC_IGNORED "ignored" /* a request without an answer: the call did nothing */
#define VC_ASSUMED "assumed" /* answered, with a size or value that nobody checked */
#define VC_MISSING "missing" /* asked for by name, and not there */

/* cudnn.c */
void *vc_real_cudnn(const char *name);

/* driver_entry.c */
void *vc_entry_point(const char *name);

#endif
