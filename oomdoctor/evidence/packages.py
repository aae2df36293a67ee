"""Versions of libraries: listings of package managers, reports, banners and single lines.

    torch                     2.4.0+cu121                  (pip list, uv pip list)
    torch==2.4.0+cu121                                     (pip freeze)
    pytorch                   2.1.0   py3.10_cuda12.1_cudnn8.9.2_0    pytorch      (conda list)
    - `transformers` version: 4.46.3                       (transformers-cli env)
    PyTorch version: 2.4.0+cu121                           (torch.utils.collect_env)
    deepspeed info ................... 0.14.0, unknown, unknown            (ds_report)
    INFO llm_engine.py:237] Initializing an LLM engine (v0.6.3) with config: ...
    ==((====))==  Unsloth 2024.8: Fast Llama patching. Transformers = 4.43.3.

The value is the public version: the local part (`+cu121`) goes, it says of the build what
`gpu.cuda` says. `env.packages` holds every row of a listing; what else the reports tell of the
machine is read by `machine_report`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.amounts import first_of_each, stated
from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.evidence.machine_report import machine_facts
from oomdoctor.model.core import Reading
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, Fact, LogLine, Quote

ANCHORS = (
    "==",
    "version",
    "packages in environment",
    "unsloth ",
    "torch",
    "transformers",
    "accelerate",
    "diffusers",
    "deepspeed",
    "vllm",
    "python3.",
    "llm engine (",
)
KEYS = {
    "torch": "env.torch",
    "pytorch": "env.torch",
    "transformers": "env.transformers",
    "trl": "env.trl",
    "peft": "env.peft",
    "accelerate": "env.accelerate",
    "bitsandbytes": "env.bitsandbytes",
    "deepspeed": "env.deepspeed",
    "vllm": "env.vllm",
    "lightning": "env.lightning",
    "pytorch-lightning": "env.lightning",
    "diffusers": "env.diffusers",
    "flash-attn": "env.flash_attn",
    "xformers": "env.xformers",
    "liger-kernel": "env.liger",
    "unsloth": "env.unsloth",
    "axolotl": "env.axolotl",
    "llamafactory": "env.llamafactory",
    "llmtuner": "env.llamafactory",
    "python": "env.python",
}
VERSION = r"v?(?P<version>\d+(?:\.\d+)+[\w.]*)(?P<local>\+[\w.]+)?"
SPOKEN = r"(?P<name>[A-Za-z][A-Za-z0-9 _-]{1,24}?)"
LONGEST = 600
NAMES = (
    "torch",
    "transformers",
    "trl",
    "peft",
    "accelerate",
    "bitsandbytes",
    "deepspeed",
    "llm",
    "lightning",
    "diffusers",
    "attn",
    "xformers",
    "liger",
    "unsloth",
    "axolotl",
    "factory",
    "python",
)
BANNER_NAMES = ("Transformers", "Pytorch", "Torch", "Xformers", "vLLM", "TRL")
LISTING_ROWS = 5
LISTING_KNOWN = 2
"""So many rows in a row are a listing, if so many of them are known libraries."""
ASKED_FOR = ("requires", "pip install", "uv add", "please", "but you have", "conda install", "need")


class Row(NamedTuple):
    """A package with its version and the place that says so."""

    name: str
    version: str
    quote: Quote


@cache
def _pinned() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-])(?P<name>[A-Za-z][\w.-]*)==\s?{VERSION}(?![\w.*])")


@cache
def _columns() -> re.Pattern[str]:
    return re.compile(rf"\s*(?P<name>[A-Za-z][\w.-]*)\s+{VERSION}(?:\s.*)?\Z")


SPOKEN_FORMS = (
    ("ersion", rf"^[\s>*-]*`?{SPOKEN}`? [Vv]ersion(?: \([\w /?-]+\))?`?\s*[:=]\s*{VERSION}"),
    ("", rf"^[\s>*-]*`?{SPOKEN}`?\s*[:=]\s*[\"']?{VERSION}[\"']?\s*(?:\(.*\))?,?\s*\Z"),
    (" ", rf"^[\s>*-]*{SPOKEN} {VERSION}\s*\Z"),
    ("...", rf"^\s*{SPOKEN} (?:info|version|install version)? ?\.{{3,}} {VERSION}"),
    ("vLLM", rf"(?P<name>vLLM)(?: API server)? version v?{VERSION}"),
    ("LLM engine (", rf"(?P<name>\bLLM) engine \({VERSION}\)"),
    ("Unsloth ", rf"(?P<name>Unsloth) {VERSION}(?=[:\s])"),
)
"""How people and tools say a version: a literal of the form, and its pattern."""


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def _banner() -> re.Pattern[str]:
    return re.compile(rf"\b(?P<name>{'|'.join(BANNER_NAMES)})\s?[=:] {VERSION}(?=[.\s\]]|\Z)")


@cache
def _site_packages() -> re.Pattern[str]:
    return re.compile(r"[/\\]python(?P<version>3\.\d{1,2})[/\\](?:site|dist)-packages[/\\]")


def read(document: Document) -> Reading:
    """Return versions (the first of each), all rows of listings, and what reports tell."""
    listed = _listed(document)
    facts = [fact for row in listed for fact in _version_facts(row)]
    facts.extend(_spoken_facts(document))
    facts.extend(_python_facts(document))
    facts.extend(machine_facts(document))
    if len(listed) >= LISTING_ROWS:
        rows = "\n".join(f"{row.name}=={row.version}" for row in listed)
        facts.append(stated("env.packages", rows, *(row.quote for row in listed)))
    closes = ("packages",) if len(listed) >= LISTING_ROWS else ()
    return Reading(facts=first_of_each(facts), closes=closes)


def key_of(name: str) -> str | None:
    """Return the fact key of a package's or library's name in any spelling."""
    plain = re.sub(r"[ _.]+", "-", name.strip().strip("`").lower())
    return KEYS.get(plain)


def _public(version: str) -> str:
    return version.rstrip(".")


def _version_facts(row: Row) -> Iterator[Fact]:
    key = key_of(row.name)
    if key is not None:
        yield stated(key, row.version, row.quote)


def _listed(document: Document) -> list[Row]:
    """Return rows of listings: pinned ones anywhere, columns where several stand together."""
    rows: list[Row] = []
    block: list[Row] = []
    for line in document.lines:
        if len(line.text) > LONGEST or not (line.text or block):
            continue
        pinned = _pinned_rows(document, line)
        rows.extend(pinned)
        column = None if pinned else _columns().match(line.text)
        if column is not None:
            block.append(_row(document, line, column))
        elif block:
            rows.extend(_accepted(block))
            block = []
    return [*rows, *_accepted(block)]


def _pinned_rows(document: Document, line: LogLine) -> list[Row]:
    """Return `name==version`, unless the line only asks for it."""
    if "==" not in line.text or _asks(line.text):
        return []
    return [_row(document, line, found) for found in _pinned().finditer(line.text)]


def _accepted(block: list[Row]) -> list[Row]:
    """Return the rows of a listing; a table of other words and numbers is none."""
    known = [row for row in block if key_of(row.name) is not None]
    return block if len(block) >= LISTING_ROWS and len(known) >= LISTING_KNOWN else []


def _row(document: Document, line: LogLine, found: re.Match[str]) -> Row:
    quote = document.quote(line, found.start("name"), found.end("local" if found["local"] else 0))
    return Row(found["name"], _public(found["version"]), quote)


def _spoken_facts(document: Document) -> Iterator[Fact]:
    for index in haystack_of(document).telling(NAMES):
        line = document.lines[index]
        text = line.text
        if not _may_state_version(text):
            continue
        for mark, pattern in SPOKEN_FORMS:
            found = _pattern(pattern).search(text) if mark in text else None
            if found is None:
                continue
            name = "vllm" if found["name"] == "LLM" else found["name"]
            key = key_of(name)
            if key is not None:
                quote = document.quote(line, found.start("name"), found.end("version"))
                yield stated(key, _public(found["version"]), quote)
        if ("= " in text or ": " in text) and any(name in text for name in BANNER_NAMES):
            yield from _banner_facts(document, line)


def _may_state_version(text: str) -> bool:
    """Cheaply leave out most lines of a log: paths, code, and lines without a known name."""
    if len(text) > LONGEST or "." not in text or text.lstrip().startswith("File "):
        return False
    lower = text.lower()
    return any(name in lower for name in NAMES) and not _asks(lower)


def _asks(text: str) -> bool:
    lower = text.lower()
    return any(word in lower for word in ASKED_FOR)


def _banner_facts(document: Document, line: LogLine) -> Iterator[Fact]:
    """Read `Transformers = 4.43.3. ... Pytorch: 2.3.1.` of a start-up banner."""
    for found in _banner().finditer(line.text):
        key = key_of(found["name"])
        if key is not None:
            quote = document.quote(line, *found.span())
            yield stated(key, _public(found["version"]), quote)


def _python_facts(document: Document) -> Iterator[Fact]:
    for index in haystack_of(document).lines_with(("-packages",)):
        line = document.lines[index]
        if "-packages" in line.text and len(line.text) <= LONGEST:
            found = _site_packages().search(line.text)
            if found is not None:
                yield stated("env.python", found["version"], document.quote(line, *found.span()))
                return
