/* CUDA runtime: memory of the cards and of the host, and copies between them. */
#include "runtime.h"

#include <string.h>

static cudaError_t allocate(void **pointer, size_t bytes)
{
    uintptr_t address;
    if (vc_allocate(vc_current_card(), bytes, &address))
        return vc_fail(cudaErrorMemoryAllocation);
    *pointer = (void *)address;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *total)
{
    vc_free_and_total(vc_current_card(), unused, total);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    return allocate(pointer, bytes);
}

/* CUDA waits for the card before it takes memory back. */
cudaError_t cudaFree(void *pointer)
{
    vc_finish_card();
    if (pointer && vc_release((uintptr_t)pointer))
        vc_host_release(pointer); /* managed memory */
    return cudaSuccess;
}

static cudaError_t allocate_host(void **pointer, size_t bytes, enum vc_host_kind kind)
{
    *pointer = vc_host_allocate(bytes, kind);
    return *pointer ? cudaSuccess : vc_fail(cudaErrorMemoryAllocation);
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags)
{
    (void)flags;
    return allocate_host(pointer, bytes, VC_MANAGED);
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
    (void)flags;
    return allocate_host(pointer, bytes, VC_PINNED);
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
    return allocate_host(pointer, bytes, VC_PINNED);
}

cudaError_t cudaFreeHost(void *pointer)
{
    vc_host_release(pointer);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags)
{
    (void)flags;
    vc_host_register(pointer, bytes);
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *pointer)
{
    vc_host_release(pointer);
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags)
{
    (void)flags;
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *is, const void *pointer)
{
    memset(is, 0, sizeof *is);
    int card = vc_card_of(pointer);
    enum vc_host_kind kind = vc_host_kind_of(pointer);
    if (card >= 0) {
        is->type = cudaMemoryTypeDevice;
        is->device = card;
        is->devicePointer = (void *)pointer;
    } else if (kind != VC_NOT_OURS) {
        is->type = kind == VC_MANAGED ? cudaMemoryTypeManaged : cudaMemoryTypeHost;
        is->device = vc_current_card();
        is->hostPointer = is->devicePointer = (void *)pointer;
    }
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind)
{
    (void)kind;
    vc_finish_stream(NULL);
    vc_copy(target, source, bytes);
    return cudaSuccess;
}

/* A copy to host memory that is not pinned is over when this returns. */
cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)kind;
    vc_launch(stream);
    if (vc_card_of(source) >= 0 && vc_card_of(target) < 0 &&
        vc_host_kind_of(target) == VC_NOT_OURS)
        vc_finish_stream(stream);
    vc_copy(target, source, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void *target, int card, const void *source, int peer, size_t bytes,
                                cudaStream_t stream)
{
    (void)card, (void)peer;
    return cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream);
}

cudaError_t cudaMemcpy2D(void *target, size_t target_pitch, const void *source,
                         size_t source_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind)
{
    for (size_t row = 0; row < height; row++)
        cudaMemcpy((char *)target + row * target_pitch, (const char *)source + row * source_pitch,
                   width, kind);
    return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *target, size_t target_pitch, const void *source,
                              size_t source_pitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream)
{
    for (size_t row = 0; row < height; row++)
        cudaMemcpyAsync((char *)target + row * target_pitch,
                        (const char *)source + row * source_pitch, width, kind, stream);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *target, int value, size_t bytes)
{
    if (vc_card_of(target) >= 0)
        vc_filled((uintptr_t)target, value, bytes);
    else
        memset(target, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *target, int value, size_t bytes, cudaStream_t stream)
{
    vc_launch(stream);
    return cudaMemset(target, value, bytes);
}

/* A variable of a kernel lies where nothing else does: at the addresses of the last card. */
cudaError_t cudaGetSymbolAddress(void **pointer, const void *symbol)
{
    (void)symbol;
    uintptr_t last = (uintptr_t)(VC_MOST_CARDS - 1) << VC_ADDRESS_BITS;
    *pointer = (void *)(VC_FIRST_ADDRESS + last);
    return cudaSuccess;
}
