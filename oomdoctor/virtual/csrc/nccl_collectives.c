/* NCCL's collectives, and messages from rank to rank. What is small is carried, with what is known of
   it: up to 64 KiB of anything, of sums of fractions 4 KiB, which is losses and counts but no gradients.
   After all else, the target is unknown. What a rank sends goes at once, in a group as outside of one;
   what it receives is waited for when somebody reads it (transfers.c). */
#include "ranks.h"

#include <nccl.h>
#include <stdlib.h>
#include <string.h>

#define SUMS_OF_FRACTIONS 4096 /* bytes; as in inside/memory.py */

ncclResult_t vc_take_buffers(ncclComm_t communicator);

/* Nothing is exchanged before the communicator has its buffers. */
#define NEEDS_BUFFERS(communicator) \
    do { \
        ncclResult_t failed = vc_take_buffers(communicator); \
        if (failed) \
            return failed; \
    } while (0)

static size_t bytes_of(size_t count, ncclDataType_t type)
{
    size_t each = vc_size_of_type((int)type);
    return count * (each ? each : 1); /* 8-bit numbers of several kinds */
}

/* Of pickled objects, the longest sets the length: what lies behind a shorter one counts as zeros. */
static struct vc_values values_at(const void *source, size_t bytes, ncclDataType_t type)
{
    struct vc_values values = vc_room_for(bytes);
    if (vc_peek((uintptr_t)source, values.data, values.known, bytes) && type <= ncclUint8)
        memset(values.known, 1, bytes);
    return values;
}

/* A message to all is sent, and those of ranks `first` to `end` are expected. */
static void exchange(ncclComm_t communicator, cudaStream_t stream, const void *source,
                     struct vc_transfer is)
{
    is.ranks = (struct vc_ranks *)communicator;
    is.to = VC_TO_ALL;
    is.work = vc_launch(stream);
    vc_settle_what_came();
    is.number = is.ranks->messages; /* counted at the end: until then it is not taken */
    if (source) {
        is.own.data = values_at(source, is.own.bytes, (ncclDataType_t)is.type).data;
        is.own.known = is.own.data + is.own.bytes;
        vc_post(is.ranks, VC_TO_ALL, is.number, &is.own);
    }
    if (is.target && is.taken)
        vc_expect(&is);
    else
        free(is.own.data);
    is.ranks->messages++;
    vc_tell_taken(is.ranks, vc_oldest_transfer(is.ranks));
}

ncclResult_t ncclAllGather(const void *source, void *target, size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream)
{
    NEEDS_BUFFERS(communicator);
    int ranks = ((struct vc_ranks *)communicator)->count;
    size_t bytes = bytes_of(count, type);
    if (bytes > VC_MESSAGE) {
        vc_launch(stream);
        vc_unknown((uintptr_t)target, bytes * (size_t)ranks);
        return ncclSuccess;
    }
    exchange(communicator, stream, source,
             (struct vc_transfer){.end = ranks,
                                  .taken = bytes,
                                  .own.bytes = bytes,
                                  .type = (int)type,
                                  .operation = VC_NO_REDUCTION,
                                  .target = (uintptr_t)target});
    return ncclSuccess;
}

ncclResult_t ncclBroadcast(const void *source, void *target, size_t count, ncclDataType_t type,
                           int root, ncclComm_t communicator, cudaStream_t stream)
{
    NEEDS_BUFFERS(communicator);
    int is_root = ((struct vc_ranks *)communicator)->rank == root;
    size_t bytes = bytes_of(count, type);
    if (is_root && target != source)
        vc_copy(target, source, bytes);
    if (bytes > VC_MESSAGE) {
        vc_launch(stream);
        if (!is_root)
            vc_unknown((uintptr_t)target, bytes);
        return ncclSuccess;
    }
    exchange(communicator, stream, is_root ? source : NULL,
             (struct vc_transfer){.first = root,
                                  .end = root + 1,
                                  .taken = bytes,
                                  .own.bytes = bytes,
                                  .type = (int)type,
                                  .operation = VC_NO_REDUCTION,
                                  .target = is_root ? 0 : (uintptr_t)target});
    return ncclSuccess;
}

ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root,
                       ncclComm_t communicator, cudaStream_t stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, communicator, stream);
}

/* Of `bytes` of every rank, what all of them hold from `offset` on is reduced to `taken` bytes. */
static ncclResult_t reduce(const void *source, void *target, size_t bytes, size_t offset,
                           size_t taken, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream)
{
    NEEDS_BUFFERS(communicator);
    int fractions = type != ncclInt32 && type != ncclInt64 && type != ncclUint32 &&
                    type != ncclUint64 && type != ncclInt8 && type != ncclUint8;
    if (bytes > (fractions ? SUMS_OF_FRACTIONS : VC_MESSAGE)) {
        vc_launch(stream);
        if (target)
            vc_unknown((uintptr_t)target, taken);
        return ncclSuccess;
    }
    exchange(communicator, stream, source,
             (struct vc_transfer){.end = ((struct vc_ranks *)communicator)->count,
                                  .offset = offset,
                                  .taken = target ? taken : 0,
                                  .own.bytes = bytes,
                                  .type = (int)type,
                                  .operation = (int)operation,
                                  .target = (uintptr_t)target});
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *source, void *target, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream)
{
    size_t bytes = bytes_of(count, type);
    return reduce(source, target, bytes, 0, bytes, type, operation, communicator, stream);
}

ncclResult_t ncclReduce(const void *source, void *target, size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t communicator,
                        cudaStream_t stream)
{
    size_t bytes = bytes_of(count, type);
    int is_root = ((struct vc_ranks *)communicator)->rank == root;
    return reduce(source, is_root ? target : NULL, bytes, 0, bytes, type, operation, communicator,
                  stream);
}

ncclResult_t ncclReduceScatter(const void *source, void *target, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream)
{
    const struct vc_ranks *ranks = (struct vc_ranks *)communicator;
    size_t bytes = bytes_of(count, type);
    return reduce(source, target, bytes * (size_t)ranks->count, bytes * (size_t)ranks->rank, bytes,
                  type, operation, communicator, stream);
}

ncclResult_t ncclSend(const void *source, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream)
{
    NEEDS_BUFFERS(communicator);
    struct vc_ranks *ranks = (struct vc_ranks *)communicator;
    size_t bytes = bytes_of(count, type);
    vc_launch(stream);
    vc_settle_what_came();
    if (!bytes || bytes > VC_MESSAGE)
        return ncclSuccess;
    struct vc_values values = values_at(source, bytes, type);
    vc_post(ranks, peer, ranks->sent[peer]++, &values);
    free(values.data);
    return ncclSuccess;
}

ncclResult_t ncclRecv(void *target, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream)
{
    NEEDS_BUFFERS(communicator);
    struct vc_ranks *ranks = (struct vc_ranks *)communicator;
    size_t bytes = bytes_of(count, type);
    struct vc_work work = vc_launch(stream);
    vc_settle_what_came();
    if (bytes > VC_MESSAGE)
        vc_unknown((uintptr_t)target, bytes);
    if (!bytes || bytes > VC_MESSAGE)
        return ncclSuccess;
    vc_expect(&(struct vc_transfer){.ranks = ranks,
                                    .work = work,
                                    .to = ranks->rank,
                                    .first = peer,
                                    .end = peer + 1,
                                    .number = ranks->received[peer]++,
                                    .taken = bytes,
                                    .own.bytes = bytes,
                                    .operation = VC_NO_REDUCTION,
                                    .target = (uintptr_t)target});
    return ncclSuccess;
}

/* NCCL has these three since 2.28. */
ncclResult_t ncclAlltoAll(const void *source, void *target, size_t count, ncclDataType_t type,
                          ncclComm_t communicator, cudaStream_t stream)
{
    size_t bytes = bytes_of(count, type);
    ncclResult_t result = ncclSuccess;
    for (int peer = 0; peer < ((struct vc_ranks *)communicator)->count && !result; peer++) {
        size_t at = bytes * (size_t)peer;
        result = ncclSend((const char *)source + at, count, type, peer, communicator, stream);
        if (!result)
            result = ncclRecv((char *)target + at, count, type, peer, communicator, stream);
    }
    return result;
}

ncclResult_t ncclGather(const void *source, void *target, size_t count, ncclDataType_t type,
                        int root, ncclComm_t communicator, cudaStream_t stream)
{
    const struct vc_ranks *ranks = (struct vc_ranks *)communicator;
    size_t bytes = bytes_of(count, type);
    ncclResult_t result = ncclSend(source, count, type, root, communicator, stream);
    for (int peer = 0; peer < ranks->count && ranks->rank == root && !result; peer++)
        result = ncclRecv((char *)target + bytes * (size_t)peer, count, type, peer, communicator,
                          stream);
    return result;
}

ncclResult_t ncclScatter(const void *source, void *target, size_t count, ncclDataType_t type,
                         int root, ncclComm_t communicator, cudaStream_t stream)
{
    const struct vc_ranks *ranks = (struct vc_ranks *)communicator;
    size_t bytes = bytes_of(count, type);
    ncclResult_t result = ncclSuccess;
    for (int peer = 0; peer < ranks->count && ranks->rank == root && !result; peer++)
        result = ncclSend((const char *)source + bytes * (size_t)peer, count, type, peer,
                          communicator, stream);
    return result ? result : ncclRecv(target, count, type, root, communicator, stream);
}
