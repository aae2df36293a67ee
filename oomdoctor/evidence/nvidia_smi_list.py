"""Short outputs of nvidia-smi: the list of devices (`-L`), and processes by line (`pmon`, `dmon`).

    GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
      MIG 3g.20gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)
    # gpu         pid   type     fb   command          (pmon -s m)
    # Idx           #    C/G     MB   name
        0       21440     C   14903   python
        1           -     -       -   -
    # gpu     fb  bar1                                  (dmon -s m)
    # Idx     MB    MB
        0  14913     5

A profile's name is nominal ("20gb" is 19968 MiB), so the slice is known to 5 %. Monitors repeat
their rows: where a card or process comes again, the rows start anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import MAX_TABLE_LINE, Amount, derived, flag, stated
from oomdoctor.evidence.card_facts import reading_of
from oomdoctor.evidence.cards import Card, ProcessRow, Table
from oomdoctor.model.core import Reading
from oomdoctor.units import size_of, unit_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Fact, LogLine

ANCHORS = ("(uuid: ", "# gpu ")
NOMINAL_ERROR = 0.05


@dataclass(slots=True, kw_only=True)
class _Columns:
    """A block of pmon or dmon while its rows are read."""

    order: int
    names: tuple[str, ...]
    cards: list[Card] = field(default_factory=list)
    rows: list[ProcessRow] = field(default_factory=list)
    seen: set[tuple[str, ...]] = field(default_factory=set)

    def table(self) -> Table:
        """Return it as a snapshot."""
        return Table(
            order=self.order,
            cards=tuple(self.cards),
            rows=tuple(self.rows),
            processes_shown=bool(self.rows),
        )


@cache
def _listed() -> re.Pattern[str]:
    return re.compile(r"\bGPU (?P<index>\d+): (?P<name>[^()]+?) \(UUID: ")


@cache
def _slice() -> re.Pattern[str]:
    return re.compile(r"\bMIG (?P<profile>\d+g\.(?P<size>\d+)gb\S*)\s+Device\s+\d+: \(UUID: ")


def read(document: Document) -> Reading:
    """Return names, number of cards and slices of the list, and processes of the monitors."""
    monitors = reading_of(document, [block.table() for block in _blocks(document)])
    listed = tuple(_list_facts(document))
    return Reading(facts=(*listed, *monitors.facts), closes=monitors.closes)


def _list_facts(document: Document) -> Iterator[Fact]:
    cards: dict[str, tuple[str, LogLine]] = {}
    sliced = False
    for line in document.lines:
        if "(UUID: " not in line.text or len(line.text) > MAX_TABLE_LINE:
            continue
        card = _listed().search(line.text)
        if card is not None:
            cards.setdefault(card["index"], (card["name"], line))
        part = None if sliced else _slice().search(line.text)
        if part is not None:
            sliced = True
            quote = document.quote(line, *part.span())
            size = int(part["size"]) << 30
            yield flag("gpu.mig", quote)
            yield derived(
                "gpu.mig_slice",
                size,
                quote,
                source="name of the profile",
                slack=int(size * NOMINAL_ERROR),
            )
    yield from _name_facts(document, cards)


def _name_facts(document: Document, cards: dict[str, tuple[str, LogLine]]) -> Iterator[Fact]:
    quotes = [document.quote(line) for _, line in cards.values()]
    if not cards:
        return
    yield stated("gpu.count", len(cards), *quotes)
    names = {name for name, _ in cards.values()}
    if len(names) == 1:
        yield stated("gpu.name", names.pop(), quotes[0])


def _blocks(document: Document) -> list[_Columns]:
    blocks: list[_Columns] = []
    for index, line in enumerate(document.lines):
        words = line.text.split() if len(line.text) <= MAX_TABLE_LINE else []
        if words[:2] == ["#", "gpu"]:
            blocks.append(_Columns(order=index, names=tuple(words[1:])))
        elif blocks and words and words[0].isdecimal():
            _take_row(document, line, words, _fresh(blocks, words, index))
    return [block for block in blocks if "fb" in block.names]


def _fresh(blocks: list[_Columns], words: list[str], index: int) -> _Columns:
    """Return the block that a row belongs to: a new one where its card or process comes again."""
    block = blocks[-1]
    key = tuple(words[:2]) if "pid" in block.names else (words[0],)
    if key in block.seen:
        block = _Columns(order=index, names=block.names)
        blocks.append(block)
    block.seen.add(key)
    return block


def _take_row(document: Document, line: LogLine, words: list[str], block: _Columns) -> None:
    """Add a row; the last column (the command) may hold spaces, `-` stands for nothing."""
    width = len(block.names)
    if len(words) < width or "fb" not in block.names:
        return
    last = " ".join(words[width - 1 :])
    said = dict(zip(block.names, [*words[: width - 1], last], strict=True))
    figure = said["fb"]
    quote = document.quote(line)
    memory = None
    if figure.isdecimal():
        size = size_of(figure, unit_bytes("MiB") or 1)
        memory = Amount(bytes=size.bytes, slack_bytes=size.slack_bytes, quote=quote)
    if "pid" not in block.names:
        block.cards.append(Card(index=words[0], used=memory))
    elif said["pid"].isdecimal():
        name = said.get("command", said.get("name", ""))
        row = ProcessRow(
            card=words[0], name=name, kind=said.get("type", "C"), quote=quote, memory=memory
        )
        block.rows.append(row)
