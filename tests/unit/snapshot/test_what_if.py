"""Replaying the requests of a run under its own settings gives what the run gave."""

from __future__ import annotations

import pytest

from oomdoctor.snapshot.replay import replay
from oomdoctor.snapshot.report import outcomes_of
from oomdoctor.snapshot.settings import settings_in
from oomdoctor.snapshot.shapes import snapshot_of
from tests.unit.snapshot.planted import MIB, Recorded, leak, train
from tests.unit.snapshot.runs import recorded


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "text", ["", "expandable_segments:True", "max_split_size_mb:32", "roundup_power2_divisions:4"]
)
def test_the_settings_of_the_run_give_its_peaks(text: str, seed: int) -> None:
    snapshot = snapshot_of(recorded(text, seed=seed, streams=2))
    (device,) = snapshot.devices
    settings = settings_in(snapshot.settings, snapshot.devices)

    (outcome,) = outcomes_of(device, settings, 600 * MIB, ())

    run = replay(device, settings)
    assert outcome.failure is None
    assert outcome.peak_reserved_bytes == run.peak_reserved
    assert outcome.peak_allocated_bytes == run.peak_allocated


def test_on_a_smaller_card_the_first_request_without_room_is_told() -> None:
    snapshot = snapshot_of(train(Recorded(), extra=leak(8 * MIB)).snapshot())
    (device,) = snapshot.devices
    settings = settings_in(snapshot.settings, snapshot.devices)

    (whole,) = outcomes_of(device, settings, None, ())
    (enough,) = outcomes_of(device, settings, whole.peak_reserved_bytes, ())
    (less,) = outcomes_of(device, settings, whole.peak_allocated_bytes - 8 * MIB, ())

    assert enough.failure is None
    assert less.failure is not None
    assert device.events[less.failure.event].size == less.failure.requested_bytes


def test_a_card_that_cannot_hold_the_beginning_fails_before_the_first_event() -> None:
    snapshot = snapshot_of(train(Recorded(kept=300)).snapshot())
    (device,) = snapshot.devices

    (outcome,) = outcomes_of(device, settings_in({}, ()), 100 * MIB, ())

    assert outcome.failure is not None
    assert outcome.failure.event == -1
