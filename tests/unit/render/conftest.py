"""Diagnoses made by hand, so that rendering is tested without the rest."""

from __future__ import annotations

import pytest

from oomdoctor.model.core import (
    Artifact,
    Conflict,
    Fact,
    Failure,
    Finding,
    Quote,
    RuleFault,
    Verdict,
    Weight,
)
from oomdoctor.model.enums import Maturity, Origin, Safety, Severity, Truth
from oomdoctor.model.plan import (
    Diagnosis,
    Fingerprint,
    FingerprintMatch,
    Ledger,
    LedgerEntry,
    Measurement,
    NotEvaluated,
    Patch,
    Prescription,
    RankSummary,
    Saving,
)

GIB = 2**30
MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total "
    "capacity of 23.64 GiB of which 1.12 GiB is free."
)
DIFF = """\
--- a/train.yaml
+++ b/train.yaml
@@ -7,3 +7,4 @@
 bf16: true
-per_device_train_batch_size: 2
+per_device_train_batch_size: 1
+use_liger_kernel: true
"""
OOM = Quote(artifact="crash.log", line=42, text=MESSAGE)
BATCH = Quote(artifact="train.yaml", line=8, text="per_device_train_batch_size: 2")


def finding(cause: str, probability: float, **more: object) -> Finding:
    values: dict[str, object] = {
        "code": "ACT2003",
        "cause": cause,
        "title": "Full-vocabulary logits are computed in float32",
        "severity": Severity.ERROR,
        "maturity": Maturity.STABLE,
        "probability": probability,
        "gate": Verdict(truth=Truth.TRUE, read=frozenset({"oom.backend"})),
    }
    return Finding(**(values | more))  # type: ignore[arg-type] - the caller gives field names


@pytest.fixture
def nothing() -> Diagnosis:
    """An answer without anything in it."""
    return Diagnosis(
        answer="nothing_found", resource="unknown", conclusive=False, headline="No failure"
    )


@pytest.fixture
def full() -> Diagnosis:
    """An answer in which every section has something to say."""
    oom = (
        Fact(key="oom.requested", value=2491081031, slack=5368709, quotes=(OOM,)),
        Fact(key="oom.backend", value="cuda", quotes=(OOM,)),
        Fact(key="run.phase", value="loss", quotes=(OOM,)),
    )
    batch = Fact(key="train.micro_batch", value=2, quotes=(BATCH,))
    return Diagnosis(
        answer="cause",
        resource="gpu",
        conclusive=True,
        headline="GPU memory ran out: float32 logits of 2 x 2,048 tokens do not fit",
        event=Failure(kind="gpu-oom", order=42, line_quote=OOM, facts=oom, rank=0),
        facts={fact.key: fact for fact in (*oom, batch)},
        ledger=_ledger(),
        fingerprint=_fingerprint(),
        causes=_causes(),
        other_probability=0.0555556,
        side_findings=(
            finding("", 0.0, code="CFG9001", severity=Severity.WARNING, quotes=(BATCH,)),
        ),
        prescriptions=_prescriptions(),
        suppressed=("gradient-checkpointing",),
        next_measurements=_measurements(),
        not_evaluated=(NotEvaluated(code="EXT5001", needs=("gpu.foreign",)),),
        conflicts=(
            Conflict(
                key="train.micro_batch",
                kept=batch,
                dropped=Fact(key="train.micro_batch", value=4, source="progress line"),
            ),
        ),
        faults=(RuleFault(code="ACT2999", message="pattern took too long"),),
        ranks=(
            RankSummary(ranks=(0,), failed=True, headline="CUDA out of memory", order=42),
            RankSummary(ranks=(1, 2, 3), failed=True, headline="NCCL time-out", order=80),
        ),
        artifacts=(Artifact(id="crash.log", kind="log", path="crash.log", size_bytes=4211),),
        notes=("crash.log: 3 progress bars were folded",),
    )


def _ledger() -> Ledger:
    return Ledger(
        capacity_bytes=int(23.64 * GIB),
        entries=(
            LedgerEntry(owner="allocated", bytes=int(20.9 * GIB)),
            LedgerEntry(owner="reserved_unallocated", bytes=int(1.1 * GIB)),
            LedgerEntry(
                owner="outside_allocator",
                bytes=int(0.52 * GIB),
                origin=Origin.DERIVED,
                source="this process - reserved",
            ),
            LedgerEntry(owner="free", bytes=int(1.12 * GIB)),
        ),
        overshoot_bytes=int(1.2 * GIB),
    )


def _prescriptions() -> tuple[Prescription, ...]:
    return (
        Prescription(
            fix_id="use-liger",
            cause="logits-vocab-fp32",
            code="ACT2003",
            title="Compute the loss in chunks with the Liger kernel",
            safety=Safety.SAFE,
            patches=(
                Patch(
                    dialect="trl",
                    settings={"use_liger_kernel": True},
                    file="train.yaml",
                    diff=DIFF,
                ),
            ),
            saving=Saving(low_bytes=2 * GIB, likely_bytes=7 * GIB, high_bytes=8 * GIB),
            sufficient=True,
            cautions=("Liger must support the model",),
        ),
        Prescription(
            fix_id="expandable-segments",
            cause="fragmentation",
            code="ALC3001",
            title="Let segments grow",
            safety=Safety.SAFE,
            patches=(
                Patch(
                    dialect="env",
                    settings={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
                ),
            ),
            time_factor=1.02,
            advice="Set it before the process starts",
        ),
    )


def _causes() -> tuple[Finding, ...]:
    weight = Weight(
        label="the failing frame computes a loss",
        verdict=Verdict(truth=Truth.TRUE, quotes=(OOM,)),
        nats=2.2,
        group="frame",
    )
    contrary = Weight(
        label="a smaller batch failed, too", verdict=Verdict(truth=Truth.FALSE), nats=-0.4
    )
    return (
        finding(
            "logits-vocab-fp32",
            0.83333333,
            explains_bytes=2489319424,
            quotes=(OOM, BATCH),
            against=(Quote(artifact="crash.log", line=12, text="{'loss': 1.41}"),),
            weights=(weight, contrary),
            missing=("loss.impl",),
            assumed=("train.seq_len",),
        ),
        finding("batch-or-seq-too-large", 0.1111111, code="ACT2001", quotes=(OOM,)),
    )


def _fingerprint() -> Fingerprint:
    match = FingerprintMatch(
        bytes=2489319424,
        expression="batch*seq*vocab*4",
        meaning="float32 logits",
        values={"batch": 2, "seq": 2048, "vocab": 151936},
        weight=0.8,
    )
    return Fingerprint(matches=(match,), tried=120, expected_by_chance=0.3)


def _measurements() -> tuple[Measurement, ...]:
    return (
        Measurement(
            fact="gpu.foreign",
            command="nvidia-smi --query-compute-apps=pid,used_memory --format=csv",
            seconds=2,
            gain_bits=0.49,
            decides_between=("logits-vocab-fp32", "other-process-on-gpu"),
            meanings=("another process listed: other-process-on-gpu gains",),
        ),
        Measurement(
            fact="trace.stack",
            command="Paste the whole traceback.",
            seconds=90,
            gain_bits=0.2,
        ),
    )
