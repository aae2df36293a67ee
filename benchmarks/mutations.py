"""Diagnose ten thousand mutated logs: none may raise, be slow, or make a healthy run ill.

    python benchmarks/mutations.py [--count 10000] [--first 0] [--processes 2] [--check]
    python benchmarks/mutations.py --show 1742 > log.txt        the log of one seed, to look at

Processor time counts, not the clock. On a machine with other work to do even that grows: beside
each megabyte a plain loop is measured, and the time is scaled to the quickest loop of all.
The mutations themselves stand in tests/fuzz/mutations.py.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the checkout is measured, installed or not

MOST_SECONDS = 2.0
"""For a megabyte."""
MOST_PROBABILITY = 0.6
RENDERED_EACH = 8
"""One answer in so many is also made a page."""
HANGS_AFTER_S = 300
LARGE = 500_000
WORST = 8
_FAILED = (" failed: ", "were not derived")


class Run(NamedTuple):
    """What one mutated log gave."""

    seed: int
    name: str
    size: int
    seconds: float
    healthy: bool
    answer: str
    cause: str
    probability: float
    fault: str
    loop: float = 0.0


class HangError(Exception):
    """A diagnosis did not end."""


def run(seed: int) -> Run:
    """Diagnose the log of one seed."""
    from oomdoctor.errors import InputError
    from tests.fuzz.mutations import mutated

    data, name, healthy = mutated(seed)
    answer, cause, probability, fault = "", "", 0.0, ""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crash.log"
        path.write_bytes(data)
        start = time.process_time()
        signal.alarm(HANGS_AFTER_S)
        try:
            answer, cause, probability, fault = ask(path)
        except InputError as refused:
            answer = f"refused: {str(refused).rpartition(': ')[2]}"
        except Exception as raised:  # noqa: BLE001 - what this looks for
            fault = f"{type(raised).__name__}: {raised}"
        signal.alarm(0)
        seconds = time.process_time() - start
    loop = _loop() if len(data) >= LARGE else 0.0
    return Run(seed, name, len(data), seconds, healthy, answer, cause, probability, fault, loop)


def _loop() -> float:
    """Return the processor time of a plain loop: how busy the machine is."""
    start, total = time.process_time(), 0
    for number in range(1_000_000):
        total += number & 3
    return time.process_time() - start


def ask(path: Path) -> tuple[str, str, float, str]:
    """Return the answer, the leading cause, its probability, and what failed on the way."""
    from oomdoctor.pipeline import diagnose
    from oomdoctor.render.json import to_json
    from oomdoctor.render.text import render

    found = diagnose(str(path))
    to_json(found)
    if path.stat().st_size % RENDERED_EACH == 0:
        render(found, width=80, colour=False, unicode=False)
    fault = "; ".join(note for note in found.notes if any(one in note for one in _FAILED))
    leading = found.causes[0] if found.causes else None
    if leading is None:
        return str(found.answer), "", 0.0, fault
    return str(found.answer), leading.cause, leading.probability, fault


def prepare() -> None:
    """Load the rules once per process, and end what hangs."""
    from oomdoctor.rules import loader

    held = loader.load_rules()
    vars(loader)["load_rules"] = lambda *_given, **_named: held
    signal.signal(signal.SIGALRM, _stop)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise HangError(f"still running after {HANGS_AFTER_S} s")


def _scaled(one: Run, quickest: float) -> Run:
    return one._replace(seconds=one.seconds * quickest / one.loop) if one.loop else one


def pace(one: Run) -> float:
    """Return the seconds for a megabyte; of a smaller log, the seconds."""
    return one.seconds / max(one.size / 1e6, 1.0)


def report(runs: Iterable[Run]) -> bool:
    """Print what was found; return whether it is within the bounds."""
    runs = list(runs)
    quickest = min((one.loop for one in runs if one.loop), default=0.0)
    runs = [_scaled(one, quickest) for one in runs]
    large = [one for one in runs if one.size >= LARGE]
    healthy = [one for one in runs if one.healthy]
    faults = [one for one in runs if one.fault]
    ill = [one for one in healthy if one.probability >= MOST_PROBABILITY]
    slow = [one for one in runs if pace(one) > MOST_SECONDS]
    print(f"logs {len(runs)}, of a megabyte {len(large)}, of healthy runs {len(healthy)}")
    print("answers", dict(collections.Counter(one.answer for one in runs).most_common()))
    print("on healthy runs", dict(collections.Counter(one.answer for one in healthy).most_common()))
    print(f"raised or failed {len(faults)}, slow {len(slow)}, healthy runs made ill {len(ill)}")
    if large:
        print(f"slowest: {1000 * max(map(pace, large)):.0f} ms of processor time for 1 MB")
        print(
            f"the loop took {1000 * quickest:.0f} to {1000 * max(one.loop for one in runs):.0f} ms"
        )
    small = max((one.seconds for one in runs if one.size < LARGE), default=0.0)
    print(f"slowest small log: {1000 * small:.0f} ms")
    print(f"highest cause on a healthy run: {max((one.probability for one in healthy), default=0)}")
    _show("raised or failed", faults)
    _show("slowest", sorted(runs, key=lambda one: -pace(one))[:WORST])
    _show("made ill", sorted(ill, key=lambda one: -one.probability))
    return not (faults or slow or ill)


def _show(title: str, runs: list[Run]) -> None:
    print(f"-- {title}")
    for one in runs[: 5 * WORST]:
        told = one.fault or f"{one.answer} {one.cause} {one.probability:.2f}"
        print(f"{one.seed:7} {one.size:8} B {1000 * one.seconds:7.0f} ms  {one.name}  {told}"[:300])


def main() -> None:
    """Run the mutations and say what they gave."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="exit 1 where a bound is exceeded")
    parser.add_argument("--show", type=int, help="print the log of one seed and do nothing else")
    options = parser.parse_args()
    if options.show is not None:
        from tests.fuzz.mutations import mutated

        sys.stdout.buffer.write(mutated(options.show).data)
        return
    seeds = range(options.first, options.first + options.count)
    with multiprocessing.Pool(options.processes, initializer=prepare) as pool:
        within = report(pool.imap_unordered(run, seeds, chunksize=16))
    sys.exit(options.check and not within)


if __name__ == "__main__":
    main()
