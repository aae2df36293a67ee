"""Ten jobs on a card need what was simulated for them; a real card's figures are written down.

The figures go to `fixtures/measured/gpu/CARD.json`, with the versions and what was simulated; those
of a virtual card, which measures nothing, are compared alone.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.lab.job_trial import JobBackend
from oomdoctor.lab.session import WorkerSession
from oomdoctor.lab.simulate_trial import SimulateBackend
from oomdoctor.model.job import CardSpec
from oomdoctor.model.trial import FIT, TrialSpec
from tests.conftest import ROOT
from tools.stream_jobs import jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.trial import TrialResult

NAMES = (
    *("tiny-bf16", "tiny-plain-loop", "half-bf16", "half-fp32-eager", "half-autocast"),
    *("half-padded-checkpointed", "half-accumulated", "gpt2-fp32", "half-forward", "resnet-fp32"),
)
FOLDER = ROOT / "fixtures" / "measured" / "gpu"
VIRTUAL = "OOMDOCTOR_VIRTUAL_NAME"


@pytest.fixture(scope="module")
def tracer() -> Iterator[WorkerSession]:
    """One worker for all traces; it sees no card."""
    with WorkerSession() as session:
        yield session


def card_of(torch: Any) -> CardSpec:
    device = torch.cuda.get_device_properties(0)
    return CardSpec(
        name=device.name,
        capability=(device.major, device.minor),
        processors=device.multi_processor_count,
        total_bytes=device.total_memory,
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_job_needs_what_was_simulated(torch: Any, tracer: WorkerSession, name: str) -> None:
    pytest.importorskip("transformers")
    card = card_of(torch)
    spec = TrialSpec(values={"job": name}, job=jobs()[name].job)

    measured = JobBackend("cuda").run(spec, lambda _: None)
    simulated = SimulateBackend(tracer, card).run(spec, lambda _: None)

    assert (measured.outcome, simulated.outcome) == (FIT, FIT), measured.reason
    if VIRTUAL not in os.environ:
        write_down(card, name, measured, simulated)
    for one, other in zip(measured.phases, simulated.phases, strict=True):
        assert one.name == other.name
        assert other.allocated_bytes == pytest.approx(one.allocated_bytes, rel=0.001), one.name
        assert other.reserved_bytes == pytest.approx(one.reserved_bytes, rel=0.005), one.name


def write_down(card: CardSpec, name: str, measured: TrialResult, simulated: TrialResult) -> None:
    """Put the figures of a job beside those of the others on this card."""
    slug = re.sub(r"[^a-z0-9]+", "-", card.name.lower()).strip("-")
    path = FOLDER / f"{slug}.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found[name] = {
        "versions": dict(measured.versions),
        "phases": [
            {
                "name": one.name,
                "allocated_bytes": one.allocated_bytes,
                "reserved_bytes": one.reserved_bytes,
                "simulated_allocated_bytes": other.allocated_bytes,
                "simulated_reserved_bytes": other.reserved_bytes,
            }
            for one, other in zip(measured.phases, simulated.phases, strict=False)
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")
