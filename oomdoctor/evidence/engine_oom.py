"""Memory texts of other engines, recognised with their request only: TF, JAX, llama.cpp, vLLM.

Figures beside the request (KV cache, model weights) belong to the readers of those engines.
`torch_oom` reads this table together with its own, so that no text counts twice.

    Allocator (GPU_0_bfc) ran out of memory trying to allocate 56.25MiB (rounded to 58982400)...
    XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4770354232 bytes.
    failed to allocate 5.95G (6390482944 bytes) from device: hipError_t(1002)
    ggml_backend_cuda_buffer_type_alloc_buffer: allocating 8849.72 MiB on device 0: cudaMalloc
        failed: out of memory
    ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 9279602688
    CUDA error 2 at ggml-cuda.cu:359: out of memory
    ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`
    RuntimeError: CUDA failed with error out of memory
    ResourceExhaustedError: Out of memory error on GPU 0. Cannot allocate 2.2GB memory on GPU 0, ...
    cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 1,073,741,824 bytes (allocated ...
"""

from __future__ import annotations

from oomdoctor.evidence.signs import SIZED, Sign, gpu

ANCHORS: tuple[str, ...] = ()
"""Nothing to read here by itself."""

_HOST = (("host.allocation_failed", True),)
_PINNED = (*_HOST, ("host.pinned_failed", True))
_UNIT = r"\d[\d,]*(?:\.\d+)?\s*[KMGT](?:i?B)?"

SIGNS: tuple[Sign, ...] = (
    Sign(
        ("on host:", "pinned host memory", "cuda_host_bfc"),
        r"failed to alloc(?:ate)? (?P<host>\d+ bytes) on host: "
        r"|could not allocate pinned host memory of size: \d+"
        r"|Allocator \(\w*host_bfc\) ran out of memory trying to allocate \S+",
        "host-oom",
        _PINNED,
        "pinned-host",
    ),
    Sign(
        ("oom when allocating tensor",),
        r"OOM when allocating tensor.*(?:device:CPU|by allocator (?:cpu|mklcpu))",
        "host-oom",
        _HOST,
        "tf-host",
    ),
    Sign(
        ("ran out of memory trying to allocate",),
        rf"Allocator \(\w+\) ran out of memory trying to allocate (?P<requested>{_UNIT})"
        r".*this is not a failure",
        "gpu-oom",
        (
            ("oom.seen", True),
            ("oom.backend", "other"),
            ("oom.form", "engine"),
            ("oom.caught", True),
        ),
        "tf-warning",
    ),
    gpu(
        ("ran out of memory trying to allocate",),
        rf"Allocator \(\w+\) ran out of memory trying to allocate (?:{_UNIT}|\d+ ?B)"
        r"(?: \(rounded to (?P<requested>\d+)\))?",
        "other",
        "engine",
        family="tf",
    ),
    gpu(
        ("oom when allocating tensor",),
        r"OOM when allocating tensor with shape",
        "other",
        "engine",
        family="tf",
    ),
    gpu(
        ("from device: hip",),
        rf"failed to allocate {_UNIT} \((?P<requested>\d+ bytes)\) from device: [hH][iI][pP]",
        "hip",
        "engine",
        family="tf-reserve",
    ),
    gpu(
        ("from device: ",),
        rf"failed to allocate {_UNIT} \((?P<requested>\d+ bytes)\) from device: ",
        "cuda",
        "engine",
        family="tf-reserve",
    ),
    gpu(
        ("out of memory while trying to allocate", "out of memory allocating"),
        r"Out of memory (?:while trying to allocate|allocating) (?P<requested>[\d,]+ bytes)"
        r"(?: \(allocated so far: (?P<allocated>[\d,]+ bytes)"
        r"(?:, limit set to: (?P<allowed>[\d,]+ bytes))?)?",
        "other",
        "engine",
        family="xla",
    ),
    gpu(
        ("failed to allocate request for",),
        r"Failed to allocate request for \S+ ?\((?P<requested>\d+)B\)"
        r"(?: on device ordinal (?P<index>\d+))?",
        "other",
        "engine",
        family="xla",
    ),
    gpu(
        ("resource_exhausted", "resourceexhaustederror", "in memory space hbm"),
        r"RESOURCE_EXHAUSTED.*(?i:out of memory|allocat|ran out)"
        r"|Ran out of memory in memory space hbm",
        "other",
        "engine",
        family="xla",
    ),
    gpu(
        ("cudamalloc failed", "hipmalloc failed"),
        rf"allocating (?P<requested>{SIZED}) on device (?P<index>\d+): \w+ failed: out of memory",
        "cuda",
        "engine",
        family="ggml",
    ),
    gpu(
        ("failed to allocate rocm", "unable to allocate rocm"),
        r"(?:failed|unable) to allocate ROCm(?P<index>\d+) buffer(?: of size (?P<requested>\d+))?",
        "hip",
        "engine",
        family="ggml",
    ),
    gpu(
        ("failed to allocate", "unable to allocate"),
        r"(?:failed|unable) to allocate (?:CUDA|SYCL|Vulkan|backend)(?P<index>\d*) buffer"
        r"(?: of size (?P<requested>\d+))?",
        "cuda",
        "engine",
        family="ggml",
    ),
    gpu(
        ("failed to allocate compute buffers",),
        r"failed to allocate compute buffers",
        "other",
        "engine",
        family="ggml",
    ),
    gpu(
        ("ggml-cuda",),
        r"CUDA error 2 at \S*ggml-cuda\S*: out of memory",
        "cuda",
        "engine",
        family="ggml",
    ),
    gpu(
        ("device memory allocation of size", "erroroutofdevicememory"),
        r"Device memory allocation of size (?P<requested>\d+) failed|ErrorOutOfDeviceMemory",
        "other",
        "engine",
        family="vulkan",
    ),
    gpu(
        ("available memory for the cache blocks",),
        r"No available memory for the cache blocks",
        "cuda",
        "engine",
        family="kv",
    ),
    gpu(
        ("kv cache",),
        r"max(?:imum)? (?:model|seq)\w* len\w* \(\d+\).{0,80}"
        r"(?:stored in KV cache|KV cache is needed)",
        "cuda",
        "engine",
        family="kv",
    ),
    gpu(
        ("less than desired gpu memory utilization",),
        rf"Free memory on device.{{0,40}}?\([\d.]+/(?P<capacity>{SIZED})\) on startup"
        r" is less than desired GPU memory utilization",
        "cuda",
        "engine",
        family="kv",
    ),
    gpu(
        ("out of memory occurred when",),
        r"CUDA out of memory occurred when",
        "cuda",
        "engine",
    ),
    gpu(
        ("--mem-fraction-static", "not enough memory to handle"),
        r"Not enough memory\. Please try to increase --mem-fraction-static"
        r"|Not enough memory to handle ",
        "cuda",
        "engine",
        family="kv",
    ),
    gpu(("cuda failed with error",), r"CUDA failed with error out of memory", "cuda", "engine"),
    gpu(
        ("memory for requested buffer of size", "is smaller than requested bytes of"),
        r"Failed to allocate memory for requested buffer of size (?P<requested>\d+)"
        r"|Available memory of (?P<free>\d+) is smaller than requested bytes of \d+",
        "other",
        "engine",
        family="onnx",
    ),
    gpu(
        ("out of memory error on gpu",),
        rf"Out of memory error on GPU (?P<index>\d+)\. Cannot allocate (?P<requested>{SIZED})"
        rf".{{0,80}}?(?:, (?P<allocated>{SIZED}) memory has been allocated)?"
        rf"(?: and)? available memory is only (?P<free>{SIZED})",
        "cuda",
        "engine",
        family="paddle",
    ),
    gpu(
        ("cuda runtime (out of memory)", "requested amount of gpu memory"),
        r"Cuda Runtime \(out of memory\)"
        r"|Requested amount of GPU memory \((?P<requested>\d+ bytes)\) could not be allocated",
        "cuda",
        "engine",
        family="tensorrt",
    ),
    gpu(
        ("not enough gpu video memory",),
        r"(?:Could not allocate tensor with (?P<requested>\d+ bytes)\. )?"
        r"There is not enough GPU video memory",
        "other",
        "engine",
    ),
    gpu(("-217:gpu api call",), r"\(-217:Gpu API call\) out of memory", "cuda", "engine"),
    gpu(
        ("device out of memory:101",),
        rf"Failed to allocate memory of size (?P<requested>{SIZED}) \(Device: (?P<index>\d+), "
        rf"Capacity: (?P<capacity>{SIZED}), Allocated: (?P<allocated>{SIZED})",
        "other",
        "engine",
    ),
    gpu(
        ("bad_alloc: cuda error", "bad_alloc: out_of_memory"),
        r"std::bad_alloc: (?:out_of_memory: )?CUDA error",
        "cuda",
        "engine",
    ),
    gpu(
        ("not enough space to allocate",),
        r"Out of Memory: Not enough space to allocate (?P<requested>\d+ B)\b",
        "other",
        "engine",
    ),
)
