/* CUDA's own memory pools (cudaMallocAsync): one for each card, whoever asks for one.

   A pool takes memory of its card in pieces of 32 MiB and keeps what is given back, as PyTorch asks it
   to, until it is trimmed. How a real pool packs its pieces is not documented; here no room is lost, so
   that what it holds is the least that a real one would. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

#define PIECE ((size_t)32 << 20)
#define GRAIN 512
#define BUCKETS 4096

struct part {
    uintptr_t start;
    size_t bytes;
    struct part *next;
};

static struct pool {
    size_t used, used_high, held, held_high;
} pools[VC_MOST_CARDS];
static struct part *parts[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct part **place_of(uintptr_t address)
{
    return &parts[(address / VC_PAGE) % BUCKETS];
}

static size_t in_pieces(size_t bytes)
{
    return (bytes + PIECE - 1) / PIECE * PIECE;
}

/* Take what a pool lacks of its card; the lock is held. */
static int grow(int card, size_t bytes)
{
    struct pool *pool = &pools[card];
    if (pool->used + bytes <= pool->held)
        return 0;
    size_t more = in_pieces(pool->used + bytes - pool->held);
    if (vc_take(card, more))
        return 1;
    pool->held += more;
    if (pool->held > pool->held_high)
        pool->held_high = pool->held;
    return 0;
}

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream)
{
    int card = vc_current_card();
    size_t whole = (bytes + GRAIN - 1) / GRAIN * GRAIN;
    (void)stream;
    pthread_mutex_lock(&lock);
    if (grow(card, whole)) {
        pthread_mutex_unlock(&lock);
        return vc_fail(cudaErrorMemoryAllocation);
    }
    struct pool *pool = &pools[card];
    pool->used += whole;
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    struct part *made = malloc(sizeof *made);
    *made = (struct part){vc_reserve_addresses(card, whole), whole, NULL};
    struct part **place = place_of(made->start);
    made->next = *place;
    *place = made;
    *pointer = (void *)made->start;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream)
{
    (void)pool;
    return cudaMallocAsync(pointer, bytes, stream);
}

/* What is no part of a pool was allocated otherwise. */
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
    (void)stream;
    struct part *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct part **at = place_of((uintptr_t)pointer); *at; at = &(*at)->next)
        if ((*at)->start == (uintptr_t)pointer) {
            found = *at;
            *at = found->next;
            pools[vc_card_of(pointer)].used -= found->bytes;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (!found)
        return cudaFree(pointer);
    free(found);
    return cudaSuccess;
}

static int card_of(cudaMemPool_t pool)
{
    uintptr_t number = (uintptr_t)pool - 0x5000;
    return number < VC_MOST_CARDS ? (int)number : vc_current_card();
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int card)
{
    *pool = (cudaMemPool_t)(uintptr_t)(0x5000 + card);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int card)
{
    return cudaDeviceGetDefaultMemPool(pool, card);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
    return cudaDeviceGetDefaultMemPool(pool, properties ? properties->location.id : 0);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t least)
{
    int card = card_of(pool);
    pthread_mutex_lock(&lock);
    struct pool *one = &pools[card];
    size_t kept = in_pieces(one->used > least ? one->used : least);
    if (kept < one->held) {
        vc_give(card, one->held - kept);
        one->held = kept;
    }
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    struct pool *one = &pools[card_of(pool)];
    uint64_t bytes = attribute == cudaMemPoolAttrReservedMemCurrent ? one->held
                     : attribute == cudaMemPoolAttrReservedMemHigh  ? one->held_high
                     : attribute == cudaMemPoolAttrUsedMemCurrent   ? one->used
                     : attribute == cudaMemPoolAttrUsedMemHigh      ? one->used_high
                                                                    : 0;
    memset(value, 0, attribute < cudaMemPoolAttrReleaseThreshold ? sizeof(int) : sizeof bytes);
    if (attribute >= cudaMemPoolAttrReservedMemCurrent)
        memcpy(value, &bytes, sizeof bytes);
    return cudaSuccess;
}

/* Setting a highest figure begins it anew. */
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    struct pool *one = &pools[card_of(pool)];
    (void)value;
    if (attribute == cudaMemPoolAttrReservedMemHigh)
        one->held_high = one->held;
    else if (attribute == cudaMemPoolAttrUsedMemHigh)
        one->used_high = one->used;
    return cudaSuccess;
}
