"""Memory failures under other names, and the texts of other engines, are recognised once."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import torch_oom
from tests.unit.evidence.documents import document_of

RUNTIME_ADVICE = (
    "CUDA kernel errors might be asynchronously reported at some other API call.\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."
)

SEEN = [
    ("RuntimeError: CUDA error: out of memory\n" + RUNTIME_ADVICE, "cuda", "runtime", None),
    ("RuntimeError: HIP error: out of memory", "hip", "runtime", None),
    ("RuntimeError: CUDA driver error: out of memory", "cuda", "driver-call", None),
    ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
     "cuda", "cublas-handle", None),
    ("RuntimeError: cublas runtime error : resource allocation failed at /x/THCGeneral.cpp:1",
     "cuda", "cublas-handle", None),
    ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "cuda", "cudnn-handle", None),
    (('RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator'
     '.cpp":995, please report a bug to PyTorch.'), "cuda", "nvml-assert", None),
    ("RuntimeError: cuFFT error: CUFFT_ALLOC_FAILED", "cuda", "runtime", None),
    ("RuntimeError: cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `x`", "cuda",
     "runtime", None),
    ("CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62", "cuda", "driver-call",
     None),
    ("cuMemCreate(1024 MB): CUDA_ERROR_OUT_OF_MEMORY", "cuda", "driver-call", 2**30),
    ("Error out of memory at line 88 in file /src/csrc/ops.cu", "cuda", "driver-call", None),
    (("h:1:2 [3] include/alloc.h:1 NCCL WARN Cuda failure 2 'out of memory'\n"
     "h:1:2 [3] include/alloc.h:2 NCCL WARN Failed to CUDA calloc async 4194304 bytes"), "cuda",
     "nccl-alloc", 4194304),
    ("RuntimeError: UR error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)", "xpu", "runtime", None),
    ("XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4096 bytes.",
     "other", "engine", 4096),
    (("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 96.50 MiB on device 0: cudaMalloc "
     "failed: out of memory\nggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size "
     "101187584"), "cuda", "engine", 101187584),
    ("CUDA error 2 at ggml-cuda.cu:7: out of memory", "cuda", "engine", None),
    (("E rocm_driver.cc:1] failed to allocate 2.00G (2147483648 bytes) from device: hipError_t(2)\n"
     "E rocm_driver.cc:1] failed to allocate 1.80G (1932735283 bytes) from device: hipError_t(2)"),
     "hip", "engine", 2**31),
    ("ValueError: No available memory for the cache blocks. Try increasing x", "cuda", "engine",
     None),
    ("RuntimeError: CUDA out of memory occurred when warming up sampler with 8 dummy requests.",
     "cuda", "engine", None),
    ("RuntimeError: CUDA failed with error out of memory", "cuda", "engine", None),
    (("cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 1,048,576 bytes (allocated so "
     "far: 2,048 bytes)."), "other", "engine", 1048576),
    (("W bfc_allocator.cc] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.00MiB "
     "(rounded to 1048832)requested by op x"), "other", "engine", 1048832),
]  # fmt: skip


@pytest.mark.parametrize(("text", "backend", "form", "requested"), SEEN)
def test_a_disguise_is_one_failure_with_back_end_form_and_request(
    text: str, backend: str, form: str, requested: int | None
) -> None:
    failures = torch_oom.read(document_of(text)).failures

    assert len(failures) == 1
    facts = {one.key: one.value for one in failures[0].facts}
    assert (failures[0].kind, facts["oom.seen"]) == ("gpu-oom", True)
    assert (backend, form) == (facts["oom.backend"], facts["oom.form"])
    assert requested == facts.get("oom.requested")
    assert facts["oom.figures_given"] is (requested is not None)


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate`",
        "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR",
        "cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnCreate(handle)`",
        "RuntimeError: GET was unable to find an engine to execute this computation",
        "a.h:1: Check failed: err == CUBLAS_STATUS_SUCCESS (1 vs. 0) : Create cublas handle failed",
        "u.cc:22: Check failed: err == CUDNN_STATUS_SUCCESS (4 vs. 0) : Create cudnn handle failed",
        "E0102 10:10:10 common.cpp:114] Cannot create Cublas handle. Cublas won't be available.",
        "OSError: (External) CUBLAS error(1), the library was not initialized. [Hint: look up 1]",
        "CUBLAS failure 1: the library was not initialized ; GPU=0 ; expr=cublasCreate(&handle_);",
        "RuntimeError: cublasCreate failed",
        "cuSolver internal error at cusolverDnCreate",
        "RuntimeError: hipblasCreate failed with 1",
        "rocBLAS error: rocblas_create_handle failed",
        "Attempting to perform BLAS operation using StreamExecutor without BLAS support",
    ],
)
def test_a_library_that_does_not_start_is_not_announced_as_memory(text: str) -> None:
    failures = torch_oom.read(document_of(text)).failures

    assert [failure.kind for failure in failures] == ["other"]
    assert "oom.seen" not in {one.key for one in failures[0].facts}


def test_a_runtime_error_out_of_pinning_is_a_host_failure() -> None:
    text = (
        "RuntimeError: Caught RuntimeError in pin memory thread for device 0.\n"
        '  File "pin_memory.py", line 37, in do_one_step\n    data = pin_memory(data, device)\n'
        "RuntimeError: CUDA error: out of memory"
    )

    failure = torch_oom.read(document_of(text)).failures[0]

    facts = {one.key: one.value for one in failure.facts}
    assert failure.kind == "host-oom"
    assert facts["host.pinned_failed"] is True
    assert "oom.seen" not in facts


def test_a_pin_memory_option_in_a_printed_config_changes_nothing() -> None:
    text = "\n".join(["DataLoader(pin_memory=True)", *["work"] * 5, "CUDA error: out of memory"])

    assert torch_oom.read(document_of(text)).failures[0].kind == "gpu-oom"


def test_a_warning_that_the_allocator_retries_is_marked_as_caught() -> None:
    text = (
        "[torch_memory_saver.cpp] cuMemCreate CUDA_ERROR_OUT_OF_MEMORY (may not be an issue)\n"
        "[torch_memory_saver.cpp] cudaError error: 2 (out of memory)  file=core.cpp"
    )

    failures = torch_oom.read(document_of(text)).failures

    caught = [any(one.key == "oom.caught" for one in failure.facts) for failure in failures]
    assert caught == [True, False]


def test_a_handle_failure_behind_an_assertion_is_a_consequence() -> None:
    handle = "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `x`"
    text = "Indexing.cu:1: f: thread: [1,0,0] Assertion `srcIndex < n` failed.\n" + handle

    assert torch_oom.read(document_of(text)).failures[0].consequence is True
    assert torch_oom.read(document_of(handle)).failures[0].consequence is False


def test_pinned_memory_of_other_engines_is_a_host_failure() -> None:
    text = "E cuda_driver.cc] failed to alloc 8589934592 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: x"

    failure = torch_oom.read(document_of(text)).failures[0]

    facts = {one.key: one.value for one in failure.facts}
    assert (failure.kind, facts["host.requested"]) == ("host-oom", 8589934592)
    assert "oom.seen" not in facts


@pytest.mark.parametrize(
    "code",
    ["r = in_queue.get(timeout=MP_STATUS_CHECK_INTERVAL)", "torch.cuda.set_device(device_id)"],
)
def test_a_pin_thread_that_fails_before_it_pins_may_have_met_a_full_card(code: str) -> None:
    text = (
        "RuntimeError: Caught RuntimeError in pin memory thread for device 0.\n"
        f'  File "pin_memory.py", line 31, in do_one_step\n    {code}\n'
        "RuntimeError: CUDA error: out of memory"
    )

    failure = torch_oom.read(document_of(text)).failures[0]

    assert failure.kind == "gpu-oom"
    assert "host.pinned_failed" not in {one.key for one in failure.facts}
