from __future__ import annotations

import pytest

from oomdoctor.evidence.readers import read_all
from tests.unit.evidence.documents import document_of

MIB = 1 << 20


@pytest.mark.parametrize(
    ("line", "backend", "requested"),
    [
        (
            "ggml_metal_buffer_init: error: failed to allocate buffer, size =  6144.00 MiB",
            "mps",
            6144 * MIB,
        ),
        ("ggml_metal_graph_compute: command buffer 1 failed with status 5", "mps", None),
        (
            (
                "ggml_backend_sycl_buffer_type_alloc_buffer: can't allocate 4294967296 Bytes of"
                " memory on device"
            ),
            "xpu",
            4294967296,
        ),
        ("llama_kv_cache_init: failed to allocate buffer for kv cache", "other", None),
        (
            "Error: llama runner exited, you may not have enough available memory to run this",
            "other",
            None,
        ),
        (
            (
                "ggml_vulkan: Requested buffer size exceeds device buffer size limit:"
                " ErrorOutOfDeviceMemory"
            ),
            "other",
            None,
        ),
        (
            "ggml_gallocr_reserve_n_impl: failed to allocate Vulkan0 buffer of size 2147483648",
            "other",
            2147483648,
        ),
        (
            (
                "ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have"
                " enough GPU RAM to fit the quantized model."
            ),
            "other",
            None,
        ),
        ("  hipMalloc((void **) &ptr, look_ahead_size)", "hip", None),
        (
            "RuntimeError: [TM][ERROR] CUDA runtime error: out of memory /src/allocator.h:99",
            "cuda",
            None,
        ),
        (
            (
                "[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n, stream): out"
                " of memory (/src/buffers.h:7)"
            ),
            "cuda",
            None,
        ),
        (
            "[TRT] [E] 2: [virtualMemoryBuffer.cpp::resizePhysical::9] Error Code 2: OutOfMemory",
            "cuda",
            None,
        ),
        ("RuntimeError: Insufficient VRAM in split for model and cache", "cuda", None),
        ("[ERROR] extend.hpp:9 - unet alloc runtime params backend buffer failed", "other", None),
        ("RuntimeError: No enough gpu memory for runtime.", "cuda", None),
        ("[TP1] Prefill out of memory. Try to lower your batch size.", "other", None),
        (
            (
                "C:\\DmlExecutionProvider\\src\\Pool.cpp(7): Exception(2) tid(a1) 8007000E Not"
                " enough memory resources are available to complete this operation."
            ),
            "other",
            None,
        ),
        ("wgpu: Device lost: VK_ERROR_OUT_OF_DEVICE_MEMORY", "other", None),
        (
            (
                "RuntimeError: [metal::malloc] Attempting to allocate 8589934592 bytes which is"
                " greater than the maximum allowed buffer size of 4294967296 bytes."
            ),
            "mps",
            8589934592,
        ),
        (
            "[Rank:3] MODULE:PT_DEVMEM Allocation failed for size::1073741824 (1024)MB",
            "other",
            1 << 30,
        ),
        ("ERROR  TDRV:log_dev_mem  Failed to allocate 256.000MB (usage: code)", "other", 256 * MIB),
        (
            (
                "[GPU] Exceeded max size of memory object allocation: requested 6442450944 bytes,"
                " but max alloc size supported by device is 4294959104 bytes."
            ),
            "other",
            6442450944,
        ),
    ],
)
def test_an_engine_s_text_is_a_device_failure(
    line: str, backend: str, requested: int | None
) -> None:
    failure = read_all(document_of(line)).failures[0]
    said = {fact.key: fact.value for fact in failure.facts}

    assert (failure.kind, said["oom.backend"]) == ("gpu-oom", backend)
    assert said.get("oom.requested") == (
        pytest.approx(requested) if requested is not None else None
    )


@pytest.mark.parametrize(
    "line",
    [
        "ggml_cuda_host_malloc: failed to allocate 512.00 MiB of pinned memory: out of memory",
        "pinned_memory_manager.cc:101] failed to allocate pinned system memory, falling back",
        "llama_params_fit: failed to fit params to free device memory: abort",
    ],
)
def test_a_fallback_is_no_failure(line: str) -> None:
    assert read_all(document_of(line)).failures == ()


def test_a_decoder_that_goes_on_in_tiles_survived() -> None:
    line = "Warning: Ran out of memory when regular VAE decoding, retrying with tiled VAE decoding."

    failure = read_all(document_of(line)).failures[0]

    assert {"oom.caught", "serve.retried"} <= {fact.key for fact in failure.facts}


@pytest.mark.parametrize(
    "line",
    [
        "Error: llama runner process has terminated: signal: killed",
        "ERROR text_generation_launcher: Shard process was signaled to shutdown with signal 9",
    ],
)
def test_a_runner_that_was_killed_is_the_host_s_failure(line: str) -> None:
    assert [failure.kind for failure in read_all(document_of(line)).failures] == ["host-oom"]


@pytest.mark.parametrize(
    ("line", "phase"),
    [
        ("llama_model_load: error loading model: unable to allocate CUDA0 buffer", "load"),
        (
            "llama_init: failed to initialize the context: failed to allocate compute buffers",
            "serve-start",
        ),
        ("RuntimeError: Not enough memory to handle 2048 prefill tokens.", "serve-profile"),
    ],
)
def test_the_engine_s_own_words_tell_the_phase(line: str, phase: str) -> None:
    facts = read_all(document_of(line)).failures[0].facts

    assert next(fact.value for fact in facts if fact.key == "run.phase") == phase


@pytest.mark.parametrize(
    "line",
    [
        "Failed to load model - not enough GPU memory. Use more cards or fewer bits.",
        "RuntimeError: not enough device memory to load the model",
    ],
)
def test_an_engine_says_that_its_weights_do_not_fit(line: str) -> None:
    said = {fact.key: fact.value for fact in read_all(document_of(line)).facts}

    assert said["serve.says"] == "weights-exceed-device"
