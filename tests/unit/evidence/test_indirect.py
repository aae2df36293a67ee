"""A shortage that no message announces is seen in a counter or a table of trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence.readers import read_all
from oomdoctor.pipeline import gather
from tests.unit.evidence.documents import document_of, raw_text

if TYPE_CHECKING:
    from oomdoctor.model.core import Value

GIB = 1 << 30
COUNTERS = "|            CUDA OOMs: {count}            |        cudaMalloc retries: 4         |"
TABLE = """
| batch | seq  | optimizer | peak     |
|-------|------|-----------|----------|
| 2     | 2048 | adamw     | 19.5 GiB |
| 4     | 2048 | adamw     | **OOM**  |
"""


def facts_of(text: str) -> dict[str, Value]:
    """Return the facts of the one failure of a text; none where it has no failure."""
    failures = read_all(document_of(text)).failures
    return {fact.key: fact.value for failure in failures for fact in failure.facts}


@pytest.mark.parametrize(
    ("text", "backend"),
    [
        (COUNTERS.format(count=1), "cuda"),
        (COUNTERS.format(count=12).replace("CUDA", "HIP"), "hip"),
        ("{'allocated_bytes.all.current': 4096, 'num_alloc_retries': 2, 'num_ooms': 3}", "cuda"),
        ("OrderedDict([('num_alloc_retries', 2), ('num_ooms', 1)])", "cuda"),
    ],
)
def test_a_counter_of_the_allocator_above_zero_is_a_failure_that_was_seen(
    text: str, backend: str
) -> None:
    facts = facts_of(text)

    assert (facts["oom.seen"], facts["oom.backend"]) == (True, backend)
    assert facts["oom.figures_given"] is False


@pytest.mark.parametrize(
    "text",
    [
        COUNTERS.format(count=0),
        "{'num_alloc_retries': 2, 'num_ooms': 0}",
        COUNTERS.format(count=1) + "\nstep 12 loss 2.1\nstep 13 loss 2.0",
        "step 9: {'num_ooms': 1}\nepoch 2 done\nstep 10: {'num_ooms': 1}",
    ],
)
def test_no_count_and_a_count_that_work_goes_on_behind_are_none(text: str) -> None:
    assert facts_of(text) == {}


def test_a_summary_beside_a_message_is_no_failure_of_its_own() -> None:
    message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    summary = raw_text("memory_summary", "current.txt")
    text = f"{message}\n{summary}"

    assert len(read_all(document_of(text)).failures) == 1


def test_a_message_in_one_input_outranks_a_counter_in_another() -> None:
    message = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 9.00 GiB total"
    failures = gather([COUNTERS.format(count=1), f"{message} capacity)\nTraceback"]).failures

    assert [failure.line_quote.text[:12] for failure in failures] == ["RuntimeError"]


@pytest.mark.parametrize(
    "text",
    [
        TABLE,
        "batch 4 -> 19.5 GiB\nbatch 8 -> OOM",
        "bs=16, seq=512: 9.1 GiB\nbs=16, seq=1024: OOM",
        "cards  pieces  result\n8      1       71.2 GiB\n8      4       OOM, later",
        "4\t2048\t11.2\n8\t2048\tOOM (first backward)",
    ],
)
def test_a_row_whose_result_is_oom_is_a_failure_that_was_seen(text: str) -> None:
    assert facts_of(text)["oom.seen"] is True


@pytest.mark.parametrize(
    "text",
    [
        "| model | OOM | peak |\n|---|---|---|\n| a-7b | no | 19 GiB |\n| a-9b | no | 23 GiB |",
        "| term | means |\n|---|---|\n| OOM | out of memory |\n| OOM score | of the kernel |",
        "oom_kill 0\noom 0\nmax 12",
        "PID 1 OOM score 300\nPID 2 OOM score 200",
        "pid  OOM score\n811  300\n812  OOM score 20",
        "OOMKilled: false\nRestart: 0",
        "--oom-retries 3 -> set\n--oom-kill 0 -> set",
        "batch 4: OOM errors 0\nbatch 8: OOM errors 0",
        "step 3: OOM retries: 0\nstep 4: OOM retries: 0",
        "We saw at batch 8 -> OOM once.",
        "| 8 | OOM: 0 |\n| 9 | OOM: 0 |",
    ],
)
def test_the_word_as_a_name_a_count_or_in_prose_is_none(text: str) -> None:
    assert facts_of(text) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TABLE, "runs"),
        ("batch 4 -> 19.5 GiB\nbatch 8 -> OOM", "runs"),
        ("bs=16, seq=512: 9.1 GiB\nbs=16, seq=1024: OOM", "runs"),
        # more than the size differs
        (TABLE.replace("| 2     | 2048 | adamw", "| 2     | 2048 | lion "), None),
        ("bs=8, seq=512: 9.1 GiB\nbs=16, seq=1024: OOM", None),
        # a count of pieces is no size of a batch
        (TABLE.replace("batch", "microbatches"), None),
        # the smaller one fails as well
        ("batch 4 -> OOM\nbatch 8 -> OOM", None),
    ],
)
def test_rows_that_differ_in_one_size_are_a_trial(text: str, expected: str | None) -> None:
    assert facts_of(text).get("trial.smaller_batch") == expected


PLANNED = (
    "common_memory_breakdown_print: |   - CUDA0 (RTX 4060)  | 8188 = 7600 + (9216 =  7168 +"
    "    1536 +     512) + {rest} |"
)
UNFITTED = (
    "common_params_fit: failed to fit params to free device memory: n_gpu_layers already set by"
    " user to 99, abort"
)
SUMS = (
    "common_params_fit_impl: projected to use {planned} MiB of device memory vs. 7600 MiB of free"
    " device memory"
)


@pytest.mark.parametrize("rest", ["-8628", "17592186035788"])
def test_a_plan_that_exceeds_the_device_and_was_not_made_to_fit_is_a_failure(rest: str) -> None:
    facts = facts_of(f"{PLANNED.format(rest=rest)}\n{UNFITTED}")

    assert (facts["oom.seen"], facts["run.phase"]) == (True, "load")


def test_the_sums_of_a_plan_tell_it_as_well() -> None:
    assert facts_of(f"{SUMS.format(planned=9216)}\n{UNFITTED}")["oom.seen"] is True


@pytest.mark.parametrize(
    "text",
    [
        UNFITTED,
        f"{SUMS.format(planned=7000)}\n{UNFITTED}",
        # what a process holds, and not what it plans
        f"{PLANNED.format(rest='300')}\n{UNFITTED}",
        f"{SUMS.format(planned=9216)}\n{UNFITTED}\nload_tensors: offloaded 33/33 layers to GPU",
        f"{SUMS.format(planned=9216)}\n{UNFITTED}\nmain: server is listening on 127.0.0.1:8080",
        f"{SUMS.format(planned=9216)}\ncommon_params_fit: successfully fit params",
    ],
)
def test_a_warning_about_a_plan_that_fits_or_was_loaded_is_none(text: str) -> None:
    assert facts_of(text) == {}


def test_a_row_may_say_what_was_allocated_when_it_failed() -> None:
    text = "nodes  parts  result\n16     4      OOM, 61.5 GiB allocated\n16     1      fits"

    assert facts_of(text)["torch.allocated"] == round(61.5 * GIB)
