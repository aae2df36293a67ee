/* NCCL: communicators are book-keeping, and of collectives only small messages move.

   A communicator takes memory for its buffers with its first collective, as NCCL does since 2.22: as
   much as is set for one of two ranks or of more (oomdoctor/virtual/outside.py). */
#include "ranks.h"

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct vc_ranks *ranks_of(ncclComm_t communicator)
{
    return (struct vc_ranks *)communicator;
}

static ncclResult_t make(ncclComm_t *communicator, int count, int rank, const char *name)
{
    struct vc_ranks *made = calloc(1, 4096); /* some code looks into it */
    made->count = count;
    made->rank = rank;
    made->card = vc_current_card();
    snprintf(made->name, sizeof made->name, "%s", name);
    vc_join(made);
    *communicator = (ncclComm_t)made;
    return ncclSuccess;
}

static __thread char last_error[96];

ncclResult_t vc_take_buffers(ncclComm_t communicator)
{
    struct vc_ranks *ranks = ranks_of(communicator);
    if (ranks->used)
        return ncclSuccess;
    char text[64];
    const struct vc_settings *as_set = vc_settings();
    size_t bytes = ranks->count > 2    ? as_set->communicator_bytes
                   : ranks->count == 2 ? as_set->pair_bytes
                                       : 0;
    ranks->used = 1;
    snprintf(text, sizeof text, "ncclCommInitRank: buffers of %zu MiB", bytes >> 20);
    vc_report(VC_ASSUMED, text);
    if (!bytes || !vc_allocate(ranks->card, bytes, &ranks->buffers))
        return ncclSuccess;
    ranks->buffers = 0;
    snprintf(last_error, sizeof last_error, "Failed to CUDA calloc %zu bytes", bytes);
    return ncclUnhandledCudaError;
}

static void give_buffers(struct vc_ranks *ranks)
{
    if (ranks && ranks->buffers)
        vc_release(ranks->buffers);
    if (ranks)
        ranks->buffers = 0;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    struct timespec now; /* another process may have had our number and left its messages */
    clock_gettime(CLOCK_REALTIME, &now);
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "%ld.%lx.%lx", (long)getpid(),
             (unsigned long)(uintptr_t)vc_fresh_handle(),
             (unsigned long)now.tv_sec * 1000000000ul + (unsigned long)now.tv_nsec);
    return ncclSuccess;
}

static ncclResult_t join(ncclComm_t *communicator, int count, const ncclUniqueId *id, int rank)
{
    char name[48];
    snprintf(name, sizeof name, "%.40s", id->internal);
    return make(communicator, count, rank, name);
}

ncclResult_t ncclCommInitRank(ncclComm_t *communicator, int count, ncclUniqueId id, int rank)
{
    return join(communicator, count, &id, rank);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *communicator, int count, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    (void)config;
    return join(communicator, count, &id, rank);
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t *communicator, int count, int rank, int id_count,
                                      ncclUniqueId *ids, ncclConfig_t *config)
{
    (void)id_count, (void)config;
    return join(communicator, count, ids, rank);
}

ncclResult_t ncclCommInitAll(ncclComm_t *communicators, int count, const int *cards)
{
    ncclUniqueId id;
    int before = vc_current_card();
    ncclResult_t result = ncclGetUniqueId(&id);
    for (int rank = 0; rank < count && !result; rank++) {
        vc_choose_card(cards ? cards[rank] : rank);
        result = join(&communicators[rank], count, &id, rank);
    }
    vc_choose_card(before);
    return result;
}

/* Every rank says its colour and key; who does not answer is taken to have our colour. */
ncclResult_t ncclCommSplit(ncclComm_t communicator, int colour, int key, ncclComm_t *made,
                           ncclConfig_t *config)
{
    (void)config;
    struct vc_ranks *ranks = ranks_of(communicator);
    int ours[2] = {colour, key}, count = 0, rank = 0;
    unsigned long message = ranks->messages++;
    struct vc_values values = vc_room_for(sizeof ours);
    memcpy(values.data, ours, sizeof ours);
    memset(values.known, 1, sizeof ours);
    vc_post(ranks, VC_TO_ALL, message, &values);
    for (int other = 0; other < ranks->count; other++) {
        int theirs[2] = {colour, other};
        int same = other == ranks->rank;
        if (same)
            theirs[1] = key;
        else if (vc_fetch(ranks, other, VC_TO_ALL, message, 1, &values))
            memcpy(theirs, values.data, sizeof theirs);
        if (theirs[0] != colour)
            continue;
        count++;
        rank += !same && (theirs[1] < key || (theirs[1] == key && other < ranks->rank));
    }
    free(values.data);
    *made = NULL;
    if (colour < 0)
        return ncclSuccess;
    char name[64];
    snprintf(name, sizeof name, "%.30s.%lu.%d", ranks->name, message, colour);
    return make(made, count, rank, name);
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator)
{
    struct vc_ranks *ranks = ranks_of(communicator);
    if (!ranks)
        return ncclSuccess;
    vc_settle_ranks(ranks);
    vc_leave(ranks);
    give_buffers(ranks);
    free(ranks->sent);
    free(ranks->received);
    free(ranks);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator)
{
    if (communicator)
        vc_leave(ranks_of(communicator));
    give_buffers(ranks_of(communicator));
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator)
{
    (void)communicator;
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t *error)
{
    (void)communicator;
    *error = ncclSuccess;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t communicator, int *count)
{
    *count = ranks_of(communicator)->count;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t communicator, int *rank)
{
    *rank = ranks_of(communicator)->rank;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t communicator, int *card)
{
    *card = ranks_of(communicator)->card;
    return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void **pointer, size_t bytes)
{
    uintptr_t address;
    if (vc_allocate(vc_current_card(), bytes, &address))
        return ncclUnhandledCudaError;
    *pointer = (void *)address;
    return ncclSuccess;
}

ncclResult_t ncclMemFree(void *pointer)
{
    vc_release((uintptr_t)pointer);
    return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t communicator, void *buffer, size_t bytes,
                              void **handle)
{
    (void)communicator, (void)buffer, (void)bytes;
    *handle = vc_fresh_handle();
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclUnhandledCudaError ? "unhandled cuda error (run with NCCL_DEBUG=INFO for details)"
           : result                         ? "error of the virtual card"
                                            : "no error";
}

const char *ncclGetLastError(ncclComm_t communicator)
{
    (void)communicator;
    return last_error;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *operation, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t communicator)
{
    (void)scalar, (void)type, (void)residence, (void)communicator;
    *operation = (ncclRedOp_t)ncclNumOps; /* by an unknown number, so that sums stay unknown */
    return ncclSuccess;
}
