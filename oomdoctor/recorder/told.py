"""What one process of a run told from inside: its steps, phases, failures and end.

{"t": 1796078904.638, "type": "step", "pid": 21819, "number": 12, "phase": "train step", ...}
"""

from __future__ import annotations

from oomdoctor.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step: its number, when it ended (seconds since 1970), and the figures at its end.

    `steps` are those that it stands for where fast ones were summed up; `line` is its place in
    events.jsonl.
    """

    number: int
    t: float
    line: int
    seconds: float | None = None
    tokens: int | None = None
    longest: int | None = None
    phase: str | None = None
    steps: int = 1
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    rss_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A phase with its peaks over all the times that it came; `times` counts them.

    `host_bytes` is the highest resident size of the process up to its end.
    """

    name: str
    line: int
    seconds: float = 0.0
    times: int = 1
    peak_allocated_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    host_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemory:
    """A refusal of memory, as the process saw it; `device` is None for memory of the host.

    `frames` are (file, function, line) from the innermost on; `folder` holds what was dumped.
    `went_on` says that the process stepped afterwards. `rows`, `longest` and `tokens` are those of
    the batch that was under way.
    """

    t: float
    line: int
    exception: str
    device: int | None = None
    requested_bytes: int | None = None
    free_bytes: int | None = None
    card_bytes: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    fraction: float | None = None
    phase: str | None = None
    step: int | None = None
    text: str | None = None
    frames: tuple[tuple[str, str, int], ...] = ()
    folder: str | None = None
    went_on: bool = False
    rows: int | None = None
    longest: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """An exception that nothing caught."""

    t: float
    line: int
    exception: str
    text: str
    causes: tuple[str, ...] = ()
    thread: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process that was recorded; `key` names its folder, `phases` are in their order.

    `exited` says that it came to its own end, `last` when it told something last.
    """

    key: str
    pid: int
    parent: int | None = None
    rank: int | None = None
    world: int = 1
    program: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    steps: tuple[Step, ...] = ()
    phases: tuple[Phase, ...] = ()
    phase: str | None = None
    ooms: tuple[OutOfMemory, ...] = ()
    errors: tuple[Error, ...] = ()
    notes: tuple[str, ...] = ()
    exited: bool = False
    last: float | None = None
    last_line: int = 0

    @property
    def works(self) -> bool:
        """Whether it trains, evaluates or generates; launchers and helpers do not."""
        return bool(self.steps) or any(one.name != "load" for one in self.phases)
