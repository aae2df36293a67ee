"""GPU memory failures under other names: runtime errors, library handles, asserts, driver calls.

None of them states the allocator's figures; a few give the size of the failed call.

    THCudaCheck FAIL file=/pytorch/aten/src/THC/generic/THCStorage.cu line=58 error=2 : out of
        memory
    RuntimeError: cuda runtime error (2) : out of memory at /pytorch/.../THC/THCStorage.cu:58
    RuntimeError: CUDA error: out of memory
    RuntimeError: CUDA driver error: out of memory
    RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`
    RuntimeError: cublas runtime error : resource allocation failed at .../THC/THCGeneral.cpp:228
    RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED
    Check failed: err == CUBLAS_STATUS_SUCCESS (1 vs. 0) : Create cublas handle failed       (MXNet)
    (External) CUBLAS error(1), the library was not initialized.                    (PaddlePaddle)
    E0102 common.cpp:114] Cannot create Cublas handle. Cublas won't be available.          (Caffe)
    CUBLAS failure 1: the library was not initialized ; expr=cublasCreate(&handle_)  (ONNX Runtime)
    !!! Exception during processing !!! Allocation on device        (ComfyUI, cudaMallocAsync)
    RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp"
    CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62
    [torch_memory_saver.cpp] cuMemCreate CUDA_ERROR_OUT_OF_MEMORY (may not be an issue e.g. ...)
    cuMemCreate(38883 MB): CUDA_ERROR_OUT_OF_MEMORY
    Error out of memory at line 380 in file /src/csrc/pythonInterface.c
    node-a:5101:5301 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'
    node-a:5101:5301 [3] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 6291456 bytes
"""

from __future__ import annotations

from oomdoctor.evidence.signs import SIZED, Sign, gpu


def _handle(literals: tuple[str, ...], pattern: str, form: str) -> Sign:
    """Return the sign of a library that failed to start, for want of memory or otherwise."""
    states = (("oom.backend", "cuda"), ("oom.form", form))
    return Sign(literals, pattern, "other", states, form)


SIGNS: tuple[Sign, ...] = (
    Sign(
        ("failed to cuda host alloc",),
        r"NCCL WARN Failed to CUDA host alloc (?P<host>\d+ bytes)",
        "host-oom",
        (("host.allocation_failed", True), ("host.pinned_failed", True)),
        "nccl-host",
    ),
    gpu(
        ("failed to cuda calloc", "failed to cuda malloc"),
        r"Failed to CUDA (?:calloc|malloc)(?: async)? (?P<requested>\d+ bytes)",
        "cuda",
        "nccl-alloc",
        family="nccl",
    ),
    gpu(
        ("cuda failure",),
        r"Cuda failure (?:\d+ )?'out of memory'",
        "cuda",
        "nccl-alloc",
        family="nccl",
    ),
    Sign(
        ("cuda runtime error", "thcudacheck fail"),
        r"THCudaCheck FAIL file=\S*HostAllocator\S* line=\d+ error=2\b"
        r"|cuda runtime error \(2\) : out of memory at \S*HostAllocator",
        "host-oom",
        (("oom.form", "runtime"), ("oom.backend", "cuda"), ("host.pinned_failed", True)),
        "thc-host",
    ),
    Sign(
        ("cuda runtime error", "thcudacheck fail"),
        r"THCudaCheck FAIL file=\S+ line=\d+ error=2 : out of memory"
        r"|cuda runtime error \(2\) : out of memory",
        "gpu-oom",
        (
            ("oom.seen", True),
            ("oom.backend", "cuda"),
            ("oom.form", "allocator"),
            ("oom.generation", "cuda-1"),
        ),
        "thc",
        60,
    ),
    gpu(
        ("allocation on device",),
        r"^\s*(?:\w+(?:\.\w+)*Error: |!!! Exception during processing !!! )?"
        r"Allocation on device\s*$",
        "cuda",
        "allocator",
    ),
    gpu(
        ("nvml_success ==", "nvml_error"),
        r"NVML_SUCCESS == \S+ INTERNAL ASSERT FAILED"
        r"|nvml\w* ?\S* INTERNAL ASSERT FAILED at \"\S*CUDACachingAllocator",
        "cuda",
        "nvml-assert",
    ),
    gpu(
        ("cublas_status_alloc_failed",),
        r"CUBLAS_STATUS_ALLOC_FAILED",
        "cuda",
        "cublas-handle",
        family="cublas",
    ),
    gpu(
        ("_alloc_failed", "curand_status_allocation_failed"),
        r"\bCU(?:FFT|SOLVER_STATUS|SPARSE_STATUS)_ALLOC_FAILED|CURAND_STATUS_ALLOCATION_FAILED",
        "cuda",
        "runtime",
        family="cublas",
    ),
    _handle(
        ("cusolver_status_", "cusparse_status_"),
        r"CUSOLVER_STATUS_(?:INTERNAL_ERROR|NOT_INITIALIZED).{0,60}cusolver\w*Create"
        r"|CUSPARSE_STATUS_(?:INSUFFICIENT_RESOURCES|NOT_INITIALIZED)",
        "cublas-handle",
    ),
    _handle(
        ("cublas_status_not_initialized", "cublas runtime error"),
        r"CUBLAS_STATUS_NOT_INITIALIZED|cublas runtime error : library not initialized",
        "cublas-handle",
    ),
    gpu(
        ("cublas runtime error",),
        r"cublas runtime error : resource allocation failed",
        "cuda",
        "cublas-handle",
        family="cublas",
    ),
    gpu(
        ("hipblas_status_alloc_failed", "rocblas_status_memory_error"),
        r"HIPBLAS_STATUS_ALLOC_FAILED|rocblas_status_memory_error",
        "hip",
        "cublas-handle",
        family="cublas",
    ),
    gpu(
        ("cudnn_status_alloc_failed", "device_allocation_failed"),
        r"CUDNN_STATUS_(?:ALLOC_FAILED|INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)",
        "cuda",
        "cudnn-handle",
        family="cudnn",
    ),
    _handle(
        ("cudnn_status_",), r"CUDNN_STATUS_(?:NOT_INITIALIZED|INTERNAL_ERROR)\b", "cudnn-handle"
    ),
    _handle(
        (
            *("blascreate", "cusolverdncreate", "cusolverspcreate", "cusparsecreate"),
            *("create cublas handle", "create solver handle", "rocblas_create_handle"),
            *("cublas_status_success (", "cublas error(", "cublas failure", "without blas support"),
        ),
        r"(?i)\b(?:cu|hip)(?:blas(?:Lt)?|solver[DS][np]|sparse)Create(?:Handle)?\b[^\n]{0,40}?\bfail"
        r"|\b(?:error|fail\w*)\b[^\n]{0,200}\b(?:cu|hip)(?:blas(?:Lt)?|solver[DS][np]|sparse)Create"
        r"|create (?:a )?(?:cublas|solver) handle|rocblas_create_handle\b[^\n]{0,40}?\bfail"
        r"|== CUBLAS_STATUS_SUCCESS \([13] vs\. 0\)|\bCUBLAS (?:error ?\(|failure )[13]\b"
        r"|using StreamExecutor without BLAS support",
        "cublas-handle",
    ),
    _handle(
        ("create cudnn handle", "cudnncreate", "cudnn_status_success (", "cudnn error("),
        r"(?i)create (?:a )?cudnn handle|\bcudnnCreate\b[^\n]{0,40}?\bfail"
        r"|\b(?:error|fail\w*)\b[^\n]{0,200}\bcudnnCreate\b"
        r"|== CUDNN_STATUS_SUCCESS \([124] vs\. 0\)|\bCUDNN error ?\([124]\)",
        "cudnn-handle",
    ),
    _handle(
        ("cudnn algorithm to run convolution", "find an engine to execute this computation"),
        r"(?i)unable to find (?:a valid cudnn algorithm to run|an engine to execute this)",
        "cudnn-handle",
    ),
    Sign(
        ("may not be an issue",),
        r"torch_memory_saver\S*\].*(?i:out.of.memory).*may not be an issue",
        "gpu-oom",
        (
            ("oom.seen", True),
            ("oom.backend", "cuda"),
            ("oom.form", "driver-call"),
            ("oom.caught", True),
        ),
        "driver-call-caught",
    ),
    gpu(
        ("cumem_allocator", "torch_memory_saver"),
        r"(?i)cuda error: out of memory at \S*cumem_allocator"
        r"|torch_memory_saver\S*\].{0,200}out.of.memory",
        "cuda",
        "driver-call",
        family="driver-call",
    ),
    gpu(
        ("hipmalloc", "hipmem"),
        r"\bhipM(?:alloc|em)\w*[^\n]{0,80}?(?i:out.?of.?memory)",
        "hip",
        "driver-call",
        family="driver-call",
    ),
    gpu(
        ("cumem", "cudamalloc"),
        rf"\b(?:cuMem|cudaMalloc)\w*(?:\((?P<requested>{SIZED})\))?"
        r"[^\n]{0,80}?(?i:out.?of.?memory)",
        "cuda",
        "driver-call",
        family="driver-call",
    ),
    gpu(
        ("cuda driver error",),
        r"(?i)cuda driver error:? ?\S{0,40}? ?out of memory",
        "cuda",
        "driver-call",
    ),
    gpu(
        ("error out of memory at line",),
        r"Error out of memory at line \d+",
        "cuda",
        "driver-call",
    ),
    gpu(
        ("hip error", "hiperroroutofmemory"),
        r"(?i)HIP (?:runtime )?error\b.{0,120}?out of memory|hipErrorOutOfMemory",
        "hip",
        "runtime",
        family="runtime",
    ),
    gpu(
        ("out of memory", "cudaerrormemoryallocation", "cuda_error_out_of_memory"),
        r"(?i)CUDA (?:runtime |API )?error\b.{0,160}?\bout of memory"
        r"|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY",
        "cuda",
        "runtime",
        family="runtime",
    ),
)
