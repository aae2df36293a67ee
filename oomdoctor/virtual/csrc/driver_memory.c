/* CUDA driver: memory, copies, and the pages and address ranges of expandable segments. */
#include "virtual.h"

#include <cuda.h>
#include <stdlib.h>
#include <string.h>

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes)
{
    uintptr_t found;
    if (vc_allocate(vc_current_card(), bytes, &found))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = found;
    return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address)
{
    return vc_release(address) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t *unused, size_t *total)
{
    vc_free_and_total(vc_current_card(), unused, total);
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(CUdeviceptr *start, size_t *bytes, CUdeviceptr address)
{
    uintptr_t first;
    size_t found = vc_block_of(address, &first);
    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    if (start)
        *start = first;
    if (bytes)
        *bytes = found;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocHost(void **pointer, size_t bytes)
{
    *pointer = vc_host_allocate(bytes, VC_PINNED);
    return *pointer ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
    (void)flags;
    return cuMemAllocHost(pointer, bytes);
}

CUresult cuMemFreeHost(void *pointer)
{
    vc_host_release(pointer);
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister(void *pointer, size_t bytes, unsigned int flags)
{
    (void)flags;
    vc_host_register(pointer, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *pointer)
{
    vc_host_release(pointer);
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *device, void *host, unsigned int flags)
{
    (void)flags;
    *device = (uintptr_t)host;
    return CUDA_SUCCESS;
}

/* Expandable segments: addresses are reserved, pages are made, and only pages count. */
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags)
{
    (void)alignment, (void)wanted, (void)flags;
    *address = vc_reserve_addresses(vc_current_card(), bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
    (void)flags;
    int card = properties->location.id;
    if (card < 0 || card >= vc_settings()->cards)
        return CUDA_ERROR_INVALID_DEVICE;
    return vc_take_pages(card, bytes, handle) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    vc_give_pages(handle);
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)
{
    (void)properties, (void)option;
    *bytes = VC_PAGE;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    int card = vc_card_of((void *)address);
    if (card < 0)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
        CUcontext context;
        cuDevicePrimaryCtxRetain(&context, card);
        *(CUcontext *)value = context;
        break;
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(CUmemorytype *)value = CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)value = address;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)value = 1;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(int *)value = 0;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = card;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return cuMemGetAddressRange(value, NULL, address);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        return cuMemGetAddressRange(NULL, value, address);
    default:
        vc_report(VC_REFUSED, "cuPointerGetAttribute of another attribute");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD(CUdeviceptr target, const void *source, size_t bytes)
{
    vc_copy((void *)target, source, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr target, const void *source, size_t bytes, CUstream stream)
{
    vc_launch(stream);
    return cuMemcpyHtoD(target, source, bytes);
}

CUresult cuMemcpyDtoH(void *target, CUdeviceptr source, size_t bytes)
{
    vc_finish_stream(NULL);
    vc_copy(target, (void *)source, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync(void *target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    vc_launch(stream);
    if (vc_host_kind_of(target) == VC_NOT_OURS)
        vc_finish_stream(stream);
    vc_copy(target, (void *)source, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoD(CUdeviceptr target, CUdeviceptr source, size_t bytes)
{
    vc_copy((void *)target, (void *)source, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    vc_launch(stream);
    return cuMemcpyDtoD(target, source, bytes);
}

CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t bytes, CUstream stream)
{
    vc_launch(stream);
    vc_filled(target, value, bytes);
    return CUDA_SUCCESS;
}

/* Signals between cards, 4 bytes each; what is written is remembered. */
CUresult cuMemsetD32Async(CUdeviceptr target, unsigned int value, size_t count, CUstream stream)
{
    (void)stream;
    for (size_t i = 0; i < count && i < VC_MESSAGE / 4; i++)
        vc_written(target + 4 * i, &value, sizeof value);
    return CUDA_SUCCESS;
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr target, cuuint32_t value,
                              unsigned int flags)
{
    (void)flags;
    return cuMemsetD32Async(target, value, 1, stream);
}
