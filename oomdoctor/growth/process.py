"""One process of a run as its messages and samples tell of it: series, phases, where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from oomdoctor.growth.points import Track

if TYPE_CHECKING:
    from collections.abc import Mapping

Message: TypeAlias = "Mapping[str, Any]"  # what json.loads returns


_MOST = 1 << 62
_ENDS = ("exit", "done")
_BETWEEN = ("phase", "note", "fault")


class PhasePeaks:
    """The peaks of a phase over all its times."""

    def __init__(self) -> None:
        """Know of none."""
        self.device_bytes: int | None = None
        self.host_bytes: int | None = None

    def add(self, *, device: int | None, host: int | None) -> None:
        """Keep what is higher."""
        self.device_bytes = highest(self.device_bytes, device)
        self.host_bytes = highest(self.host_bytes, host)


class ProcessBook:
    """One process: its series, its phases, and where it stands."""

    def __init__(self, pid: int) -> None:
        """Know nothing but its number."""
        self.pid = pid
        self.rank: int | None = None
        self.name = ""
        self.step: int | None = None
        self.phase: str | None = None
        self.limit_bytes: int | None = None
        self.card: int | None = None
        self.card_bytes: int | None = None
        self.longest: tuple[int, int] | None = None
        self.ended = False
        self.oom_step: int | None = None
        self.is_out = False
        self.allocated = Track()
        self.reserved = Track()
        self.idle = Track()
        self.stepped_host = Track()
        self.sampled_host = Track()
        self.sampled_device = Track()
        self.phases: dict[str, PhasePeaks] = {}
        self.host_bytes: int | None = None
        self._held: tuple[Message, float] | None = None
        """Steps that were summed up; told at the exit, their figures are those of the exit."""
        self.device_bytes: int | None = None
        """What is reserved, as it was told last; from outside what the driver says."""

    @property
    def by_step(self) -> bool:
        """Whether its host memory is known for each step."""
        return self.stepped_host.last is not None

    @property
    def host(self) -> Track:
        """Its memory on the host, by steps where they tell it."""
        return self.stepped_host if self.by_step else self.sampled_host

    def see(self, sample: Message, seconds: float) -> None:
        """Take the process's part of a sample from outside."""
        self.rank = number(sample, "rank", self.rank)
        self.name = str(sample.get("name") or self.name)
        self.limit_bytes = number(sample, "limit_bytes", self.limit_bytes)
        host = number(sample, "rss_bytes")
        if host:
            self.sampled_host.add(seconds, seconds, host)
            self.host_bytes = host
        device = number(sample, "device_bytes")
        if device:
            self.sampled_device.add(seconds, seconds, device)
            if self.reserved.last is None:
                self.device_bytes = device

    def hear(self, message: Message, seconds: float) -> None:
        """Take a message of the process."""
        self.rank = number(message, "rank", self.rank)
        kind = message.get("type")
        self._let_go(kind)
        match kind:
            case "step" if (number(message, "steps") or 1) > 1:
                self._held = (message, seconds)
            case "step":
                self._step(message, seconds)
            case "phase" | "peak":
                self._peaks(message)
            case "sample":
                self._sample(message, seconds)
            case "cards":
                totals = [number(one, "total_bytes") for one in mappings(message.get("cards"))]
                self.card_bytes = highest(self.card_bytes, *totals)
            case "oom":
                self.is_out, self.oom_step = True, self.step
            case "exit" | "done":
                self.ended = True
                self.step = number(message, "number", self.step)

    def _let_go(self, kind: object) -> None:
        """Take the steps that were held back, unless the process ends with them."""
        if self._held is None or kind in _BETWEEN:
            return
        held, self._held = self._held, None
        if kind not in _ENDS:
            self._step(*held)

    def _step(self, message: Message, seconds: float) -> None:
        step = number(message, "number")
        if step is None:
            return
        if self.step is None:  # what was told without steps had seconds in their place
            self.allocated, self.reserved, self.idle = Track(), Track(), Track()
        self.step = step
        self._figures(message, step, seconds)
        host = number(message, "rss_bytes")
        if host:
            self.stepped_host.add(step, seconds, host)
        longest = number(message, "longest")
        if longest and (self.longest is None or longest > self.longest[1]):
            self.longest = (step, longest)

    def _sample(self, message: Message, seconds: float) -> None:
        """Take the figures of a program that makes no steps; of one that does, its peaks alone."""
        if self.step is None:
            self._figures(message, seconds, seconds)
        else:
            self._peaks(message)

    def _figures(self, message: Message, at: float, seconds: float) -> None:
        self._peaks(message)
        self.card = number(message, "device", self.card)
        kept = number(message, "held_bytes", number(message, "allocated_bytes"))
        peak = number(message, "peak_allocated_bytes", number(message, "allocated_bytes"))
        if kept:
            self.allocated.add(at, seconds, kept, peak)
        reserved = number(message, "reserved_bytes")
        if reserved:
            self.reserved.add(at, seconds, reserved)
            self.device_bytes = reserved
        idle = number(message, "inactive_split_bytes")
        if idle is not None:
            self.idle.add(at, seconds, idle)
        self.host_bytes = number(message, "rss_bytes", self.host_bytes)

    def _peaks(self, message: Message) -> None:
        phase = message.get("phase")
        if not isinstance(phase, str):
            return
        self.phase = phase
        device = number(message, "peak_reserved_bytes", number(message, "reserved_bytes"))
        host = highest(number(message, "host_bytes"), number(message, "rss_bytes"))
        self.phases.setdefault(phase, PhasePeaks()).add(device=device, host=host)


def number(message: Message, key: str, otherwise: int | None = None) -> int | None:
    """Return a whole number of a message, or what to take without one."""
    value = figure(message, key)
    return otherwise if value is None else int(value)


def figure(message: Message, key: str) -> float | None:
    """Return a number of a message; None where there is none, or no sensible one."""
    value = message.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if -_MOST < value < _MOST else None


def highest(*values: int | None) -> int | None:
    """Return the highest of the values that there are."""
    return max((one for one in values if one is not None), default=None)


def mappings(value: object) -> list[Message]:
    """Return the objects of a list, of anything else none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
