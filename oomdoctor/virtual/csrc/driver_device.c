/* CUDA driver: cards, contexts, errors. A context is the card's primary one, whoever asks. */
#include "virtual.h"

#include <cuda.h>
#include <stdio.h>
#include <string.h>

#define FIRST_CONTEXT 0x90000

static CUcontext context_of(int card)
{
    return (CUcontext)(uintptr_t)(FIRST_CONTEXT + card);
}

CUresult cuInit(unsigned int flags)
{
    (void)flags;
    return vc_settings()->cards ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error == CUDA_SUCCESS                ? "no error"
            : error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory"
            : error == CUDA_ERROR_NOT_SUPPORTED ? "the virtual card does not model this call"
                                                : "error of the virtual card";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error == CUDA_SUCCESS                ? "CUDA_SUCCESS"
            : error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == CUDA_ERROR_NOT_SUPPORTED ? "CUDA_ERROR_NOT_SUPPORTED"
                                                : "CUDA_ERROR_UNKNOWN";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = vc_settings()->cards;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *card, int number)
{
    if (number < 0 || number >= vc_settings()->cards)
        return CUDA_ERROR_INVALID_DEVICE;
    *card = number;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice card)
{
    snprintf(name, (size_t)length, "%s", vc_kind(card)->name);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice card)
{
    *bytes = vc_kind(card)->total_bytes;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice card)
{
    *value = vc_attribute_of(card, attribute);
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice card)
{
    *major = vc_kind(card)->major;
    *minor = vc_kind(card)->minor;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *id, CUdevice card)
{
    memset(id, 0, sizeof *id);
    id->bytes[0] = (char)(vc_machine_card(card) + 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice card)
{
    snprintf(id, (size_t)length, "0000:%02x:00.0", vc_machine_card(card) + 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice card, CUdevice peer)
{
    *can = card != peer;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice card)
{
    *context = context_of(card);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice card, unsigned int *flags, int *active)
{
    (void)card;
    *flags = 0;
    *active = 1;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = context_of(vc_current_card());
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    if (context && vc_choose_card((int)((uintptr_t)context - FIRST_CONTEXT)))
        return CUDA_ERROR_INVALID_CONTEXT;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    return cuCtxSetCurrent(context);
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    return context ? cuCtxGetCurrent(context) : CUDA_SUCCESS;
}

/* The names from before CUDA 4 do the same; some libraries still look them up. */
#undef cuCtxPushCurrent
#undef cuCtxPopCurrent
CUresult cuCtxPushCurrent(CUcontext context)
{
    return cuCtxSetCurrent(context);
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    return cuCtxPopCurrent_v2(context);
}

CUresult cuCtxGetDevice(CUdevice *card)
{
    *card = vc_current_card();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
    (void)context;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    *flags = 0;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
    (void)context;
    *id = 1;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    (void)limit;
    *value = 1 << 20;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return CUDA_SUCCESS;
}
