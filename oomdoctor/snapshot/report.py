"""Everything that a snapshot tells about a run, device by device.

    report = report_on(read_snapshot("snapshot.pickle"))
    report.devices[0].suspects[0].site.frame

The verdicts are made in `leaks`, `fragmentation`, `balance` and `what_if`; here they are called in
order, each with what it needs.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError
from oomdoctor.memory.allocator import Allocator
from oomdoctor.memory.allocator_settings import read_settings
from oomdoctor.record import dataclass, replace
from oomdoctor.snapshot.balance import balance_at
from oomdoctor.snapshot.capacity import capacity_of
from oomdoctor.snapshot.fragmentation import fragmentation_at
from oomdoctor.snapshot.leaks import suspects_in
from oomdoctor.snapshot.lives import curve_of, lives_of
from oomdoctor.snapshot.outcome import Look
from oomdoctor.snapshot.replay import replay
from oomdoctor.snapshot.rewind import rewind
from oomdoctor.snapshot.settings import settings_in
from oomdoctor.snapshot.steps import steps_of
from oomdoctor.snapshot.what_if import what_if

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.memory.allocator_settings import AllocatorSettings
    from oomdoctor.snapshot.balance import Balance
    from oomdoctor.snapshot.fragmentation import Fragmentation
    from oomdoctor.snapshot.leaks import Suspect
    from oomdoctor.snapshot.outcome import Replay
    from oomdoctor.snapshot.shapes import Device, Snapshot
    from oomdoctor.snapshot.stacks import Stack
    from oomdoctor.snapshot.steps import Steps
    from oomdoctor.snapshot.what_if import Outcome

CANDIDATES = (
    "expandable_segments:True",
    "max_split_size_mb:128",
    "roundup_power2_divisions:8",
)
COLLECTING = "garbage_collection_threshold:0.8"  # without a limit nothing is collected


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReport:
    """The verdicts on one card.

    `failed_bytes` is the latest request that failed, asked for by `failed_stack`; `peak` is the
    moment when most was held, and `failure` the one when that request failed. `curve` is what was
    held before each event.
    `outcomes` begins with the settings of the run. `before_bytes` were held when the recording
    began. `capacity_bytes` is what the process could have, known from a failed request. There is
    no replay, nor what follows from it, where the events contradict one another.
    """

    number: int
    events: int
    replay: Replay | None
    steps: Steps | None
    suspects: tuple[Suspect, ...]
    peak: Balance
    failure: Balance | None
    failed_bytes: int | None
    failed_stack: Stack | None
    fragmentation: Fragmentation | None
    capacity_bytes: int | None
    outcomes: tuple[Outcome, ...]
    curve: Sequence[int]
    before_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotReport:
    """The verdicts on all cards, the settings of the run, and the stacks by number."""

    devices: tuple[DeviceReport, ...]
    settings: str
    stacks: tuple[Stack, ...]


def report_on(snapshot: Snapshot, *, try_settings: bool = True) -> SnapshotReport:
    """Return the verdicts on a snapshot; without `try_settings`, there are no `outcomes`."""
    settings = settings_in(snapshot.settings, snapshot.devices)
    return SnapshotReport(
        devices=tuple(
            _device(one, snapshot, settings, try_settings=try_settings) for one in snapshot.devices
        ),
        settings=settings.text,
        stacks=snapshot.stacks,
    )


def _device(
    device: Device, snapshot: Snapshot, settings: AllocatorSettings, *, try_settings: bool
) -> DeviceReport:
    lives, stacks = lives_of(device), snapshot.stacks
    curve = curve_of(lives, len(device.events))
    peak = curve.index(max(curve))
    steps = steps_of(device, snapshot, curve)
    failed = device.events.last_failed()
    event = None if failed is None else device.events[failed]
    moment = len(device.events) if failed is None else failed
    seen: list[Fragmentation] = []
    look = Look(moment, lambda one: seen.append(fragmentation_at(one, moment, event, lives)))
    replayed: Replay | None = None
    outcomes: tuple[Outcome, ...] = ()
    capacity = capacity_of(device)
    candidates = CANDIDATES if capacity is None else (*CANDIDATES, COLLECTING)
    with suppress(InputError):
        replayed = replay(device, settings, look, timed=False)
        if try_settings and device.events:
            outcomes = outcomes_of(device, settings, capacity, candidates)
    return DeviceReport(
        number=device.number,
        events=len(device.events),
        replay=replayed,
        steps=steps,
        suspects=() if steps is None else suspects_in(lives, steps, stacks, peak),
        peak=balance_at(lives, peak, stacks),
        failure=None if failed is None else balance_at(lives, failed, stacks),
        failed_bytes=None if event is None else event.size,
        failed_stack=_stack_of(device, failed, stacks),
        fragmentation=None if replayed is None else seen[-1],
        capacity_bytes=capacity,
        outcomes=outcomes,
        curve=curve,
        before_bytes=lives.before_bytes(),
    )


def _stack_of(device: Device, event: int | None, stacks: Sequence[Stack]) -> Stack | None:
    if event is None or not device.stacks:
        return None
    return stacks[device.stacks[event]]


def outcomes_of(
    device: Device,
    settings: AllocatorSettings,
    capacity: int | None,
    candidates: Sequence[str],
) -> tuple[Outcome, ...]:
    """Return what came of the requests under the settings of the run, and under each candidate."""
    others = [_with(settings, text) for text in candidates]
    return tried_under(device, [settings, *others], settings, capacity)


def tried_under(
    device: Device,
    wanted: Sequence[AllocatorSettings],
    run: AllocatorSettings,
    capacity: int | None,
) -> tuple[Outcome, ...]:
    """Return what came of the requests under each of some settings; `run` has those of the run."""
    beginning = rewind(device, Allocator(replace(run, fraction=None)))
    return tuple(what_if(device, beginning, one, capacity) for one in wanted)


def _with(settings: AllocatorSettings, text: str) -> AllocatorSettings:
    """Return the settings of the run with another option, which replaces the same one."""
    return read_settings(f"{settings.text},{text}" if settings.text else text)
