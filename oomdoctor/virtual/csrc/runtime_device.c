/* CUDA runtime: cards, versions, errors. */
#include "runtime.h"

#include <stdio.h>
#include <string.h>

static __thread cudaError_t last_error;

cudaError_t vc_fail(cudaError_t error)
{
    last_error = error;
    return error;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorNotSupported:
        return "the virtual card does not model this call";
    default: {
        static __thread char text[64];
        snprintf(text, sizeof text, "error %d on a virtual card", (int)error);
        return text;
    }
    }
}

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "cudaSuccess";
    case cudaErrorMemoryAllocation:
        return "cudaErrorMemoryAllocation";
    case cudaErrorNotSupported:
        return "cudaErrorNotSupported";
    default:
        return "cudaErrorUnknown";
    }
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = vc_settings()->cards;
    return *count ? cudaSuccess : vc_fail(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *card)
{
    *card = vc_current_card();
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int card)
{
    return vc_choose_card(card) ? vc_fail(cudaErrorInvalidDevice) : cudaSuccess;
}

cudaError_t cudaInitDevice(int card, unsigned int flags, unsigned int mode)
{
    (void)flags, (void)mode;
    return cudaSetDevice(card);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int card)
{
    *value = vc_attribute_of(card, attribute);
    return cudaSuccess;
}

/* `cudaDeviceProp` is laid out as in the user's headers; what they call this function, too. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *is, int card)
{
    memset(is, 0, sizeof *is);
    snprintf(is->name, sizeof is->name, "%s", vc_kind(card)->name);
    is->totalGlobalMem = vc_kind(card)->total_bytes;
    is->major = vc_attribute_of(card, cudaDevAttrComputeCapabilityMajor);
    is->minor = vc_attribute_of(card, cudaDevAttrComputeCapabilityMinor);
    is->multiProcessorCount = vc_attribute_of(card, cudaDevAttrMultiProcessorCount);
    is->maxThreadsPerMultiProcessor = vc_attribute_of(card, cudaDevAttrMaxThreadsPerMultiProcessor);
    is->maxThreadsPerBlock = vc_attribute_of(card, cudaDevAttrMaxThreadsPerBlock);
    is->maxBlocksPerMultiProcessor = vc_attribute_of(card, cudaDevAttrMaxBlocksPerMultiprocessor);
    is->warpSize = vc_attribute_of(card, cudaDevAttrWarpSize);
    is->sharedMemPerBlock = (size_t)vc_attribute_of(card, cudaDevAttrMaxSharedMemoryPerBlock);
    is->sharedMemPerBlockOptin = (size_t)vc_attribute_of(card, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    is->sharedMemPerMultiprocessor =
        (size_t)vc_attribute_of(card, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    is->regsPerBlock = vc_attribute_of(card, cudaDevAttrMaxRegistersPerBlock);
    is->regsPerMultiprocessor = vc_attribute_of(card, cudaDevAttrMaxRegistersPerMultiprocessor);
    is->l2CacheSize = vc_attribute_of(card, cudaDevAttrL2CacheSize);
    is->memPitch = (size_t)vc_attribute_of(card, cudaDevAttrMaxPitch);
    is->textureAlignment = (size_t)vc_attribute_of(card, cudaDevAttrTextureAlignment);
    for (int axis = 0; axis < 3; axis++) {
        is->maxGridSize[axis] = vc_attribute_of(card, cudaDevAttrMaxGridDimX + axis);
        is->maxThreadsDim[axis] = vc_attribute_of(card, cudaDevAttrMaxBlockDimX + axis);
    }
    is->cooperativeLaunch = is->concurrentKernels = 1;
    is->unifiedAddressing = is->managedMemory = 1;
    is->pciBusID = vc_machine_card(card) + 1;
    is->uuid.bytes[0] = (char)(vc_machine_card(card) + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int card)
{
    snprintf(id, (size_t)length, "0000:%02x:00.0", vc_machine_card(card) + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *card, const char *id)
{
    unsigned int bus = 0;
    sscanf(id, "%*x:%x", &bus);
    for (int one = 0; one < vc_settings()->cards; one++)
        if (vc_machine_card(one) == (int)bus - 1) {
            *card = one;
            return cudaSuccess;
        }
    return vc_fail(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int card, int peer)
{
    *can = card != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    (void)limit;
    *value = 1 << 20;
    return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function,
                                             unsigned int version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status)
{
    (void)version, (void)flags;
    *function = vc_entry_point(name);
    if (status)
        *status = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return *function || status ? cudaSuccess : vc_fail(cudaErrorSymbolNotFound);
}

#if CUDART_VERSION < 13000
cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status)
{
    return cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION, flags, status);
}
#endif
