"""Device memory running out in a library's own words is recognised; advice and the host's not."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import host_signs, torch_oom
from oomdoctor.evidence.readers import read_all
from tests.unit.evidence.documents import document_of

SEEN = [
    ("RuntimeError: after cudaLaunch in triple_chevron_launcher::launch(): out of memory", None),
    (
        ("RuntimeError: [enforce fail at context_gpu.cu:99] error == cudaSuccess. 2 vs 0. "
        "Error at: /src/caffe2/core/context_gpu.cu:99: out of memory"),
        None,
    ),
    ("terminate called after throwing an instance of 'thrust::system::detail::bad_alloc'", None),
    ("  what():  out of memory: out of memory in cudaMalloc call", None),
    ("RuntimeError: for_each: failed to synchronize: out of memory: out of memory", None),
    ("MXNetError: Check failed: e == cudaSuccess || e == cudaUnloading: CUDA: out of memory", None),
    ("MemoryError: std::bad_alloc: out_of_memory: RMM failure at: Maximum pool exceeded", None),
    ("rmm.memory_resource.RMMError: RMM_ERROR_OUT_OF_MEMORY", None),
    ("RuntimeException: [ONNXRuntimeError] : 6 : CUDA failure 2: out of memory ; GPU=0", None),
    ("pyopencl._cl.MemoryError: clEnqueueNDRangeKernel failed: MEM_OBJECT_ALLOCATION_FAILURE",
     None),
    ("pyopencl._cl.RuntimeError: clWaitForEvents failed: OUT_OF_RESOURCES", None),
    ("LightGBMError: boost::compute: Memory Object Allocation Failure", None),
    (("F0102 11:44:32.1 28 syncedmem.cpp:5] Check failed: error == cudaSuccess (2 vs. 0)  out of "
     "memory"), None),
    ("[ERROR] cudaMalloc failed with error code 2", None),
    ("InternalError: cudaGetDevice() failed. Status: out of memory", None),
    ("InternalError: Dst tensor is not copied from host (GPU out of memory)", None),
    ("ERROR: LoadError: Out of GPU memory trying to allocate 6.000 GiB", 6 * 2**30),
    ("RuntimeError: Failed to allocate 1048576 bytes on device 'cuda:0'", 1048576),
    ("[INTERNAL] failed to allocate CUDA memory with byte size 67108864 on GPU 0", 67108864),
    ("AssertionError: GPU is out of memory", None),
    ("System is out of GPU memory", None),
    ("thrust::system::system_error: after cudaFuncGetAttributes: out of memory", None),
    ("RuntimeError: DML allocator out of memory!", None),
    ("RuntimeError: HPU out of memory while compiling the graph", None),
    ("aclrtMallocAlign32 failed: out of memory", None),
    ("CUDA: Out of memory", None),
    ("cuda out of memory!", None),
    ("[ERROR] HIP - Out Of Memory", None),
    ("worker 3: cudaError 2 while the weights were woken up", None),
    ("cudaError_t: 2", None),
    ("failed, CUDA error: 2", None),
    ("CUDA Error 2 (engine.cu:41)", None),
    ("CUresult 2 in cuMemCreate", None),
    ("[torch_memory_saver.cpp] CUresult error  result=2 file=csrc/x.cpp func=cu_mem_create", None),
    ("[torch_memory_saver.cpp] hipError_t error  result=2 file=csrc/x.cpp func=resume", None),
    ("Check failed with cudaErrorMemoryAllocation", None),
]  # fmt: skip

UNSEEN = [
    "W external/tsl/bfc_allocator.cc:291] Allocator (GPU_0_bfc) ran out of memory for 2GiB",
    "If you run out of memory on the GPU, lower the batch size.",
    "# on small GPUs this fails: out of memory",
    "Tip: set --lowvram if this fails because the GPU is out of memory",
    "WARNING: allocation failed on GPU 0, out of memory, trying a smaller batch",
    "ValueError: pass offload=True to avoid running out of memory on the GPU",
    "This option prevents failed runs with out of memory errors on CUDA devices.",
    "no failure: no GPU out of memory so far",
    "note: error: out of memory on GPU can be avoided with checkpointing",
    "srun: error: gpu12: task 0: Out Of Memory",
    "error: cgroup of the GPU job ran out of memory",
    "cc1plus: out of memory allocating 65536 bytes for kernels.cu, failed",
    "nvcc fatal: out of memory while compiling kernels.cu",
    "cudaHostAlloc failed: out of memory",
    "ERROR: failed to allocate 8 GPUs: insufficient resources",
    "terminate called after throwing an instance of 'std::bad_alloc'",
    "JavaScript heap out of memory: allocation failed in gpu-process",
    "## CUDA: Out of memory",
    "- CUDA: out of memory",
    "| CUDA: out of memory | lower the batch |",
    "CUDA: out of memory is what people see most often",
    "CUDA error: 20 tests failed",
    "CUDA errors: 2",
    "CUDA error 2 of 5 was flaky",
    "cudaError 2.1 is documented below, error table",
    "CUDA error: 2 GiB cache rebuilt",
    "cudaError 200 failed",
    "[torch_memory_saver.cpp] CUresult error  result=1 file=csrc/x.cpp func=resume line=2",
    "If you see CUDA error: 2, lower the batch",
]


@pytest.mark.parametrize(("text", "requested"), SEEN)
def test_a_complaint_about_device_memory_is_a_failure_with_the_size_it_states(
    text: str, requested: int | None
) -> None:
    document = document_of(text)
    failures = torch_oom.read(document).failures
    facts = {fact.key: fact.value for fact in failures[0].facts}
    assert [failure.kind for failure in failures] == ["gpu-oom"]
    assert requested == facts.get("oom.requested")
    assert host_signs.read(document).failures == ()


@pytest.mark.parametrize("text", UNSEEN)
def test_advice_warnings_and_host_memory_are_no_device_failure(text: str) -> None:
    assert not [one for one in torch_oom.read(document_of(text)).failures if one.kind == "gpu-oom"]


@pytest.mark.parametrize(
    ("text", "backend", "form"),
    [
        ("RuntimeError: tool error: out of memory in cudaLaunch", "cuda", "runtime"),
        ("RuntimeError: ROCm device error: out of memory", "hip", "runtime"),
        ("RuntimeError: the GPU ran out of memory", "other", "engine"),
    ],
)
def test_the_back_end_is_told_by_the_words_of_its_runtime(
    text: str, backend: str, form: str
) -> None:
    (failure,) = torch_oom.read(document_of(text)).failures
    facts = {fact.key: fact.value for fact in failure.facts}
    assert (backend, form) == (facts["oom.backend"], facts["oom.form"])


def test_a_known_message_is_not_counted_again_where_a_wrapper_repeats_it_in_other_words() -> None:
    text = (
        "[ERROR] worker failed: GPU 0 is out of memory\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB."
    )
    (failure,) = torch_oom.read(document_of(text)).failures
    assert {fact.key: fact.value for fact in failure.facts}["oom.form"] == "allocator"


def test_the_same_complaint_on_many_lines_is_one_event() -> None:
    line = "RuntimeError: parallel_for failed: out of memory\n"
    assert len(torch_oom.read(document_of(line * 5)).failures) == 1


def test_a_node_editor_says_only_allocation_on_device() -> None:
    text = "Error occurred when executing VAEDecode:\n\nAllocation on device\n"

    facts = {
        fact.key: fact.value
        for one in torch_oom.read(document_of(text)).failures
        for fact in one.facts
    }

    assert facts["oom.seen"] is True


def test_a_warning_that_denies_a_failure_is_none_behind_any_prefix() -> None:
    line = (
        "1: W bfc_allocator.cc:291] Allocator (GPU_0_bfc) ran out of memory trying to allocate"
        " 2.57GiB. The caller indicates that this is not a failure, but this may mean less speed."
    )

    assert read_all(document_of(line)).failures == ()
