"""Memory texts of serving engines, recognised with their request only: llama.cpp, vLLM, TGI, ...

Figures beside the request (KV cache, model weights) belong to the readers of those engines.
`torch_oom` reads this table together with its own, so that no text counts twice.

    ggml_backend_cuda_buffer_type_alloc_buffer: allocating 8849.72 MiB on device 0: cudaMalloc
        failed: out of memory
    ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 9279602688
    CUDA error 2 at ggml-cuda.cu:359: out of memory
    ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`
    ValueError: max_num_seqs (512) exceeds available Mamba cache blocks (140). Each decode ...
    ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.6.
    RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes.
    RuntimeError: CUDA failed with error out of memory
"""

from __future__ import annotations

from oomdoctor.evidence import engine_local_oom
from oomdoctor.evidence.signs import SIZED, Sign, gpu

ANCHORS: tuple[str, ...] = ()
"""Nothing to read here by itself."""

SIGNS: tuple[Sign, ...] = (
    *engine_local_oom.SIGNS,
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
        r"(?:failed|unable) to allocate (?:SYCL|Vulkan|Metal|MTL)(?P<index>\d*) buffer"
        r"(?: of size (?P<requested>\d+))?",
        "other",
        "engine",
        family="ggml",
    ),
    gpu(
        ("failed to allocate", "unable to allocate"),
        r"(?:failed|unable) to allocate (?:CUDA|MUSA|backend)(?P<index>\d*) buffer"
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
        (
            "device memory allocation of size",
            "erroroutofdevicememory",
            "vk_error_out_of_device_memory",
        ),
        r"Device memory allocation of size (?P<requested>\d+) failed|ErrorOutOfDeviceMemory"
        r"|VK_ERROR_OUT_OF_DEVICE_MEMORY",
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
        ("available mamba cache blocks", "cannot auto-fit max_model_len"),
        r"max_num_seqs \(\d+\) exceeds available Mamba cache blocks"
        r"|Cannot auto-fit max_model_len: not enough GPU memory",
        "cuda",
        "engine",
        family="kv",
    ),
    gpu(
        ("leave no gpu memory for the kv cache",),
        r"weights leave no GPU memory for the KV cache",
        "cuda",
        "engine",
        family="kv",
    ),
    gpu(
        # a setting turns the error into a warning
        ("memory capacity is unbalanced",),
        r"Error: The memory capacity is unbalanced",
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
        ("due to insufficient gpu memory",),
        r"Executor creation failed due to insufficient GPU memory",
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
        r"|Not enough memory to handle\b",
        "cuda",
        "engine",
        family="kv",
    ),
    gpu(("cuda failed with error",), r"CUDA failed with error out of memory", "cuda", "engine"),
    gpu(
        ("memory for requested buffer of size", "is smaller than requested bytes of"),
        # a node in a blocked layout (nchwc) runs on the CPU
        r"^(?!.*_nchwc').*Failed to allocate memory for requested buffer of size "
        r"(?P<requested>\d+)"
        r"|Available memory of (?P<free>\d+) is smaller than requested bytes of \d+",
        "other",
        "engine",
        family="onnx",
    ),
    gpu(
        ("cuda runtime (out of memory)", "requested amount of gpu memory"),
        r"Cuda Runtime \(out of memory\)"
        r"|Requested amount of GPU memory \((?P<requested>\d+ bytes)\) could not be allocated",
        "cuda",
        "engine",
        family="tensorrt",
    ),
)
