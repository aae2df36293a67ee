"""What a run asked of the virtual card that it does not model, from the log that it wrote.

    refused cudaIpcOpenMemHandle
    ignored cuCtxSetFlags
    assumed cufftXtMakePlanMany: 0 bytes
    missing cuNoSuchFunction
    unknown-reads 4711 8

The last line: process 4711 read 8 values so far that only a GPU could have computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

# libraries that link the runtime statically ask for all they might ever call
_ASKED_BY_HABIT = ("cuGL", "cuEGL", "cuVDPAU", "cuGraphics", "cuGraphInstantiate", "cuProfiler")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmodelled:
    """Names of calls, each once and in the order of the first call."""

    refused: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unknown_reads: int = 0

    def sentences(self) -> Iterator[str]:
        """Yield what a reader of figures from this run has to know."""
        for names, said in (
            (self.refused, "calls that failed since nobody models them"),
            (self.ignored, "calls that did nothing"),
            (self.assumed, "sizes that were assumed"),
            (self.missing, "functions that were asked for and are not there"),
        ):
            if names:
                yield f"{said}: {', '.join(names)}"
        if self.unknown_reads:
            yield (
                f"{self.unknown_reads} reads of values that only a GPU could have computed, "
                "answered with zeros: where the program branches on them, its memory may differ"
            )


def read_log(text: str) -> Unmodelled:
    """Read a log; lines that are cut or not known are passed over."""
    names: dict[str, dict[str, None]] = {}
    reads: dict[str, int] = {}
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "unknown-reads":
            process, _, count = rest.partition(" ")
            if count.isdecimal():
                reads[process] = max(reads.get(process, 0), int(count))
        elif rest and not _is_expected(kind, rest):
            names.setdefault(kind, {})[rest] = None
    return Unmodelled(
        refused=tuple(names.get("refused", ())),
        ignored=tuple(names.get("ignored", ())),
        assumed=tuple(names.get("assumed", ())),
        missing=tuple(names.get("missing", ())),
        unknown_reads=sum(reads.values()),
    )


def _is_expected(kind: str, name: str) -> bool:
    return kind == "missing" and name.startswith(_ASKED_BY_HABIT)
