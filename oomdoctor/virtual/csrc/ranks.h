/* What a communicator of the virtual cards is, and how its ranks exchange small messages. */
#ifndef OOMDOCTOR_VIRTUAL_RANKS_H
#define OOMDOCTOR_VIRTUAL_RANKS_H

#include "virtual.h"

/* What each rank tells the others of itself. */
struct vc_member {
    int pid;              /* 0: it has not joined */
    int left;             /* it takes no more messages */
    unsigned long taken;  /* it needs no collective's message below this number */
};

struct vc_ranks {
    int count, rank, card;
    char name[64];
    int used;                        /* a collective ran, so that the buffers are there */
    unsigned long messages, deleted; /* collectives so far: every rank counts the same */
    unsigned long *sent, *received;  /* messages to and from each rank alone */
    struct vc_member *members;       /* NULL: a rank hears of nobody */
    struct vc_ranks *next;
    uintptr_t buffers;
};

/* Values with a flag for each byte: is it known? */
struct vc_values {
    size_t bytes;
    unsigned char *data, *known; /* in one piece of memory, which is freed by `data` */
};

#define VC_TO_ALL (-1)

struct vc_values vc_room_for(size_t bytes);
void vc_join(struct vc_ranks *ranks);  /* a new communicator */
void vc_leave(struct vc_ranks *ranks); /* and its end */
/* Send values to one rank or to all. */
void vc_post(struct vc_ranks *ranks, int to, unsigned long number, const struct vc_values *values);
/* Take a message; 0 if it has not come. It is waited for as long as it can still come. */
int vc_fetch(struct vc_ranks *ranks, int from, int to, unsigned long number, int waits,
             struct vc_values *values);

/* transfers.c: what is to come from ranks `first` to `end`, each a message of `bytes`, of which the part
   of `taken` bytes from `offset` on goes to `target`: one after the other, or reduced to one. */
struct vc_transfer {
    struct vc_ranks *ranks;
    struct vc_work work;
    int to, first, end;
    unsigned long number;
    size_t offset, taken;
    int type, operation; /* as NCCL numbers them; VC_NO_REDUCTION */
    uintptr_t target;
    struct vc_values own; /* of this rank */
};
#define VC_NO_REDUCTION (-1)
void vc_expect(const struct vc_transfer *transfer);
void vc_drop_transfers(struct vc_ranks *ranks); /* those that have not come stay unknown */
void vc_settle_ranks(struct vc_ranks *ranks);
void vc_settle_what_came(void);
void vc_tell_taken(struct vc_ranks *ranks, unsigned long oldest);
unsigned long vc_oldest_transfer(struct vc_ranks *ranks); /* of a collective; ~0: there is none */

/* reductions.c */
size_t vc_size_of_type(int type); /* 0: no arithmetic */
void vc_reduce(int type, int operation, int parts, const struct vc_values *from, size_t offset,
               struct vc_values *into);

#endif
