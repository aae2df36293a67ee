"""The worker itself: a process with torch that answers a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.lab.protocol import TraceRequest
from oomdoctor.lab.session import WorkerError, WorkerSession
from oomdoctor.memory.stream_replay import replay
from oomdoctor.model.job import CardSpec, EntrySpec, Job, OptimizerSpec, QuantSpec
from oomdoctor.record import replace
from tests.worker.jobs import CONFIG, JOB, LORA, PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow  # a process that imports torch takes seconds

CARD = CardSpec(name="A100", capability=(8, 0), processors=108, total_bytes=80 << 30)
MIB = 1 << 20


@pytest.fixture(scope="module")
def session() -> Iterator[WorkerSession]:
    """One worker for all tests."""
    with WorkerSession() as started:
        yield started


def request(job: Job, *phases: str) -> TraceRequest:
    return TraceRequest(job=job, card=CARD, phases=phases)


def test_a_job_becomes_a_stream(session: WorkerSession) -> None:
    stream = session.trace(request(JOB))
    peaks = {phase.name: phase.allocated_bytes for phase in replay(stream).phases}

    assert list(peaks) == ["load", "step 1", "step 2"]
    assert peaks["load"] == pytest.approx(PARAMETERS * 4, rel=0.02)
    assert peaks["step 2"] > PARAMETERS * 16


def test_one_worker_traces_one_job_after_the_other_alike(session: WorkerSession) -> None:
    job = replace(JOB, lora=LORA)

    first, other, second = (session.trace(request(one)) for one in (job, JOB, job))

    assert list(first.events) == list(second.events) != list(other.events)


def test_only_some_phases_are_traced_if_asked(session: WorkerSession) -> None:
    stream = session.trace(request(JOB, "load"))

    assert [mark.text for mark in stream.marks if mark.kind == "phase"] == ["load"]


def test_a_job_that_cannot_be_traced_leaves_the_worker_alive(session: WorkerSession) -> None:
    with pytest.raises(WorkerError) as caught:
        session.trace(request(replace(JOB, optimizer=OptimizerSpec(name="odd"))))

    assert caught.value.kind == "unsupported"
    assert session.trace(request(JOB, "load")).events


def test_code_that_exits_leaves_the_worker_alive(session: WorkerSession, tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text("def make(): raise SystemExit(3)", encoding="utf-8")
    entry = EntrySpec(place="leaves.py:make", folder=str(tmp_path))

    with pytest.raises(WorkerError, match="SystemExit: 3"):
        session.trace(request(replace(JOB, entry=entry)))
    assert session.trace(request(JOB, "load")).events


def test_files_with_a_models_code_are_named(session: WorkerSession) -> None:
    config = {**CONFIG, "model_type": "odd", "auto_map": {"AutoModel": "modeling_odd.Odd"}}

    with pytest.raises(WorkerError, match=r"modeling_odd\.py") as caught:
        session.trace(request(replace(JOB, model=replace(JOB.model, config=config))))

    assert caught.value.kind == "model-code-needs-files"


@pytest.mark.parametrize("checkpointing", [None, "non-reentrant"])
def test_activations_that_move_to_the_host_leave_the_card(
    session: WorkerSession, checkpointing: str | None
) -> None:
    job = replace(JOB, batch=16, seq_len=128, checkpointing=checkpointing, dtype="bf16")

    kept, moved = (
        highest(session, replace(job, offloads_activations=offloads)) for offloads in (False, True)
    )

    assert kept - moved >= 16 * 128 * 64 * 2


def highest(session: WorkerSession, job: Job) -> int:
    return replay(session.trace(request(job))).peak_allocated


WIDE = {
    **CONFIG,
    "hidden_size": 2048,
    "intermediate_size": 4096,
    "num_hidden_layers": 12,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "vocab_size": 32_000,
}
EIGHT_BIT = OptimizerSpec(name="adamw-8bit")
QUANT = QuantSpec(kind="nf4")
METHODS = {
    "full": JOB,
    "LoRA": replace(JOB, lora=LORA),
    "checkpointing": replace(JOB, checkpointing="non-reentrant"),
    "8-bit states": replace(JOB, optimizer=EIGHT_BIT),
    "paged states": replace(JOB, optimizer=replace(EIGHT_BIT, paged=True)),
    "4-bit weights": replace(JOB, lora=LORA, quant=QUANT),
}


@pytest.mark.parametrize("small", METHODS.values(), ids=METHODS)
def test_a_large_model_takes_no_more_memory_of_the_host_than_a_small_one(small: Job) -> None:
    large = replace(small, model=replace(small.model, config=WIDE))
    # of its own, so that no other job made this worker large before
    with WorkerSession() as session:
        session.trace(request(replace(small, dtype="bf16")))
        before = session.rss_bytes
        stream = session.trace(request(replace(large, dtype="bf16")))

        assert session.rss_bytes - before < 128 * MIB
    assert replay(stream).peak_allocated > 384 * MIB


def test_a_worker_says_which_libraries_it_has(session: WorkerSession) -> None:
    session.trace(request(JOB, "load"))

    assert session.hello is not None
    assert {"python", "torch", "transformers"} <= set(session.hello.versions)
