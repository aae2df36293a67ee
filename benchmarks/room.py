"""Compare what jobs must reserve with what they allocate, and the formula with the simulation.

    python benchmarks/room.py [--python PYTHON] [--only TEXT] [--write] [--stored]

Jobs of eight models are simulated in seven ways of training each; `--python` is an interpreter with
torch, transformers, peft and bitsandbytes. Beside the peaks stands the least room in which no
request fails, for an allocator that is short of room gives its cache back. `--write` stores the
figures in `fixtures/simulated/room.json`, `--stored` reads them there.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Literal, TypedDict

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from oomdoctor.estimating.cards import cards_of
from oomdoctor.estimating.describe import source_of
from oomdoctor.estimating.formula import Formula
from oomdoctor.estimating.simulation import Simulation
from oomdoctor.estimating.verdicts import least_room
from oomdoctor.facts.given import parse_given
from oomdoctor.lab.session import WorkerSession

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOM = Path(__file__).resolve().parent.parent / "fixtures" / "simulated" / "room.json"
CARD = "A100-80GB"
MODELS = (
    "meta-llama/Llama-2-7b-hf",
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    "Qwen/Qwen2.5-1.5B",
    "mistralai/Mistral-7B-v0.1",
    "google/gemma-2-2b",
    "microsoft/phi-2",
    "EleutherAI/pythia-1.4b",
    "openai-community/gpt2-large",
)
LENGTHS = {"openai-community/gpt2-large": 1024}
WAYS = {
    "full": "method=full",
    "full fp32": "method=full,dtype=fp32",
    "full 8-bit states": "method=full,optimizer=adamw_8bit",
    "full recomputed": "method=full,checkpointing=true,batch=4",
    "lora": "method=lora",
    "lora short": "method=lora,batch=4,seq=1024",
    "qlora recomputed": "method=qlora,checkpointing=true",
}
KINDS: tuple[Literal["reserved", "least", "formula"], ...] = ("reserved", "least", "formula")


class Room(TypedDict):
    """Bytes of one job: what the simulation says, and the formula's allocated peak."""

    allocated: int
    reserved: int
    least: int
    formula: int


def stored() -> dict[str, Room]:
    """Return the figures of every job, by model and way."""
    loaded: dict[str, Room] = json.loads(ROOM.read_text())
    return loaded


def measured(python: str | None, only: str) -> Iterator[tuple[str, Room]]:
    """Simulate the jobs."""
    with WorkerSession(python=python) as session:
        for model in MODELS:
            plain = (f"model.name={model}", f"train.seq_len={LENGTHS.get(model, 2048)}")
            source = source_of([], given=parse_given((*plain, "train.micro_batch=1")))
            for way, changes in WAYS.items():
                name = f"{model}, {way}"
                if only not in name:
                    continue
                job = source.described(changes).job
                peak = Simulation(session, cards_of([CARD])[0]).peak(job)
                yield (
                    name,
                    Room(
                        allocated=peak.allocated,
                        reserved=peak.needed,
                        least=least_room(peak),
                        formula=Formula().peak(job).allocated,
                    ),
                )


def main() -> int:
    """Simulate, print and store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python")
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--stored", action="store_true")
    asked = parser.parse_args()
    found: dict[str, Room] = {}
    for name, one in stored().items() if asked.stored else measured(asked.python, asked.only):
        found[name] = one
        base = one["allocated"]
        shares = ", ".join(f"{kind} x {one[kind] / base:.3f}" for kind in KINDS)
        print(f"{name:<56} allocated {base / 2**30:6.2f} GiB, {shares}", flush=True)
    for kind in KINDS:
        over = [one[kind] / one["allocated"] for one in found.values()]
        print(f"{kind}: median x {median(over):.3f}, {min(over):.3f} to {max(over):.3f}")
    if asked.write:
        ROOM.parent.mkdir(exist_ok=True)
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in found.items())
        ROOM.write_text(f"{{\n{lines}\n}}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
