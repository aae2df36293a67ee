"""The virtual engine: torch's own CUDA build and allocator run the job, on a card that is played.

Peaks are those that torch counted; cards are judged by replaying what its allocator was asked for.
Who holds what comes from a simulation of the same job, as far as both make the same allocations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.estimating.cards import usual_cards
from oomdoctor.estimating.growth import Growth
from oomdoctor.estimating.peak import bare_peak, peak_of_stream
from oomdoctor.estimating.shapes import shape_of
from oomdoctor.estimating.simulation import Simulation
from oomdoctor.lab.protocol import RecordRequest
from oomdoctor.lab.session import WorkerError
from oomdoctor.memory import bands
from oomdoctor.memory.stream_balance import live_after
from oomdoctor.memory.stream_names import Named, named
from oomdoctor.model.estimate import OOM, VIRTUAL, PhasePeak
from oomdoctor.record import replace
from oomdoctor.units import format_count, format_size
from oomdoctor.virtual.outside import CONTEXT_BYTES
from oomdoctor.virtual.unmodelled import read_log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.estimating.peak import Peak
    from oomdoctor.estimating.virtual_sessions import Sessions
    from oomdoctor.memory.stream import Stream
    from oomdoctor.model.job import CardSpec, Job

USUAL = "NVIDIA A100-SXM4-80GB"
NO_CARD = (
    f"no card was named: the run was on an {USUAL}, whose kernels are taken for every card below; "
    "--gpu NAME runs it on another"
)
CHECKED = (
    "nothing was computed; the allocator's figures are PyTorch's own, and docs/virtual.md says how "
    "far they were compared with real cards"
)
SAME = "torch's counters and our replay of its allocator agree on the peak of every phase"
_MORE = " Including non-PyTorch memory"
"""What torch says from here on of its own memory, the estimate says as well."""
MOST_UNNAMED = 0.01
"""The share of the peak that may be without a name where parts are shown."""


class Virtual(Simulation):
    """Runs jobs on a virtual card, each once for each of the allocator's settings."""

    name = VIRTUAL

    def __init__(
        self,
        sessions: Sessions,
        card: CardSpec | None,
        *,
        settings: str = "",
        say: Callable[[str], None] | None = None,
    ) -> None:
        """Run nothing yet; without a card a usual one is taken, and said."""
        played = usual_card() if card is None else card
        super().__init__(sessions, played, settings=settings, say=say)
        self._sessions = sessions
        self._is_chosen = card is None
        self._simulation = Simulation(sessions, played, say=say)
        self._names: dict[int, Named | str] = {}  # by the stream, which is kept
        self._cards = {_kernels(played): self}

    def under(self, settings: str) -> Virtual:
        """Return what runs jobs under other settings of the allocator: torch's own again."""
        if settings == self.settings:
            return self
        other = Virtual(self._sessions, self.card, settings=settings, say=self._say)
        other._is_chosen, other._simulation = self._is_chosen, self._simulation
        return other

    def on(self, card: CardSpec) -> Virtual:
        """Return what runs jobs on a card; this one where it has the same kernels."""
        known = self._cards.get(_kernels(card))
        if known is None:
            known = Virtual(self._sessions, card, settings=self.settings, say=self._say)
            known._cards = self._cards
            self._cards[_kernels(card)] = known
        return known

    def end_on(self, job: Job, card: CardSpec) -> str | None:
        """Run a job on the card as large as it is, and say what torch says at the end."""
        self._say(f"running on a virtual {card.name} of its own size")
        where = f"{card.name} of {format_size(card.total_bytes)}"
        taken = format_size(CONTEXT_BYTES)
        request = RecordRequest(job=job, card=card, settings=self.settings, is_own_size=True)
        try:
            self._sessions.record(request)
        except WorkerError as error:
            ended = f"could not be made ({error.message.partition(chr(10))[0]})"
            if error.kind == OOM:
                said = error.message.partition(_MORE)[0].rstrip(". ")
                ended = f"ends with torch's own error, {said}"
        else:
            ended = "comes to its end"
        return f"on a virtual {where}, {taken} of it for the context, the run {ended}"

    def _made(self, job: Job, phases: Sequence[str]) -> Stream:
        """Run a job, and name what it allocates where a simulation makes the same."""
        self._say(f"running on a virtual {self.card.name}")
        recorded = self._sessions.record(
            RecordRequest(job=job, card=self.card, settings=self.settings, phases=tuple(phases))
        )
        try:
            simulated = self._simulation.stream(job, phases=phases)
        except WorkerError as error:
            why = error.message.partition("\n")[0]
            self._names[id(recorded)] = f"no simulation names it ({why})"
            return recorded
        found = named(recorded, simulated)
        self._names[id(found.stream)] = found
        return found.stream

    def _learned(self, job: Job) -> Growth | None:
        """Return how allocations grow by the simulation's laws; None where it does not name them.

        Each other batch is then run.
        """
        stream = self.stream(job)
        found = self._names[id(stream)]
        most = MOST_UNNAMED * max(_counted(stream).values(), default=0)
        follows = isinstance(found, Named) and found.unnamed_bytes <= most
        laws = self._simulation.laws(job) if follows else None
        return None if laws is None else Growth(stream, shape_of(job), laws)

    def _peak(self, stream: Stream) -> Peak:
        made = peak_of_stream(
            stream, settings=self.settings, band=bands.VIRTUAL, versions=self._versions()
        )
        left = _unnamed_bytes(stream, made)
        is_known = left <= MOST_UNNAMED * made.allocated
        if not is_known:
            made = replace(made, parts=(), categories=(), owners=())
        unmodelled = read_log(str(stream.facts.get("log", "")))
        made = replace(
            made,
            engine=VIRTUAL,
            origin=f"run on a virtual {self.card.name} by the CUDA build of torch"
            f" {self._versions().get('torch', '')}".rstrip(),
            assumptions=(*made.assumptions, *unmodelled.sentences()),
        )
        names = _names_words(self._names[id(stream)], left, is_known=is_known)
        told = (*([NO_CARD] if self._is_chosen else []), names, CHECKED)
        return counted(replace(made, told=told), stream)

    def _versions(self) -> dict[str, str]:
        return dict(self._sessions.versions)

    def _bare(self, stream: Stream) -> Peak:
        made = bare_peak(stream, settings=self.settings, band=bands.VIRTUAL)
        return replace(made, engine=VIRTUAL)


def usual_card() -> CardSpec:
    """Return the card of a run that names none."""
    return next(one for one in usual_cards() if one.name == USUAL)


def counted(peak: Peak, stream: Stream) -> Peak:
    """Return a peak with what torch counted in place of the replay's, and how far they differ."""
    allocated, reserved = (_counted(stream, key) for key in ("allocated_bytes", "reserved_bytes"))
    if not allocated:
        return peak
    replayed = {one.name: (one.allocated_bytes, one.reserved_bytes) for one in peak.phases}
    theirs = {name: (allocated[name], reserved[name]) for name in allocated}
    highest = max(allocated, key=lambda name: allocated[name])
    parts_add_up = peak.allocated == allocated[highest]
    says = SAME
    if replayed != theirs:
        says = (
            f"torch counted {_peak_words(theirs)}, our replay of its allocator comes to"
            f" {_peak_words(replayed)}: figures are torch's, cards are judged by the replay"
            f"{'' if parts_add_up else ', and who holds what, which is its, is left out'}"
        )
    return replace(
        peak,
        allocated=allocated[highest],
        reserved=max(reserved.values()),
        phase=highest,
        phases=tuple(
            PhasePeak(name=name, allocated_bytes=one[0], reserved_bytes=one[1])
            for name, one in theirs.items()
        ),
        parts=peak.parts if parts_add_up else (),
        categories=peak.categories if parts_add_up else (),
        owners=peak.owners if parts_add_up else (),
        told=(*peak.told, says),
    )


def _peak_words(phases: dict[str, tuple[int, int]] | dict[str, tuple[int, int | None]]) -> str:
    allocated = max((one[0] for one in phases.values()), default=0)
    reserved = max((one[1] or 0 for one in phases.values()), default=0)
    return f"{format_size(allocated)} allocated and {format_size(reserved)} reserved"


def _counted(stream: Stream, key: str = "allocated_bytes") -> dict[str, int]:
    """Return what torch counted in each phase."""
    peaks = stream.facts.get("peaks")
    return {name: one[key] for name, one in peaks.items()} if isinstance(peaks, dict) else {}


def _unnamed_bytes(stream: Stream, peak: Peak) -> int:
    """Return what of the peak no simulation names."""
    played = peak.played
    if played is None:
        return 0
    live = live_after(stream, played.peak_event)
    return sum(played.blocks[one] for one in live if not stream.allocations[one].operator)


def _names_words(found: Named | str, left: int, *, is_known: bool) -> str:
    """Say where names come from, and what of the peak has none."""
    unknown = "who holds what is not known"
    if isinstance(found, str):
        return f"{unknown}: {found}"
    count, alike = format_count(len(found.stream.allocations)), format_count(found.alike)
    if found.is_whole:
        words = f"a simulation of the job makes the same {count} allocations in the same order"
        return f"{words}: modules and kinds are its"
    words = f"{alike} of {count} allocations are those of a simulation of the job"
    whose = f"of the peak, {format_size(left)} has no name"
    if not is_known:
        return f"{unknown}: only {words}; {whose}"
    return f"{words}: modules and kinds are its; {whose}"


def _kernels(card: CardSpec) -> tuple[tuple[int, int], int]:
    """Return what decides which kernels run, and with which workspaces."""
    return card.capability, card.processors
