/* What a communicator of the virtual cards is, and how its ranks exchange small messages. */
#ifndef OOMDOCTOR_VIRTUAL_RANKS_H
#define OOMDOCTOR_VIRTUAL_RANKS_H

#include "virtual.h"

struct vc_ranks {
    int count, rank, card;
    char name[64];
    int used;     /* a collective ran, so that the buffers are there */
    int messages; /* collectives so far: every rank counts the same */
    uintptr_t buffers;
};

/* Leave a message for the others. */
void vc_post(struct vc_ranks *ranks, int message, const void *data, size_t bytes);
/* Take another rank's message; 0 if it does not come in time. */
int vc_fetch(struct vc_ranks *ranks, int message, int rank, void *data, size_t bytes);

#endif
