"""What a run asked of the virtual card that it does not model, from the log that it wrote.

    refused cudaIpcOpenMemHandle
    ignored cuCtxSetFlags
    assumed cufftXtMakePlanMany: 0 bytes
    missing cuNoSuchFunction
    read 4711 8 train.py:41 in train

The last line: process 4711 read 8 values so far, at that line of the program, that only a GPU could
have computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple, dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_PLACES = 8
# libraries that link the runtime statically ask for all they might ever call
_ASKED_BY_HABIT = ("cuGL", "cuEGL", "cuVDPAU", "cuGraphics", "cuGraphInstantiate", "cuProfiler")


class Read(NamedTuple):
    """How often a line of the program read a value that only a GPU could have computed."""

    where: str
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmodelled:
    """Names of calls, each once and in the order of the first call."""

    refused: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    reads: tuple[Read, ...] = ()

    @property
    def unknown_reads(self) -> int:
        """Return how many values were read that nobody can know."""
        return sum(one.times for one in self.reads)

    def sentences(self, *, counts: bool = True) -> Iterator[str]:
        """Yield what a reader of figures from this run has to know.

        Without `counts` the same lines of a program are told in the same words, however often they
        read.
        """
        for names, said in (
            (self.refused, "calls that failed since nobody models them"),
            (self.ignored, "calls that did nothing"),
            (self.assumed, "what was assumed"),
            (self.missing, "functions that were asked for and are not there"),
        ):
            if names:
                yield f"{said}: {'; '.join(names)}"
        if self.unknown_reads:
            what = "values that only a GPU could have computed"
            if counts:
                subject = f"{self.unknown_reads} reads of {what}, answered with zeros"
            else:
                subject = f"{what} were read and answered with zeros"
            yield (
                f"{subject}: where the program branches on them, its memory may differ "
                f"({self._places(counts=counts)})"
            )

    def _places(self, *, counts: bool) -> str:
        """Return the lines that read most, with their counts if they are wanted."""
        most = sorted(self.reads, key=lambda one: -one.times)
        if not counts:
            most.sort(key=lambda one: one.where)
        said = [f"{one.where}: {one.times}" if counts else one.where for one in most[:MOST_PLACES]]
        left = len(most) - len(said)
        return "; ".join([*said, *([f"and {left} more lines"] if left else [])])


def read_log(text: str) -> Unmodelled:
    """Read a log; lines that are cut or not known are passed over."""
    names: dict[str, dict[str, None]] = {}
    reads: dict[tuple[str, str], int] = {}
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "read":
            process, _, more = rest.partition(" ")
            count, _, where = more.partition(" ")
            if count.isdecimal() and where:
                key = process, where
                reads[key] = max(reads.get(key, 0), int(count))
        elif rest and not _is_expected(kind, rest):
            names.setdefault(kind, {})[rest] = None
    return Unmodelled(
        refused=tuple(names.get("refused", ())),
        ignored=tuple(names.get("ignored", ())),
        assumed=tuple(names.get("assumed", ())),
        missing=tuple(names.get("missing", ())),
        reads=tuple(Read(where, count) for where, count in _by_place(reads).items()),
    )


def _by_place(reads: dict[tuple[str, str], int]) -> dict[str, int]:
    places: dict[str, int] = {}
    for (_, where), count in reads.items():
        places[where] = places.get(where, 0) + count
    return places


def _is_expected(kind: str, name: str) -> bool:
    return kind == "missing" and name.startswith(_ASKED_BY_HABIT)
