/* CUDA runtime: graphs, what the host does in the order of a stream, and what kernels are like. */
#include "runtime.h"

#include <string.h>

/* Capturing: which stream does it, and under which id; nothing is recorded. */
static cudaStream_t capturing;
static int captures;
static unsigned long long capture_id;

static enum cudaStreamCaptureStatus status_of(cudaStream_t stream)
{
    return captures && stream == capturing ? cudaStreamCaptureStatusActive
                                           : cudaStreamCaptureStatusNone;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    (void)mode;
    capturing = stream;
    captures = 1;
    capture_id++;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    (void)stream;
    captures = 0;
    *graph = vc_fresh_handle();
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    *status = status_of(stream);
    return cudaSuccess;
}

static cudaError_t capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                unsigned long long *id, cudaGraph_t *graph,
                                const cudaGraphNode_t **nodes, size_t *count)
{
    *status = status_of(stream);
    if (id)
        *id = capture_id;
    if (graph)
        *graph = (cudaGraph_t)0x7000;
    if (nodes)
        *nodes = NULL;
    if (count)
        *count = 0;
    return cudaSuccess;
}

#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
                                     size_t *count)
{
    if (edges)
        *edges = NULL;
    return capture_info(stream, status, id, graph, nodes, count);
}
#else
/* The header renames the function that has all arguments to _v2; torch calls that one. */
#undef cudaStreamGetCaptureInfo
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id)
{
    return capture_info(stream, status, id, NULL, NULL, NULL);
}

cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                        unsigned long long *id, cudaGraph_t *graph,
                                        const cudaGraphNode_t **nodes, size_t *count)
{
    return capture_info(stream, status, id, graph, nodes, count);
}
#endif

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    (void)flags;
    *graph = vc_fresh_handle();
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *runnable, cudaGraph_t graph,
                                 unsigned long long flags)
{
    (void)graph, (void)flags;
    *runnable = vc_fresh_handle();
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *runnable, cudaGraph_t graph,
                                          unsigned long long flags)
{
    return cudaGraphInstantiate(runnable, graph, flags);
}

/* One node: torch warns of an empty graph. */
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    (void)graph;
    if (nodes && *count)
        nodes[0] = vc_fresh_handle();
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    (void)stream;
    if (function)
        function(argument);
    return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function,
                                  void *argument, unsigned int flags)
{
    (void)flags;
    if (function)
        function(stream, cudaSuccess, argument);
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *is, const void *function)
{
    (void)function;
    memset(is, 0, sizeof *is);
    is->maxThreadsPerBlock = 1024;
    is->numRegs = 32;
    is->ptxVersion = is->binaryVersion = vc_binary_version();
    is->maxDynamicSharedSizeBytes = 48 << 10;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks,
                                                                   const void *function,
                                                                   int threads, size_t shared,
                                                                   unsigned int flags)
{
    (void)function, (void)threads, (void)shared, (void)flags;
    *blocks = 2;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                          int threads, size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads,
                                                                  shared, 0);
}

cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *function,
                                           const cudaLaunchConfig_t *launch)
{
    (void)function, (void)launch;
    *clusters = 2;
    return cudaSuccess;
}

/* How compiled code registers its kernels: the code itself is never loaded. */
cudaError_t __cudaGetKernel(void **kernel, const void *function)
{
    *kernel = (void *)function;
    return cudaSuccess;
}

void **__cudaRegisterFatBinary(void *binary)
{
    static void *handle[2];
    (void)binary;
    return handle;
}

char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

/* kernel<<<grid, block, shared, stream>>>: compiled code hands this to itself through the runtime. */
static __thread struct {
    dim3 grid, block;
    size_t shared;
    void *stream;
} configured;

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
    configured.grid = grid;
    configured.block = block;
    configured.shared = shared;
    configured.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = configured.grid;
    *block = configured.block;
    *shared = configured.shared;
    *(void **)stream = configured.stream;
    return cudaSuccess;
}
