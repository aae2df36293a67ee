"""Variables that a text sets, told apart from texts that only speak of them.

    export CUDA_VISIBLE_DEVICES=5                          lasting
    CUDA_VISIBLE_DEVICES=0 python train.py                 inline
    os.environ["CUDA_VISIBLE_DEVICES"] = "0"               lasting
    CUDA_VISIBLE_DEVICES: "0,1"                            lasting (YAML, a listing)
    docker run -e CUDA_VISIBLE_DEVICES=0 image             inline
    LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0,1]            reported (by a launcher)
    ... try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.   no

Only what stands in the place of a command or of a mapping counts: after nothing but other
assignments, `export`, `-e`, a quote of a mapping. A commented line sets nothing.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.evidence.haystack import haystack_of
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.core import Document, LogLine, Quote

NAME_MARKS = (
    "ALLOC_CONF",
    "VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
    "XLA_",
    "TF_FORCE_GPU",
    "MEMORY_CACHING",
)
LONGEST = 4000
HINT_BEFORE = (
    "try setting",
    "setting",
    "set",
    "consider",
    "use",
    "using",
    "via",
    "with",
    "such as",
)
HINT_AFTER = ("to avoid", "to reduce", "to disable", "to enable", "see documentation", "may help")


class Setting(NamedTuple):
    """A variable with its value; `how` is lasting, inline or reported."""

    order: int
    name: str
    value: str
    how: str
    in_python: bool
    quote: Quote


@cache
def _assignment() -> re.Pattern[str]:
    return re.compile(
        r"(?<![A-Za-z0-9_])(?P<name>PYTORCH_(?:CUDA_|HIP_|NPU_|XPU_)?ALLOC_CONF"
        r"|PYTORCH_NO_(?:CUDA|HIP)_MEMORY_CACHING|(?:CUDA|HIP|ROCR|ASCEND_RT)_VISIBLE_DEVICES"
        r"|ZE_AFFINITY_MASK|XLA_(?:PYTHON_)?CLIENT_\w+|TF_FORCE_GPU_ALLOW_GROWTH)"
        r"(?P<close>[\"']?\]?)(?P<sep>\s*(?:=>|=|:)\s*|\s*,\s*|\s+)"
        r"(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<list>\[[\d, ]*\])"
        r"|(?P<bare>[^\s\"';)}]*))"
    )


@cache
def _shell_place() -> re.Pattern[str]:
    return re.compile(
        r"(?:[>$%]\s+|\w+@[\w.-]+\S*[$#]\s*)?(?:(?:sudo|env|time|nohup|exec)\s+)*"
        r"(?P<lasting>export\s+|set\s+|setx\s+|setenv\s+|declare\s+-x\s+|%env\s+|\$env:|\$Env:|ENV\s+|"
        r"Environment=[\"']?|-\s+)?(?:[A-Za-z_]\w*=(?:\"[^\"]*\"|'[^']*'|[^\s\"']*)\s+)*\Z"
    )


def settings(document: Document) -> tuple[Setting, ...]:
    """Return all settings in the order of the text."""
    found: list[Setting] = []
    for index in haystack_of(document).lines_with(mark.lower() for mark in NAME_MARKS):
        line = document.lines[index]
        if any(mark in line.text for mark in NAME_MARKS) and len(line.text) <= LONGEST:
            before = document.lines[index - 1].text if index else ""
            found.extend(_settings_of(document, line, index, before))
    return tuple(found)


def _settings_of(document: Document, line: LogLine, index: int, before: str) -> Iterator[Setting]:
    for found in _assignment().finditer(line.text):
        how = _how(line.text, found)
        if how is None or _is_hint(line.text, found, before):
            continue
        quoted = found["double"] if found["double"] is not None else found["single"]
        listed = found["list"] and found["list"].strip("[] ")
        bare = (found["bare"] or "").rstrip(",")
        value = quoted if quoted is not None else listed or bare
        quote = document.quote(line, *found.span())
        in_python = "environ" in line.text[: found.start()]
        yield Setting(index, found["name"], value, how, in_python, quote)


def _is_hint(text: str, found: re.Match[str], before: str) -> bool:
    """Recognise advice, also where it is wrapped between `try setting` and the name."""
    after = text[found.end() :].lstrip(" .").lower()
    lead = text[: found.start()].strip(" `\"'").lower() or before.strip().lower()
    wrapped = not text[: found.start()].strip(" `\"'|>") and lead.endswith(HINT_BEFORE[:2])
    return after.startswith(HINT_AFTER) or "try setting" in text[: found.start()] or wrapped


def _how(text: str, found: re.Match[str]) -> str | None:
    """Say how the variable is set here, or None where the text only names it."""
    lead, sep = text[: found.start()], found["sep"]
    opened = lead[-1:] in ("'", '"') and found["close"][:1] == lead[-1:]
    if opened:
        return _how_in_mapping(lead, sep, found["close"])
    if found["close"]:
        return None
    if "LOCAL_RANK" in lead or re.search(r"[Ss]etting $", lead):
        return "reported"
    if re.search(r"(?:^|\s)(?:-e|--env|-x|-D)[ =][\"']?\Z", lead):
        return "inline" if "=" in sep else None
    place = _shell_place().fullmatch(lead.lstrip())
    if place is None:
        return None
    return _how_in_place(text, found, lasting=place["lasting"], sep=sep)


def _how_in_place(text: str, found: re.Match[str], *, lasting: str | None, sep: str) -> str | None:
    """Judge a name at the place of a command: `export N=v`, `N=v cmd`, `N: v`, `setenv N v`."""
    if sep.isspace():
        wanted = ("setenv", "setx", "ENV", "%env")
        return "lasting" if lasting and lasting.split()[0] in wanted else None
    if "=" in sep:
        if sep.strip() == "=" and sep != "=" and lasting is None:
            return "lasting" if not text[found.end() :].strip() else None
        follows = text[found.end() :].strip(" ;&\\")
        return "inline" if follows and lasting is None else "lasting"
    if ":" not in sep or sep.startswith(" ,"):
        return None
    rest = text[found.end() :].strip()
    return "lasting" if not rest or rest.startswith("#") else None


def _how_in_mapping(lead: str, sep: str, close: str) -> str | None:
    """Judge a quoted name: an item of `os.environ`, a key of a dict, an argument of setdefault."""
    code = lead.lstrip()
    if code.startswith(("#", "//")):
        return None
    if close.endswith("]") or code.rstrip("'\"").endswith("["):
        return "lasting" if "=" in sep or ":" in sep else None
    if code.rstrip("'\"").endswith("("):
        called = code.rstrip("'\"").endswith(("setdefault(", "putenv(", "setenv("))
        return "lasting" if called and "," in sep else None
    return "lasting" if ":" in sep or "=>" in sep else None
