/* CUDA driver: streams, events and the launch of kernels, as in runtime_order.c. */
#include "virtual.h"

#include <cuda.h>

#define GIVES_HANDLE(handle) \
    { \
        *(handle) = vc_fresh_handle(); \
        return CUDA_SUCCESS; \
    }

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    (void)flags;
    GIVES_HANDLE(stream)
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    (void)flags, (void)priority;
    GIVES_HANDLE(stream)
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
    (void)stream;
    *priority = 0;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
    (void)stream;
    *flags = CU_STREAM_NON_BLOCKING;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
    *id = (uintptr_t)stream;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    (void)stream;
    return cuCtxGetCurrent(context);
}

/* Graphs are captured through the runtime (runtime_work.c). */
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    (void)flags;
    GIVES_HANDLE(event)
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    (void)start, (void)end;
    *milliseconds = 1;
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    vc_finish_stream(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream)
{
    return vc_is_stream_done(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    (void)flags;
    vc_wait(stream, event);
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    vc_finish_card();
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    vc_record(event, stream);
    return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
    (void)flags;
    return cuEventRecord(event, stream);
}

CUresult cuEventQuery(CUevent event)
{
    return vc_is_event_done(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event)
{
    vc_finish_event(event);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event)
{
    vc_forget_event(event);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int x, unsigned int y, unsigned int z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z,
                        unsigned int shared, CUstream stream, void **arguments, void **more)
{
    (void)function, (void)x, (void)y, (void)z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared, (void)arguments, (void)more;
    vc_launch(stream);
    return CUDA_SUCCESS;
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int x, unsigned int y,
                                   unsigned int z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared, CUstream stream,
                                   void **arguments)
{
    return cuLaunchKernel(function, x, y, z, block_x, block_y, block_z, shared, stream, arguments,
                          NULL);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *launch, CUfunction function, void **arguments,
                          void **more)
{
    (void)function, (void)arguments, (void)more;
    vc_launch(launch->hStream);
    return CUDA_SUCCESS;
}
