"""A report is made of any trace, however its events contradict one another."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.errors import InputError
from oomdoctor.render.snapshot_json import report_json
from oomdoctor.render.snapshot_page import snapshot_page
from oomdoctor.snapshot.replay import verify
from oomdoctor.snapshot.report import report_on
from oomdoctor.snapshot.shapes import snapshot_of
from tests.unit.snapshot.planted import MIB, Recorded, leak, train
from tests.unit.snapshot.runs import recorded

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS = {
    "events are lost": lambda events, dice: [one for one in events if dice.random() < 0.8],
    "events come twice": lambda events, dice: [
        one for one in events for _ in range(1 + (dice.random() < 0.2))
    ],
    "events change places": lambda events, dice: dice.sample(events, len(events)),
    "other addresses": lambda events, dice: [
        one | {"addr": one.get("addr", 0) + dice.choice((0, 512, 1 << 40))} for one in events
    ],
    "other sizes": lambda events, dice: [
        one | {"size": dice.choice((0, 1, one["size"], 1 << 50, (1 << 63) + 7))} for one in events
    ],
    "other streams": lambda events, dice: [one | {"stream": dice.randrange(9)} for one in events],
    "other actions": lambda events, dice: [
        one
        | {
            "action": dice.choice(
                (
                    "alloc",
                    "free_completed",
                    "free_requested",
                    "oom",
                    "segment_alloc",
                    "segment_free",
                    "segment_map",
                    "segment_unmap",
                    "snapshot",
                    "of another version",
                )
            )
        }
        | {"device_free": one.get("addr", 0), "addr": one.get("addr", 0)}
        for one in events
    ],
}


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_report_is_made(name: str, seed: int, settings: str) -> None:
    damage: Callable[[list[Any], random.Random], list[Any]] = KINDS[name]
    dice = random.Random(seed)  # noqa: S311 - made-up damage
    runs = (
        train(Recorded(settings), steps=8, extra=leak(MIB)).snapshot(),
        recorded(settings, seed=seed, streams=2, pools=True),
    )
    for plain in runs:
        plain["device_traces"] = [damage(events, dice) for events in plain["device_traces"]]

        try:
            report = report_on(snapshot_of(plain))
        except InputError as error:
            assert "more than any card has" in error.message  # noqa: PT017 - the only refusal
            continue
        assert report_json(report).startswith("{")
        assert snapshot_page(report, "a").lead


def test_a_trace_that_cannot_be_replayed_is_told_in_words() -> None:
    plain = recorded("expandable_segments:True", seed=2, streams=2, pools=True)
    (events,) = plain["device_traces"]
    dice = random.Random(1)  # noqa: S311 - made-up damage
    damaged = [dict(one, stream=dice.randrange(9)) for one in dice.sample(events, len(events))]
    snapshot = snapshot_of(plain | {"device_traces": [damaged]})

    with pytest.raises(InputError, match="contradict one another, so it cannot be replayed"):
        verify(snapshot)
    (device,) = report_on(snapshot).devices
    assert (device.replay, device.fragmentation, device.outcomes) == (None, None, ())
    assert device.peak.held_bytes > 0
