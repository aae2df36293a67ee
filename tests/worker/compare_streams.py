"""Trace recorded jobs, each in a fork of this process, and say how close the streams are.

    python tests/worker/compare_streams.py NAME...

writes a line of JSON for each: peaks of the recording and ours by phase, and whether the events
are the same, in order or but for the order of what is freed in one run.
"""

from __future__ import annotations

import importlib
import json
import lzma
import os
import sys
import traceback
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oomdoctor.lab.protocol import decode
from oomdoctor.memory.stream_json import from_json
from oomdoctor.memory.stream_replay import replay
from oomdoctor.model.job import CardSpec, Job

if TYPE_CHECKING:
    from oomdoctor.memory.stream import Stream

FOLDER = Path(__file__).parents[2] / "fixtures" / "streams"
IMPORTED_FIRST = (
    *("transformers.models.auto.modeling_auto", "peft"),
    *("oomdoctor.worker.run.job", "oomdoctor.worker.fake.trace"),
)


def recorded(name: str) -> Stream:
    """Return a stream of the folder."""
    packed = (FOLDER / f"{name}.json.xz").read_bytes()
    return from_json(json.loads(lzma.decompress(packed)))


def sizes(stream: Stream) -> list[int]:
    """Return the bytes of each event, negative where they are freed, up to the last allocation.

    What is freed after it hangs on when Python lets a whole run go.
    """
    made, events = stream.allocations, list(stream.events)
    while events and events[-1] < 0:
        events.pop()
    return [made[one].size if one >= 0 else -made[~one].size for one in events]


def without_order(events: list[int]) -> list[int]:
    """Return the events with each run of frees in one order."""
    runs = (list(run) for _, run in groupby(events, (0).__lt__))
    return [one for run in runs for one in (run if run[0] > 0 else sorted(run))]


def compare(name: str) -> dict[str, Any]:
    """Trace the job of a recording on its card."""
    theirs = recorded(name)
    facts: Any = theirs.facts
    trace = importlib.import_module("oomdoctor.worker.fake.trace").trace
    ours = trace(decode(Job, facts["job"]), decode(CardSpec, facts["card"]))
    played = replay(ours, settings=facts["settings"], capacity_bytes=facts["card"]["total_bytes"])
    events = sizes(ours), sizes(theirs)
    return {
        "name": name,
        "engine": ours.facts["engine"],
        "theirs": {
            phase: [peak["allocated_bytes"], peak["reserved_bytes"]]
            for phase, peak in facts["peaks"].items()
        },
        "ours": {one.name: [one.allocated_bytes, one.reserved_bytes] for one in played.phases},
        "same": events[0] == events[1],
        "same but for order": without_order(events[0]) == without_order(events[1]),
    }


def main() -> None:
    """Compare what is named, one after the other."""
    for module in IMPORTED_FIRST:
        importlib.import_module(module)
    for name in sys.argv[1:]:
        child = os.fork()
        if child == 0:
            try:
                line = json.dumps(compare(name))
            except BaseException:  # noqa: BLE001 - the test shows it
                line = json.dumps({"name": name, "error": traceback.format_exc()})
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            os._exit(0)  # tensors of a card that is none are not worth freeing
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
