"""The XML of `nvidia-smi -q -x`, of every document type and cut anywhere.

    <?xml version="1.0" ?>
    <!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
    <nvidia_smi_log>
      <driver_version>550.54.15</driver_version>
      <attached_gpus>1</attached_gpus>
      <gpu id="00000000:07:00.0">
        <product_name>NVIDIA A100-SXM4-80GB</product_name>
        <fb_memory_usage><total>81920 MiB</total><used>79854 MiB</used><free>1417 MiB</free>
        </fb_memory_usage>
        <mig_devices><mig_device><fb_memory_usage>...
        <processes><process_info><pid>4711</pid><type>C</type>
          <process_name>/usr/bin/python3</process_name><used_memory>79826 MiB</used_memory>

Tags are read one after the other from the lines, with their place: there is no XML parser, so no
document type, entity or reference to a file is ever looked up or expanded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import Amount, stated
from oomdoctor.evidence.card_facts import reading_of
from oomdoctor.evidence.cards import Card, ProcessRow, Table
from oomdoctor.model.core import Reading
from oomdoctor.record import NamedTuple
from oomdoctor.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Fact, Quote

ANCHORS = ("<nvidia_smi_log", "<fb_memory_usage")
DEEPEST = 40
CARD_TAGS = ("mig_device", "product_name", "compute_mode", "current_mig")
PREDEFINED = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))


class Leaf(NamedTuple):
    """A tag with its text: names of the open tags around it, the text, and its place."""

    order: int
    path: tuple[str, ...]
    text: str
    quote: Quote


@cache
def _tag() -> re.Pattern[str]:
    return re.compile(r"<(?P<close>/)?(?P<name>[A-Za-z_]\w*)(?P<rest>[^<>]*)>(?P<text>[^<]*)")


def read(document: Document) -> Reading:
    """Read all logs, and return the facts of the one that belongs to the failure."""
    builder = _Builder()
    for leaf in _leaves(document):
        builder.take(leaf)
    reading = reading_of(document, builder.finish())
    architecture = builder.architecture if reading.facts else ()
    return Reading(facts=(*reading.facts, *architecture), closes=reading.closes)


def _leaves(document: Document) -> Iterator[Leaf]:
    """Yield every opening tag with the text behind it; a new log forgets what was left open."""
    path: list[str] = []
    for index, line in enumerate(document.lines):
        if "<" not in line.text:
            continue
        for found in _tag().finditer(line.text):
            name = found["name"]
            if found["close"]:
                if name in path:
                    del path[len(path) - 1 - path[::-1].index(name) :]
                continue
            if name == "nvidia_smi_log":
                path.clear()
            if len(path) >= DEEPEST:
                continue
            text = _plain(found["text"].strip())
            quote = document.quote(line, found.start(), found.end())
            yield Leaf(index, (*path, name), text, quote)
            if not found["rest"].endswith("/"):
                path.append(name)


def _plain(text: str) -> str:
    """Resolve the five predefined references and nothing else."""
    for reference, character in PREDEFINED:
        text = text.replace(reference, character)
    return text


@dataclass(slots=True, kw_only=True)
class _Builder:
    """Collects leaves into tables."""

    done: list[Table] = field(default_factory=list)
    table: Table | None = None
    cards: list[Card] = field(default_factory=list)
    rows: list[ProcessRow] = field(default_factory=list)
    architecture: tuple[Fact, ...] = ()

    def take(self, leaf: Leaf) -> None:
        """Sort one leaf in."""
        name = leaf.path[-1]
        if name == "nvidia_smi_log" or self.table is None:
            self._close()
            self.table = Table(order=leaf.order)
        if "process_info" in leaf.path:
            self._take_process(name, leaf)
        elif name in ("driver_version", "cuda_version", "attached_gpus", "driver_model"):
            self._take_head(name, leaf)
        elif name == "current_dm" and "WDDM" in leaf.text:
            self.table = replace(self.table, wddm=leaf.quote)
        elif name == "gpu":
            self.cards.append(Card(index=str(len(self.cards))))
        elif name == "product_architecture" and leaf.text:
            self.architecture = (stated("gpu.architecture", leaf.text, leaf.quote),)
        elif name == "processes":
            self.table = replace(self.table, processes_shown=True)
        else:
            self._take_card(name, leaf)

    def finish(self) -> tuple[Table, ...]:
        """Return the tables."""
        self._close()
        return tuple(self.done)

    def _close(self) -> None:
        if self.table is not None:
            rows = tuple(self.rows)
            self.done.append(replace(self.table, cards=tuple(self.cards), rows=rows))
        self.table, self.cards, self.rows = None, [], []

    def _take_head(self, name: str, leaf: Leaf) -> None:
        if self.table is None:
            return
        if name == "attached_gpus":
            self.table = replace(self.table, whole=True)
        elif name == "driver_version" and leaf.text[:1].isdecimal():
            self.table = replace(self.table, driver=(leaf.text, leaf.quote))
        elif name == "cuda_version" and leaf.text[:1].isdecimal():
            self.table = replace(self.table, cuda=(leaf.text, leaf.quote))

    def _take_card(self, name: str, leaf: Leaf) -> None:
        if name not in CARD_TAGS and "fb_memory_usage" not in leaf.path:
            return
        if not self.cards:
            self.cards.append(Card(index="0"))
        card = self.cards[-1]
        if name == "mig_device":
            card = replace(card, slices=(*card.slices, Card(index=card.index)))
        elif "fb_memory_usage" in leaf.path:
            card = _with_memory(card, name, leaf)
        elif name == "product_name":
            card = replace(card, name=leaf.text, name_quote=leaf.quote)
        elif name == "compute_mode":
            mode = leaf.text.replace("_", " ")
            card = replace(card, compute_mode=mode, mode_quote=leaf.quote)
        elif name == "current_mig":
            mig = {"Enabled": True, "Disabled": False}.get(leaf.text)
            card = card if mig is None else replace(card, mig=mig, mig_quote=leaf.quote)
        self.cards[-1] = card

    def _take_process(self, name: str, leaf: Leaf) -> None:
        if name == "process_info":
            card = str(max(0, len(self.cards) - 1))
            self.rows.append(ProcessRow(card=card, name="", kind="C", quote=leaf.quote))
            return
        if not self.rows:
            return
        last = self.rows[-1]
        if name == "process_name":
            self.rows[-1] = replace(last, name=leaf.text, quote=leaf.quote)
        elif name == "type":
            self.rows[-1] = replace(last, kind=leaf.text)
        elif name == "used_memory":
            self.rows[-1] = replace(last, memory=_amount(leaf))


def _with_memory(card: Card, name: str, leaf: Leaf) -> Card:
    """Store a figure with the card, or with its last slice inside `mig_device`."""
    said = _amount(leaf)
    if said is None or name not in ("total", "used", "free"):
        return card
    in_slice = "mig_device" in leaf.path and bool(card.slices)
    holder = card.slices[-1] if in_slice else card
    match name:
        case "total":
            holder = replace(holder, total=said)
        case "used":
            holder = replace(holder, used=said)
        case _:
            holder = replace(holder, free=said)
    return replace(card, slices=(*card.slices[:-1], holder)) if in_slice else holder


def _amount(leaf: Leaf) -> Amount | None:
    size = parse_size(leaf.text)
    if size is None:
        return None
    return Amount(bytes=size.bytes, slack_bytes=size.slack_bytes, quote=leaf.quote)
