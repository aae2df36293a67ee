"""Replays a snapshot through the allocator model and compares every decision with the recorded one.

The trace says what was asked for and freed, and what the driver answered. Which address a request
gets, when a segment is asked for, and what is given back are the model's own decisions.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from oomdoctor.memory.allocator import Allocator
from oomdoctor.memory.allocator_events import complete, hold
from oomdoctor.memory.allocator_oom import OutOfMemoryError
from oomdoctor.memory.allocator_release import garbage, plan
from oomdoctor.record import replace
from oomdoctor.snapshot.build import build
from oomdoctor.snapshot.driver import RecordedDriver
from oomdoctor.snapshot.events import (
    ALLOC,
    FREE_COMPLETED,
    FREE_REQUESTED,
    GIVEN_BACK,
    NO_POOL,
    OOM,
    TAKEN,
)
from oomdoctor.snapshot.outcome import Difference, Reached, Replay, consistent
from oomdoctor.snapshot.rewind import Beginning, rewind
from oomdoctor.snapshot.settings import settings_in
from oomdoctor.snapshot.slack import correct

if TYPE_CHECKING:
    from oomdoctor.memory.allocator_block import Block
    from oomdoctor.memory.allocator_settings import AllocatorSettings
    from oomdoctor.snapshot.events import Event
    from oomdoctor.snapshot.outcome import Look
    from oomdoctor.snapshot.shapes import Device, Snapshot

MOST_CORRECTIONS = 64
SHORT_S = 0.2  # a shorter run is done again, since a single look at the clock says little
REPEATS = 4


def verify(snapshot: Snapshot) -> Replay:
    """Replay all devices of a snapshot."""
    settings = settings_in(snapshot.settings, snapshot.devices)
    total = Replay()
    for device in snapshot.devices:
        total = total.plus(replay(device, settings))
    return total


@consistent()
def replay(
    device: Device, settings: AllocatorSettings, look: Look | None = None, *, timed: bool = True
) -> Replay:
    """Replay one device; sizes that only the replay can show are corrected on the way.

    With `look`, what the allocator has at its moment is looked at in passing.
    """
    allowed = replace(settings, fraction=None)
    beginning = rewind(device, Allocator(allowed))
    for corrections in range(MOST_CORRECTIONS):
        run = _Run(device, beginning, allowed)
        if run.forward(look, correcting=corrections < MOST_CORRECTIONS - 1):
            break
    seconds = run.seconds
    for _ in range(REPEATS if timed and seconds < SHORT_S else 0):
        again = _Run(device, beginning, allowed)
        again.forward(None, correcting=False)
        seconds = min(seconds, again.seconds)
    run.seconds = seconds
    return replace(run.result(), corrections=corrections, faults=beginning.faults + run.faults)


class _Run:
    """One run of the trace through the model."""

    def __init__(self, device: Device, beginning: Beginning, settings: AllocatorSettings) -> None:
        self.device = device
        self.beginning = beginning
        self.driver = RecordedDriver()
        self.allocator: Allocator = build(beginning, settings, self.driver)
        self.blocks: dict[int, Block] = dict(self.allocator.live)
        self.faults = 0
        self.same_address = 0
        self.difference: Difference | None = None
        self.seconds = 0.0
        self.private = device.private

    def forward(self, look: Look | None, *, correcting: bool) -> bool:
        """Go through the trace; false where it has to begin again with a corrected size."""
        begin, end, start = 0, len(self.device.events), time.process_time()
        if look is not None:
            if not self._forward(0, look.moment, correcting=correcting):
                return False
            exact = self.difference is None and not self.faults
            look.see(Reached(self.allocator, self.blocks, exact))
            begin = look.moment
        finished = self._forward(begin, end, correcting=correcting)
        self.seconds = time.process_time() - start
        return finished

    def _forward(self, at: int, end: int, *, correcting: bool) -> bool:
        events = self.device.events
        kinds, addresses, sizes = events.kinds, events.addresses, events.sizes
        streams, stream_numbers = events.streams, events.stream_numbers
        blocks, free = self.blocks, self.allocator.free
        diverts = bool(self.private) or any(one not in (None, NO_POOL) for one in events.pools)
        while at < end:
            kind, address = kinds[at], addresses[at]
            at += 1
            if kind == ALLOC:
                if diverts:
                    self._divert(events[at - 1])
                size, stream = sizes[at - 1], streams[stream_numbers[at - 1]]
                same = self._alloc(address, size, stream, at - 1)
                if not same and correcting and self._correct(events[at - 1]):
                    return False
            elif kind == FREE_REQUESTED:
                block = blocks.pop(address, None)
                if block is None or not block.allocated:
                    self.faults += 1
                elif at < end and kinds[at] == FREE_COMPLETED and addresses[at] == address:
                    free(block)
                    at += 1
                else:
                    blocks[address] = block
                    self.allocator.request_free(block)
                    hold(self.allocator, block)
            else:
                at = self._other(kind, at)
        return True

    def _other(self, kind: int, at: int) -> int:
        """Do what happens rarely; return the number of the next event."""
        event = self.device.events[at - 1]
        if kind == FREE_COMPLETED:
            self._complete(event)
        elif kind == OOM:
            self._fail(event)
        elif kind in GIVEN_BACK:
            return self._give_back(at - 1)
        elif kind in TAKEN:
            self.driver.coming.append(event)
        return at

    def _alloc(self, address: int, size: int, stream: int, number: int) -> bool:
        """Allocate; say whether the address is the recorded one."""
        allocator = self.allocator
        try:
            block = allocator.alloc(size, stream)
        except OutOfMemoryError:
            self.faults += 1
            return True
        finally:
            if allocator.diverted:
                allocator.diverted.clear()
        if self.driver.coming:
            self._catch_up()
        self.blocks[address] = block
        if block.address == address:
            self.same_address += 1
            return True
        if self.difference is None:
            self.difference = Difference(self.device.number, number, size, address, block.address)
            return False
        return True

    def _correct(self, event: Event) -> bool:
        """Correct the size of a block at the beginning that explains the first difference."""
        block = self.blocks.pop(event.address)
        rounded = self.allocator.round(event.size)
        self.allocator.free(block)
        if correct(self.allocator, self.beginning, rounded, event.address, block.address):
            return True
        self.blocks[event.address] = self.allocator.alloc(event.size, event.stream)
        return False

    def _complete(self, event: Event) -> None:
        block = self.blocks.pop(event.address, None)
        if block is None or not block.events:
            self.faults += 1
        else:
            complete(self.allocator, block)

    def _fail(self, event: Event) -> None:
        """Ask for what was not to be had."""
        self.driver.full = True
        self._divert(event)
        try:
            self.allocator.free(self.allocator.alloc(event.size, event.stream))
            self.faults += 1
        except OutOfMemoryError:
            pass
        finally:
            self.driver.full = False
            self.allocator.diverted.clear()
        self._catch_up()

    def _give_back(self, at: int) -> int:
        """Give back what the trace gives back next; return the number of the event behind it."""
        events, first = self.device.events, at
        while at < len(events) and events.kinds[at] in GIVEN_BACK:
            at += 1
        run = events[first:at]
        wanted = [(event.address, event.size) for event in run]
        allocator, driver = self.allocator, self.driver
        driver.coming.extend(run)
        self._let_go(run)
        first_pool = run[0].pool or NO_POOL
        if plan(allocator) == wanted:
            allocator.empty_cache()
        elif first_pool != NO_POOL and plan(allocator, first_pool) == wanted:
            allocator.empty_cache(first_pool)
        elif allocator.collects:
            self._collect(wanted)
        return at

    def _let_go(self, run: list[Event]) -> None:
        """Let go of private pools whose memory is given back, in the order of the trace.

        A pool that is in use would keep it. The order is that of a table of hashes in PyTorch.
        """
        private, freeable = self.allocator.private, self.allocator.freeable
        pools = [event.pool for event in run if event.pool is not None and event.pool in private]
        for pool in pools:
            freeable.pop(pool, None)
        for pool in pools:
            freeable.setdefault(pool, private[pool])

    def _collect(self, wanted: list[tuple[int, int]]) -> None:
        """Give old segments back if these are the ones that garbage collection chooses."""
        chosen: list[Block] = []
        for old in garbage(self.allocator):
            chosen += old
            if [(one.address, one.size) for one in chosen] == wanted:
                for block in chosen:
                    self.allocator.release(block)
                return

    def _catch_up(self) -> None:
        """Do what the trace did and the model did not; it does not count as the same."""
        allocator, driver = self.allocator, self.driver
        same = driver.same
        while driver.coming:
            event = driver.coming[0]
            if event.action == "segment_free":
                for pool in allocator.pools():
                    for block in list(pool.free_blocks()):
                        if block.address == event.address and block.whole and block.range is None:
                            allocator.release(block)
            if driver.coming and driver.coming[0] is event:
                driver.coming.popleft()
        driver.same = same

    def _divert(self, event: Event) -> None:
        """Let the next allocation come from the private pool that the recorded one came from."""
        pool = event.pool
        if pool is None and self.private:
            pool = next((p for low, high, p in self.private if low <= event.address < high), None)
        if pool is not None and pool != NO_POOL:
            if pool not in self.allocator.private:
                self.allocator.create_pool(pool)
            self.allocator.diverted.append((pool, None))

    def result(self) -> Replay:
        self._catch_up()
        stats = self.allocator.memory_stats()
        events = self.device.events
        return Replay(
            allocations=events.kinds.count(ALLOC),
            same_address=self.same_address,
            segment_events=len(events.of_kinds(*TAKEN, *GIVEN_BACK)),
            same_segment_events=self.driver.same,
            events=len(events),
            seconds=self.seconds,
            peak_allocated=stats["allocated_bytes.all.peak"],
            peak_reserved=stats["reserved_bytes.all.peak"],
            first_difference=self.difference,
        )
