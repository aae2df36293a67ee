r"""Memory texts of engines that people run on their own cards, and of diffusion programs.

`torch_oom` reads this table together with its own, so that no text counts twice.

    ggml_metal_buffer_init: error: failed to allocate buffer, size =  8192.02 MiB
    ggml_backend_sycl_buffer_type_alloc_buffer: can't allocate 5278859264 Bytes of memory on device
    llama_kv_cache_init: failed to allocate buffer for kv cache
    ggml_vulkan: Requested buffer size exceeds device memory allocation limit: ErrorOutOf...
    RuntimeError: [TM][ERROR] CUDA runtime error: out of memory /lmdeploy/src/.../allocator.h:231
    Insufficient GPU memory error: The available single GPU memory is 7372.800 MB, which is ...
    [GPU] Exceeded max size of memory object allocation: requested 5368709120 bytes, but max ...
    [TRT] [E] 2: [virtualMemoryBuffer.cpp::resizePhysical::140] Error Code 2: OutOfMemory (...)
    Warning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding.
    flux alloc runtime params backend buffer failed, num_tensors 780
    RuntimeError: No enough gpu memory for runtime.
    Error: llama runner exited, you may not have enough available memory to run this model
    Prefill out of memory. Try to lower your batch size.
    ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough ...
    D:\DmlExecutionProvider\src\Allocator.cpp(9): Exception(1) tid(3c) 8007000E Not enough ...
"""

from __future__ import annotations

from oomdoctor.evidence.signs import SIZED, Sign, gpu

ANCHORS: tuple[str, ...] = ()
"""Nothing to read here by itself."""

SIGNS: tuple[Sign, ...] = (
    Sign(
        ("retrying with tiled", "retrying with slower tiled"),
        r"[Rr]an out of memory when regular .{0,20}(?:decoding|encoding), retrying",
        "gpu-oom",
        (
            ("oom.seen", True),
            ("oom.backend", "cuda"),
            ("oom.form", "allocator"),
            ("oom.caught", True),
            ("serve.retried", True),
        ),
        "vae-retry",
    ),
    gpu(
        ("failed to allocate buffer, size", "metal_log_allocated_size", "failed with status 5"),
        rf"ggml_\w*metal\w*: (?:error: )?failed to allocate buffer, size =\s*(?P<requested>{SIZED})"
        r"|ggml_metal\w*: (?:error: )?command buffer \d+ failed with status 5",
        "mps",
        "engine",
        family="ggml",
    ),
    gpu(
        ("bytes of memory on device",),
        r"can't allocate (?P<requested>\d+ [Bb]ytes) of memory on device",
        "xpu",
        "engine",
        family="ggml",
    ),
    gpu(
        ("buffer for kv cache", "compute pp buffers", "compute tg buffers"),
        r"failed to allocate buffer for (?:the )?kv cache|failed to allocate compute \w\w buffers",
        "other",
        "engine",
        family="ggml",
    ),
    gpu(
        ("requested buffer size exceeds device",),
        r"Requested buffer size exceeds device (?:memory allocation|buffer size) limit",
        "other",
        "engine",
        family="vulkan",
    ),
    gpu(
        ("ggml_cuda_device_malloc", "cudamalloc((void", "hipmalloc((void"),
        r"(?:ggml_cuda_device_malloc|(?:cuda|hip)Malloc)\w*\(.{0,30}ptr",
        "cuda",
        "engine",
        family="ggml",
    ),
    gpu(
        ("[tm][error]", "turbomind"),
        r"\[TM\]\[(?:ERROR|FATAL)\].{0,80}out of memory",
        "cuda",
        "engine",
    ),
    gpu(
        ("[tensorrt-llm][error]",),
        r"\[TensorRT-LLM\]\[ERROR\].{0,200}(?:cudaMalloc\w*\(.{0,80}: out of memory"
        r"|[Oo]ut of (?:GPU )?memory)",
        "cuda",
        "engine",
        family="tensorrt",
    ),
    gpu(
        ("error code 2: outofmemory", "error code 1: cuda runtime (out of memory"),
        r"Error Code \d+: (?:OutOfMemory|Cuda Runtime \(out of memory\))",
        "cuda",
        "engine",
        family="tensorrt",
    ),
    gpu(
        ("insufficient gpu memory error",),
        rf"Insufficient GPU memory error: The available single GPU memory is (?P<free>{SIZED})",
        "other",
        "engine",
    ),
    gpu(
        ("insufficient vram",),
        r"Insufficient VRAM (?:in split )?for model(?: and cache)?",
        "cuda",
        "engine",
    ),
    gpu(
        ("exceeded max size of memory",),
        r"Exceeded max size of memory (?:object )?allocation: requested (?P<requested>\d+ bytes)",
        "other",
        "engine",
        family="openvino",
    ),
    gpu(
        ("backend buffer failed",),
        r"\balloc (?:\w+ ){0,3}backend buffer failed",
        "other",
        "engine",
        family="ggml",
    ),
    gpu(
        ("may not have enough available memory",),
        r"runner exited, you may not have enough available memory",
        "other",
        "runtime",
        family="ggml",
    ),
    gpu(("no enough gpu memory",), r"No enough gpu memory for ", "cuda", "engine"),
    gpu(
        ("out of memory. try to lower your batch size",),
        r"(?:Prefill|Decode) out of memory\. Try to lower your batch size",
        "other",
        "engine",
        family="kv",
    ),
    Sign(
        ("modules are dispatched on the cpu",),
        r"[Ss]ome modules are dispatched on the CPU or the disk\. Make sure you have enough",
        "gpu-oom",
        (
            ("oom.seen", True),
            ("oom.backend", "other"),
            ("oom.form", "engine"),
            ("run.phase", "load"),
        ),
    ),
    gpu(
        ("8007000e",),
        r"\bDml\w*\b.{0,300}\b8007000E\b|\b8007000E\b.{0,80}\bvideo memory",
        "other",
        "engine",
        family="onnx",
    ),
)
