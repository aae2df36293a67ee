"""Assertions, address faults, time-outs and limits of other kinds are told from memory."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import torch_lookalikes
from tests.unit.evidence.documents import document_of

ASSERTION = (
    "../aten/src/ATen/native/cuda/Indexing.cu:9: indexSelectSmallIndex: block: [1,0,0], thread: "
    "[2,0,0] Assertion `srcIndex < srcSelectDimSize` failed."
)
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory."
WATCHDOG = (
    "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE) "
    "ran for 600012 milliseconds before timing out."
)


@pytest.mark.parametrize(
    ("text", "kind", "stated"),
    [
        (ASSERTION, "assert", {"assert.device_side": True, "assert.index": True}),
        ("a.cu:1: f: thread: [2,0,0] Assertion `isfinite(x)` failed.", "assert",
         {"assert.device_side": True, "assert.index": False}),
        ("RuntimeError: CUDA error: device-side assert triggered", "assert",
         {"assert.device_side": True}),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "illegal-access",
         {"fault.illegal_access": True}),
        (WATCHDOG, "collective", {"collective.timeout": True}),
        ("CUDA error: CUDA-capable device(s) is/are busy or unavailable", "other",
         {"fault.device_busy": True}),
        ("OutOfResources: out of resource: shared memory, Required: 70000, Hardware limit: 65536.",
         "other", {"fault.kernel_shared_memory": True, "fault.kernel_required": 70000,
                   "fault.kernel_limit": 65536}),
        ("RuntimeError: received 0 items of ancdata", "other", {"host.fd_limit": True}),
        (("RuntimeError: unable to open shared memory object </torch_1_2_3> in read-write mode: No "
         "such file or directory (2)"), "other", {"host.shm_race": True}),
        ("Error operation not supported at line 9 in file /src/csrc/ops.cu", "other",
         {"fault.not_supported": True}),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_facts(text: str, kind: str, stated: dict[str, object]) -> None:
    reading = torch_lookalikes.read(document_of(text))

    assert [kind] == [failure.kind for failure in reading.failures]
    assert stated == {one.key: one.value for one in reading.failures[0].facts}
    assert stated.items() <= {one.key: one.value for one in reading.facts}.items()


def test_many_assertion_lines_are_one_event() -> None:
    reading = torch_lookalikes.read(document_of("\n".join([ASSERTION] * 500)))

    assert [failure.order for failure in reading.failures] == [1]


@pytest.mark.parametrize(
    ("lines", "key", "before"),
    [
        ([ASSERTION, OOM], "assert.before_oom", True),
        ([OOM, ASSERTION], "assert.before_oom", False),
        ([WATCHDOG, OOM], "collective.before_oom", True),
        ([OOM, WATCHDOG], "collective.before_oom", False),
    ],
)
def test_the_order_of_fault_and_memory_text_is_a_fact(
    lines: list[str], key: str, before: bool
) -> None:
    facts = torch_lookalikes.read(document_of("\n".join(lines))).facts

    assert [before] == [one.value for one in facts if one.key == key]


def test_the_advice_under_cuda_errors_is_no_assertion() -> None:
    text = "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."

    assert torch_lookalikes.read(document_of(text)).failures == ()


def test_a_time_out_above_another_rank_s_plausible_shortage_came_later() -> None:
    timeout = WATCHDOG.replace("[Rank 2] ", "[rank2]: ")
    plain = "[rank0]: CUDA out of memory. Tried to allocate 2.00 GiB."
    for text, before in ((plain, False), (f"[rank0]: {OOM}", True)):
        facts = torch_lookalikes.read(document_of(f"{timeout}\n{text}")).facts

        assert before == next(one.value for one in facts if one.key == "collective.before_oom")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("    x = torch.cuda.FloatTensor(256, 1024, block_mem)", "gpu-oom"),
        ("    out = points.new_zeros(kept)", "size"),
    ],
)
def test_a_negative_rest_of_the_card_is_no_overflow(call: str, expected: str) -> None:
    text = (
        '  File "/work/det/run.py", line 20, in start\n'
        f"{call}\n"
        "RuntimeError: Trying to create tensor with negative dimension -733: [256, 1024, -733]\n"
    )

    found = torch_lookalikes.read(document_of(text)).failures

    assert [expected] == [one.kind for one in found]
