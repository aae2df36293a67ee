"""What one engine says of one job: the peak, its phases, parts and owners, and what needs it.

Both engines end here, so that verdicts, tables and pages do not ask which one spoke.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.bands import FRAGMENTED
from oomdoctor.model.estimate import SIMULATE
from oomdoctor.record import dataclass, field, replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.memory.bands import Band
    from oomdoctor.memory.stream import Stream
    from oomdoctor.memory.stream_replay import Failed, Replay
    from oomdoctor.model.estimate import LinePoint, Owner, PartBytes, PhasePeak


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The peak of a job by one engine, under one setting of the allocator.

    `band` is by how much it may be off, `told` is what was seen beside the figures; `stream` and
    `played` are there where the allocations were simulated, or recorded.
    """

    engine: str
    allocated: int
    reserved: int | None
    phase: str
    band: Band
    phases: tuple[PhasePeak, ...] = ()
    parts: tuple[PartBytes, ...] = ()
    categories: tuple[PartBytes, ...] = ()
    owners: tuple[Owner, ...] = ()
    line: tuple[LinePoint, ...] = ()
    assumptions: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    origin: str = ""
    settings: str = ""
    host_bytes: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    stream: Stream | None = None
    played: Replay | None = None

    @property
    def up(self) -> float:
        """Return by which share more may have to be reserved than it says."""
        return self.band.up

    @property
    def down(self) -> float:
        """Return by which share less may have to be reserved than it says."""
        return self.band.down

    @property
    def needed(self) -> int:
        """Return the bytes that the allocator asks of a card with room to spare."""
        return int(self.allocated * FRAGMENTED) if self.reserved is None else self.reserved

    def fails(self, room: int) -> bool:
        """Say whether a request fails where the allocator may have `room` bytes.

        A full cache is given back before a request fails, so that between the allocated and the
        reserved peak only a replay can tell.
        """
        if self.stream is None:
            return self.needed > room
        if "per_process_memory_fraction" not in self.settings and self.needed <= room:
            return False
        return room < self.allocated or self.failure(room) is not None

    def failure(self, room: int) -> Failed | None:
        """Return the request that fails; None where none does, or where none can be named."""
        if self.stream is None:
            return None
        from oomdoctor.memory.stream_replay import replay

        return replay(self.stream, settings=self.settings, capacity_bytes=max(room, 0)).failed


def bare_peak(stream: Stream, *, settings: str = "", band: Band) -> Peak:
    """Replay a stream for its peak alone."""
    from oomdoctor.memory.stream_replay import replay

    played = replay(stream, settings=settings)
    highest = max(played.phases, key=lambda one: one.allocated_bytes, default=None)
    return Peak(
        engine=SIMULATE,
        allocated=played.peak_allocated,
        reserved=played.peak_reserved,
        phase="" if highest is None else highest.name,
        band=band,
        phases=played.phases,
        settings=settings,
        stream=stream,
        played=played,
    )


def peak_of_stream(
    stream: Stream, *, settings: str = "", band: Band, versions: Mapping[str, str]
) -> Peak:
    """Replay a stream and say what holds the memory at its peak."""
    from oomdoctor.memory.stream_balance import balance
    from oomdoctor.memory.stream_line import time_line

    bare = bare_peak(stream, settings=settings, band=band)
    if bare.played is None:
        return bare
    sheet = balance(stream, bare.played)
    return replace(
        bare,
        parts=sheet.parts,
        categories=sheet.categories,
        owners=sheet.owners,
        line=time_line(stream, bare.played),
        assumptions=stream.assumptions,
        origin=stream.origin,
        versions=versions,
    )
