/* CUDA driver: modules and kernels. Any code loads, and none of it runs. */
#include "virtual.h"

#include <cuda.h>

#define GIVES_HANDLE(handle) \
    { \
        *(handle) = vc_fresh_handle(); \
        return CUDA_SUCCESS; \
    }

CUresult cuModuleLoad(CUmodule *module, const char *file)
{
    (void)file;
    GIVES_HANDLE(module)
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    (void)image;
    GIVES_HANDLE(module)
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                            CUjit_option *options, void **values)
{
    (void)image, (void)count, (void)options, (void)values;
    GIVES_HANDLE(module)
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    (void)image;
    GIVES_HANDLE(module)
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module, (void)name;
    GIVES_HANDLE(function)
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule module)
{
    (void)module;
    *count = 1;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

/* A variable of a module lies at the addresses of the last card, where nothing else does. */
CUresult cuModuleGetGlobal(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name)
{
    (void)module, (void)name;
    uintptr_t last = (uintptr_t)(VC_MOST_CARDS - 1) << VC_ADDRESS_BITS;
    if (address)
        *address = VC_FIRST_ADDRESS + last;
    if (bytes)
        *bytes = 4096;
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
                           void **values, unsigned int count, CUlibraryOption *library_options,
                           void **library_values, unsigned int library_count)
{
    (void)code, (void)options, (void)values, (void)count;
    (void)library_options, (void)library_values, (void)library_count;
    GIVES_HANDLE(library)
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    (void)library, (void)name;
    GIVES_HANDLE(kernel)
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    (void)library;
    GIVES_HANDLE(module)
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    (void)kernel;
    GIVES_HANDLE(function)
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    (void)function;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 32;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = vc_binary_version();
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = 48 << 10;
        break;
    default:
        *value = 0;
    }
    return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice card)
{
    (void)card;
    return cuFuncGetAttribute(value, attribute, (CUfunction)kernel);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                     size_t shared)
{
    (void)function, (void)threads, (void)shared;
    *blocks = 2;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function,
                                      const CUlaunchConfig *launch)
{
    (void)function, (void)launch;
    *clusters = 16;
    return CUDA_SUCCESS;
}
