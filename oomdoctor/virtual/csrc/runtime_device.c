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
    (void)card;
    *value = vc_attribute(attribute);
    return cudaSuccess;
}

/* `cudaDeviceProp` is laid out as in the user's headers; what they call this function, too. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *is, int card)
{
    memset(is, 0, sizeof *is);
    snprintf(is->name, sizeof is->name, "%s", vc_settings()->name);
    is->totalGlobalMem = vc_settings()->total_bytes;
    is->major = vc_attribute(cudaDevAttrComputeCapabilityMajor);
    is->minor = vc_attribute(cudaDevAttrComputeCapabilityMinor);
    is->multiProcessorCount = vc_attribute(cudaDevAttrMultiProcessorCount);
    is->maxThreadsPerMultiProcessor = vc_attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
    is->maxThreadsPerBlock = vc_attribute(cudaDevAttrMaxThreadsPerBlock);
    is->maxBlocksPerMultiProcessor = vc_attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
    is->warpSize = vc_attribute(cudaDevAttrWarpSize);
    is->sharedMemPerBlock = (size_t)vc_attribute(cudaDevAttrMaxSharedMemoryPerBlock);
    is->sharedMemPerBlockOptin = (size_t)vc_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    is->sharedMemPerMultiprocessor =
        (size_t)vc_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    is->regsPerBlock = vc_attribute(cudaDevAttrMaxRegistersPerBlock);
    is->regsPerMultiprocessor = vc_attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
    is->l2CacheSize = vc_attribute(cudaDevAttrL2CacheSize);
    is->memPitch = (size_t)vc_attribute(cudaDevAttrMaxPitch);
    is->textureAlignment = (size_t)vc_attribute(cudaDevAttrTextureAlignment);
    for (int axis = 0; axis < 3; axis++) {
        is->maxGridSize[axis] = vc_attribute(cudaDevAttrMaxGridDimX + axis);
        is->maxThreadsDim[axis] = vc_attribute(cudaDevAttrMaxBlockDimX + axis);
    }
    is->cooperativeLaunch = is->concurrentKernels = 1;
    is->unifiedAddressing = is->managedMemory = 1;
    is->pciBusID = card + 1;
    is->uuid.bytes[0] = (char)(card + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int card)
{
    snprintf(id, (size_t)length, "0000:%02x:00.0", card + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *card, const char *id)
{
    *card = 1;
    sscanf(id, "%*x:%x", (unsigned int *)card);
    *card -= 1;
    return cudaSuccess;
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
