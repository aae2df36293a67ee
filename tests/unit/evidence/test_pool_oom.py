from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence import torch_oom
from tests.unit.evidence.documents import document_of, raw_text

if TYPE_CHECKING:
    from oomdoctor.model.core import Failure, Value


def failures_in(text: str) -> tuple[Failure, ...]:
    return torch_oom.read(document_of(text)).failures


def facts_of(failure: Failure) -> dict[str, Value]:
    return {fact.key: fact.value for fact in failure.facts}


def said(text: str) -> dict[str, Value]:
    return facts_of(failures_in(text)[0])


def test_an_allocator_s_dump_and_its_error_are_one_failure_with_exact_bytes() -> None:
    failures = failures_in(raw_text("tensorflow", "bfc_1_13.txt"))

    assert [failure.kind for failure in failures] == ["gpu-oom"]
    facts = facts_of(failures[0])
    assert facts["oom.library"] == "tensorflow"
    assert facts["oom.tensor_shape"] == "128x64x112x112"
    assert facts["oom.requested"] == 128 * 64 * 112 * 112 * 4


def test_tensorflow_two_names_the_request_in_the_allocator_s_line() -> None:
    facts = said(raw_text("tensorflow", "bfc_2_17.txt"))

    assert facts["oom.requested"] == 1610612736


def test_the_warning_of_an_allocator_is_no_failure() -> None:
    reading = torch_oom.read(document_of(raw_text("tensorflow", "warning_only.txt")))

    assert reading.failures == ()
    assert [fact.key for fact in reading.facts] == ["bfc.warning"]


def test_pinned_memory_is_main_memory() -> None:
    failures = failures_in(raw_text("tensorflow", "pinned_host.txt"))

    assert {failure.kind for failure in failures} == {"host-oom"}
    facts = facts_of(failures[0])
    assert facts["host.pinned_failed"] is True
    assert facts["host.requested"] == 8 << 30


def test_a_tensor_on_the_cpu_is_main_memory() -> None:
    failures = failures_in(raw_text("tensorflow", "cpu_tensor.txt"))

    assert [failure.kind for failure in failures] == ["host-oom"]
    assert "host.pinned_failed" not in facts_of(failures[0])


def test_a_series_of_smaller_reservations_is_one_failure() -> None:
    failures = failures_in(raw_text("tensorflow", "started_beside_others.txt"))

    assert [facts_of(failure)["oom.requested"] for failure in failures] == [64028672]


def test_a_library_that_cannot_start_is_no_memory_text() -> None:
    failures = failures_in(raw_text("tensorflow", "cudnn_handle.txt"))

    assert {failure.kind for failure in failures} == {"other"}
    assert {facts_of(failure)["oom.form"] for failure in failures} == {"cudnn-handle"}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (
            "buffer_assignment.txt",
            {"oom.library": "xla", "oom.requested": 13421772800, "oom.absurd_size": False},
        ),
        (
            "request_on_device.txt",
            {"oom.library": "xla", "oom.requested": 3276800000, "oom.gpu_index": 1},
        ),
        (
            "tpu_compile.txt",
            {
                "oom.library": "xla",
                "oom.capacity": round(15.48 * 2**30),
                "xla.hbm_used": round(19.20 * 2**30),
            },
        ),
        (
            "tpu_runtime.txt",
            {"oom.requested": round(2.5 * 2**30), "oom.free": round(1.75 * 2**30)},
        ),
    ],
)
def test_xla_states_what_it_lacks(file: str, expected: dict[str, Value]) -> None:
    failures = failures_in(raw_text("jax", file))

    assert [failure.kind for failure in failures] == ["gpu-oom"]
    facts = facts_of(failures[0])
    assert {key: facts.get(key) for key in expected} == expected


def test_another_capacity_than_free_tells_a_tpu_in_pieces() -> None:
    facts = said(
        "RESOURCE_EXHAUSTED: Could not allocate 8388608 bytes in memory 0x0x0_HBM0;"
        " 4194304 bytes allocatable, 16777216 bytes available"
    )

    assert (facts["oom.requested"], facts["oom.free"]) == (8388608, 16777216)


@pytest.mark.parametrize(
    ("prefix", "library"),
    [
        ("W tensorflow/core/common_runtime/bfc_allocator.cc:1]", "tensorflow"),
        ("W tensorflow/tsl/framework/bfc_allocator.cc:1]", "tensorflow"),
        ("W external/local_tsl/tsl/framework/bfc_allocator.cc:1]", "tensorflow"),
        ("W external/org_tensorflow/tensorflow/core/common_runtime/bfc_allocator.cc:1]", "xla"),
        ("W external/xla/xla/tsl/framework/bfc_allocator.cc:1]", "xla"),
        ("W tsl/framework/bfc_allocator.cc:1]", "xla"),
    ],
)
def test_the_source_s_path_tells_jax_from_tensorflow(prefix: str, library: str) -> None:
    line = f"{prefix} Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.00GiB"

    assert said(line)["oom.library"] == library


@pytest.mark.parametrize(
    ("dtype", "width"),
    [("float", 4), ("half", 2), ("bfloat16", 2), ("double", 8), ("int64", 8), ("bool", 1)],
)
def test_bytes_of_a_tensor_follow_from_shape_and_type(dtype: str, width: int) -> None:
    line = f"OOM when allocating tensor with shape[10,20] and type {dtype} on /device:GPU:0"

    assert said(line)["oom.requested"] == 200 * width


def test_a_tensor_without_a_type_has_a_shape_and_no_bytes() -> None:
    facts = said("ResourceExhaustedError: OOM when allocating tensor with shape[10,20]")

    assert facts["oom.tensor_shape"] == "10x20"
    assert "oom.requested" not in facts


@pytest.mark.parametrize(
    "line",
    [
        "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem. Used 17.50M of 16.00M vmem.",
        "ValueError: Shared memory size limit exceeded: requested 18350080, available: 16777216",
    ],
)
def test_on_chip_memory_is_no_device_memory(line: str) -> None:
    failures = failures_in(line)

    facts = facts_of(failures[0])
    assert facts["fault.kernel_shared_memory"] is True
    assert facts["fault.kernel_required"] == 18350080
    assert facts["fault.kernel_limit"] == 16777216


def test_a_size_near_two_to_the_47th_is_absurd() -> None:
    line = (
        "E cuda_driver.cc:924] failed to allocate 131072.00G (140737488355328 bytes) from device:"
        " CUDA_ERROR_OUT_OF_MEMORY"
    )

    assert said(line)["oom.absurd_size"] is True


@pytest.mark.parametrize("name", ["cudnn", "cublas", "cusolver"])
def test_a_library_that_cannot_start_is_one_failure_whichever_it_is(name: str) -> None:
    text = f"E cuda_dnn.cc:535] Could not create {name} handle: NOT_INITIALIZED"
    assert said(text)["oom.form"] == "cudnn-handle"


def test_a_program_that_a_tpu_has_no_room_for_is_a_failure_without_what_is_free() -> None:
    facts = said(
        "RESOURCE_EXHAUSTED: Error loading program 'jit_step': Attempting to reserve 3.50G at the"
        " bottom of memory. That was not possible."
    )

    assert facts["oom.requested"] == 7 << 29
    assert "oom.free" not in facts


def test_an_older_tensorflow_speaks_of_a_tensor_of_a_shape() -> None:
    facts = said(
        "ResourceExhaustedError: OOM when allocating tensor of shape [90112,300] and type float"
    )

    assert facts["oom.tensor_shape"] == "90112x300"
    assert facts["oom.requested"] == 90112 * 300 * 4


def test_a_batch_of_the_input_pipeline_is_main_memory() -> None:
    text = "ResourceExhaustedError: Failed to allocate memory for the batch of component 1"

    assert [failure.kind for failure in failures_in(text)] == ["host-oom"]
