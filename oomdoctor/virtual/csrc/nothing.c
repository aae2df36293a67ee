/* Functions that rightly do nothing here: work that is let go, and notes to a driver that is none.

   They have no outputs in host memory. Everything else that is not written by hand is generated from
   the headers (oomdoctor/virtual/rest.py) and reported when it is called. */

/* Arguments are the caller's affair on every platform that CUDA has; so none is named. */
#define NOTHING(name) \
    int name(void) \
    { \
        return 0; \
    }

/* runtime: kernels */
NOTHING(__cudaRegisterFatBinaryEnd)
NOTHING(__cudaUnregisterFatBinary)
NOTHING(__cudaRegisterFunction)
NOTHING(__cudaRegisterVar)
NOTHING(__cudaRegisterManagedVar)
NOTHING(__cudaRegisterHostVar)
NOTHING(cudaFuncSetAttribute)
NOTHING(cudaFuncSetCacheConfig)
NOTHING(cudaKernelSetAttributeForDevice)
NOTHING(cudaLibraryUnload)

/* runtime: streams and graphs (runtime_order.c keeps the order of work) */
NOTHING(cudaStreamDestroy)
NOTHING(cudaStreamSetAttribute)
NOTHING(cudaStreamUpdateCaptureDependencies)
NOTHING(cudaThreadExchangeStreamCaptureMode)
NOTHING(cudaGraphUpload)
NOTHING(cudaGraphDestroy)
NOTHING(cudaGraphExecDestroy)

/* runtime: advice */
NOTHING(cudaDeviceEnablePeerAccess)
NOTHING(cudaDeviceSetLimit)
NOTHING(cudaDeviceReset)
NOTHING(cudaSetDeviceFlags)
NOTHING(cudaCtxResetPersistingL2Cache)
NOTHING(cudaMemAdvise)
NOTHING(cudaMemPrefetchAsync)
NOTHING(cudaMemPoolSetAccess)
NOTHING(cudaMemPoolDestroy)
NOTHING(cudaMemcpyToSymbol)
NOTHING(cudaMemcpyToSymbolAsync)
NOTHING(cudaProfilerStart)
NOTHING(cudaProfilerStop)
NOTHING(cudaIpcCloseMemHandle)

/* driver: the same */
NOTHING(cuFuncSetAttribute)
NOTHING(cuFuncSetCacheConfig)
NOTHING(cuKernelSetAttribute)
NOTHING(cuModuleUnload)
NOTHING(cuLibraryUnload)
NOTHING(cuCtxSetLimit)
NOTHING(cuCtxEnablePeerAccess)
NOTHING(cuDevicePrimaryCtxRelease_v2)
NOTHING(cuDevicePrimaryCtxSetFlags_v2)
NOTHING(cuStreamDestroy_v2)
NOTHING(cuMemPrefetchAsync)
NOTHING(cuMemPrefetchAsync_v2)
NOTHING(cuProfilerStart)
NOTHING(cuProfilerStop)

/* driver: pages are counted when they are made, so mapping them changes nothing */
NOTHING(cuMemMap)
NOTHING(cuMemUnmap)
NOTHING(cuMemSetAccess)
NOTHING(cuMemAddressFree)

/* triton and cuDNN describe copies to kernels that never run */
NOTHING(cuTensorMapEncodeTiled)
NOTHING(cuTensorMapEncodeIm2col)

/* NCCL: what is sent goes at once, and what is received is waited for when it is read */
NOTHING(ncclGroupStart)
NOTHING(ncclGroupEnd)
NOTHING(ncclRedOpDestroy)
NOTHING(ncclCommDeregister)
