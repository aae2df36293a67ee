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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.lab.protocol import decode, encode
from oomdoctor.memory.stream_json import from_json, to_json
from oomdoctor.memory.stream_replay import replay
from oomdoctor.model.job import CardSpec, Job
from oomdoctor.virtual.card import card_named
from oomdoctor.virtual.run import run_python
from oomdoctor.virtual.unmodelled import read_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.memory.stream import Stream
    from oomdoctor.worker.history.recorder import Recorder
    from tools.stream_jobs import Recorded

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "fixtures" / "streams"
LONGEST_S = 400  # for a job


def run_of(loop: str, job: Job) -> Callable[[Recorder], object] | None:
    """Return what runs a job: a trainer by its name, None for the worker's own loop."""
    if loop == "worker":
        return None
    trainers = importlib.import_module("tools.stream_trainers")
    return partial(trainers.run_trainer, loop, job)


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
    record = importlib.import_module("oomdoctor.worker.history.recorder").record
    loop = wanted["loop"]
    stream = record(job, card, wanted["settings"], loop=loop, run=run_of(loop, job))
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
