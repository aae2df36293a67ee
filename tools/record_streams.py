"""Record what jobs allocate on a virtual card, with torch's own CUDA code and allocator.

    python -m tools.record_streams --python CUDA_VENV/bin/python [NAME ...]

writes `fixtures/streams/NAME.json.xz` (oomdoctor/memory/stream_json.py) for each job of
`stream_jobs.py`, all without names. What torch itself counted stands in the facts: the peaks of
each phase, segments asked for and given back. The stream is then replayed through our model of the
allocator, and the line says whether its peaks are those.
The other Python needs a CUDA build of torch, and transformers, peft, bitsandbytes and TRL.
"""

from __future__ import annotations

import argparse
import importlib
import json
import lzma
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oomdoctor.lab.protocol import decode, encode
from oomdoctor.memory.stream import Allocation, Mark, Stream
from oomdoctor.memory.stream_json import from_json, to_json
from oomdoctor.memory.stream_replay import replay
from oomdoctor.model.job import CardSpec, Job
from oomdoctor.virtual.card import card_named
from oomdoctor.virtual.run import run_python
from oomdoctor.virtual.unmodelled import read_log

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.stream_jobs import Recorded

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "fixtures" / "streams"
MOST_EVENTS = 20_000_000
LONGEST_S = 400  # for a job
SEGMENTS = ("segment_alloc", "segment_free", "segment_map", "segment_unmap")


class Recorder:
    """Hears where a run is, and what torch counted there (an observer of `worker.run`)."""

    def __init__(self, torch: Any) -> None:
        """Count from now on."""
        self.torch = torch
        self.heard: list[tuple[str, str]] = []
        self.peaks: dict[str, dict[str, int]] = {}
        self.assumptions: list[str] = []
        self.now = ""
        torch.cuda.memory._record_memory_history("all", context=None, max_entries=MOST_EVENTS)
        self._hear("", "")

    def _hear(self, kind: str, text: str) -> None:
        """Give what is allocated from here on the number of this moment."""
        self.torch.cuda.memory._set_memory_metadata(str(len(self.heard)))
        self.heard.append((kind, text))

    def phase(self, name: str, part: str = "") -> None:
        """Note a phase or a part of one."""
        if name != self.now or not part:
            self.end_phase()
            self.now = name
            self._hear("phase", name)
        if part:
            self._hear("part", part)

    def end_phase(self) -> None:
        """Take down the peaks of the phase that ends."""
        cuda = self.torch.cuda
        if self.now:
            self.peaks[self.now] = {
                "allocated_bytes": cuda.max_memory_allocated(),
                "reserved_bytes": cuda.max_memory_reserved(),
            }
        cuda.reset_peak_memory_stats()

    def model(self, model: object) -> None:
        """Pass over a model."""

    def tag(self, tensors: Iterable[object], category: str) -> None:
        """Pass over tensors."""

    def assume(self, sentence: str) -> None:
        """Keep an assumption."""
        self.assumptions.append(sentence)

    def empty_cache(self) -> None:
        """Empty the cache here."""
        self._hear("empty-cache", "")
        self.torch.cuda.empty_cache()

    def stream(self, facts: dict[str, object], origin: str) -> Stream:
        """Return all that was allocated and freed."""
        trace = self.torch.cuda.memory._snapshot()["device_traces"][0]
        told = Told(self.heard)
        for entry in trace:
            told.take(entry)
        return Stream(
            allocations=tuple(told.allocations),
            events=tuple(told.events),
            marks=tuple(told.marks),
            origin=origin,
            assumptions=tuple(self.assumptions),
            facts={**facts, "peaks": self.peaks, "segments": told.segments},
        )


class Told:
    """Turns the entries of torch's trace into events, and moments into marks between them."""

    def __init__(self, heard: list[tuple[str, str]]) -> None:
        """Begin with nothing allocated."""
        self.heard = heard
        self.passed = 0
        self.phase = self.part = ""
        self.alive: dict[int, int] = {}
        self.allocations: list[Allocation] = []
        self.events: list[int] = []
        self.marks: list[Mark] = []
        self.segments = dict.fromkeys(SEGMENTS, 0)

    def take(self, entry: dict[str, Any]) -> None:
        """Take the next entry."""
        for kind, text in self.heard[self.passed + 1 : int(entry["user_metadata"] or 0) + 1]:
            self.passed += 1
            if kind == "phase":
                self.phase, self.part = text, ""
            elif kind == "part":
                self.part = text
            self.marks.append(Mark(len(self.events), kind, text))
        action, address = entry["action"], entry.get("addr", 0)
        if action == "alloc":
            number = self.alive[address] = len(self.allocations)
            self.allocations.append(
                Allocation(entry["size"], "", "", self.phase, self.part, "", entry["stream"])
            )
            self.events.append(number)
        elif action == "free_completed":
            self.events.append(~self.alive.pop(address))
        elif action in self.segments:
            self.segments[action] += 1


def record(job: Job, card: CardSpec, settings: str, loop: str = "worker") -> Stream:
    """Run a job on the card that this process has, and return its stream."""
    import torch

    from oomdoctor.worker.run.job import run_job

    torch.cuda.init()
    recorder = Recorder(torch)
    if loop == "worker":
        run_job(job, torch.device("cuda"), recorder)
        recorder.end_phase()
    else:
        importlib.import_module("tools.stream_trainers").run_trainer(loop, job, recorder)
    names = ("transformers", "peft", "bitsandbytes", "trl", "accelerate")
    versions = {"torch": torch.__version__, "cuda": torch.version.cuda} | {
        name: sys.modules[name].__version__ for name in names if name in sys.modules
    }
    facts = {
        "job": encode(job),
        "card": encode(card),
        "settings": settings,
        "loop": loop,
        "versions": versions,
    }
    return recorder.stream(facts, f"recorded from the CUDA code of torch {torch.__version__}")


def record_here(asked: list[Path]) -> None:
    """Do what files ask for, each in a fork of this process on the virtual card.

    Importing the libraries costs more than most jobs; CUDA begins in the fork.
    """
    import torch

    for name in ("transformers.models.auto.modeling_auto", "oomdoctor.worker.run.job"):
        importlib.import_module(name)
    if torch.cuda.is_initialized():
        raise SystemExit("a library has begun to use the card while it was imported")
    torch.cuda._is_in_bad_fork = bool  # a virtual card that was only looked at survives a fork
    for path in asked:
        child = os.fork()
        if child == 0:
            record_one(path)
            sys.exit()
        os.waitpid(child, 0)


def record_one(path: Path) -> None:
    """Put the stream that a file asks for beside it."""
    os.environ["OOMDOCTOR_VIRTUAL_LOG"] = str(path.with_suffix(".log"))
    wanted = json.loads(path.read_text(encoding="utf-8"))
    job, card = decode(Job, wanted["job"]), decode(CardSpec, wanted["card"])
    stream = record(job, card, wanted["settings"], wanted["loop"])
    path.with_suffix(".stream").write_text(json.dumps(to_json(stream)), encoding="utf-8")


def record_there(chosen: dict[str, Recorded], python: str) -> None:
    """Let a process on a virtual card record jobs that have card and settings in common."""
    first = next(iter(chosen.values()))
    card = card_named(first.card)
    spec = CardSpec(
        name=card.name,
        capability=card.capability,
        processors=card.processors,
        total_bytes=card.total_bytes,
    )
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / f"{name}.asked" for name in chosen}
        for name, path in paths.items():
            wanted = {"job": encode(chosen[name].job), "card": encode(spec)}
            how = {"settings": first.settings, "loop": chosen[name].loop}
            text = json.dumps({**wanted, **how})
            path.write_text(text, encoding="utf-8")
        done = run_python(
            [__file__, "--here", *map(str, paths.values())],
            card=card,
            python=python,
            timeout_s=LONGEST_S * len(chosen),
            base={
                **os.environ,
                "PYTORCH_CUDA_ALLOC_CONF": first.settings,
                "PYTHONPATH": str(ROOT),
            },
        )
        for name, path in paths.items():
            print(f"{name}: {keep(name, path)}", flush=True)
    if done.errors.strip() or done.exit_code:
        print(f"exit code {done.exit_code}\n{done.errors[-20_000:]}")


def keep(name: str, path: Path) -> str:
    """Write the fixture of a recorded job; return what it is like."""
    if not path.with_suffix(".stream").exists():
        return "NOT RECORDED"
    values = json.loads(path.with_suffix(".stream").read_text(encoding="utf-8"))
    log = path.with_suffix(".log")
    unmodelled = read_log(log.read_text(encoding="utf-8") if log.exists() else "")
    values["facts"]["unmodelled"] = list(unmodelled.sentences())
    text = json.dumps(values, separators=(",", ":"), sort_keys=True)
    packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json.xz").write_bytes(packed)
    return f"{len(packed):,} bytes, {compare(from_json(values))}"


def compare(stream: Stream) -> str:
    """Say whether our model of the allocator gives the peaks that torch counted."""
    played = replay(
        stream,
        settings=str(stream.facts["settings"]),
        capacity_bytes=stream.facts["card"]["total_bytes"],
    )
    ours = {one.name: [one.allocated_bytes, one.reserved_bytes] for one in played.phases}
    theirs = {
        name: [peak["allocated_bytes"], peak["reserved_bytes"]]
        for name, peak in stream.facts["peaks"].items()
    }
    said = f"{len(stream.events):,} events, peak {played.peak_allocated >> 20:,} MiB"
    return f"{said}, replayed the same" if ours == theirs else f"{said}, DIFFERS: {ours} {theirs}"


def main() -> None:
    """Record the jobs that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="jobs of stream_jobs.py")
    parser.add_argument("--python", default=sys.executable, help="the one with CUDA's torch")
    parser.add_argument("--here", type=Path, nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here is not None:
        record_here(asked.here)
        return
    from tools.stream_jobs import jobs

    groups: dict[tuple[str, str], dict[str, Recorded]] = {}
    for name, one in jobs().items():
        if not asked.names or name in asked.names:
            groups.setdefault((one.card, one.settings), {})[name] = one
    for group in groups.values():
        record_there(group, asked.python)


if __name__ == "__main__":
    main()
