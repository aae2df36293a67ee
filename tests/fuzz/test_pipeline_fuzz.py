"""Logs and configs that are cut, spliced, interleaved or damaged: always an answer that holds.

Whatever the text is, `diagnose` does not raise, no reader fails behind its back, the JSON keeps its
contract, each quote stands in the line that it names, and no page can act on a terminal.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oomdoctor.pipeline import diagnose
from oomdoctor.render.json import to_json
from oomdoctor.render.markdown import to_markdown
from oomdoctor.render.redact import Names
from oomdoctor.render.text import render
from oomdoctor.rules import loader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.plan import Diagnosis

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
LONGEST = 12_000
ANSWERS = ("cause", "need_evidence", "not_gpu_oom", "nothing_found")
HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
QUICK = settings(
    max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
THOROUGH = settings(QUICK, max_examples=600)


def texts_of(pattern: str, suffixes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts below fixtures/ that a pattern names, each cut to a bounded length."""
    paths = sorted(path for path in FIXTURES.glob(pattern) if path.suffix in suffixes)
    return tuple(path.read_text(encoding="utf-8", errors="replace")[:LONGEST] for path in paths)


LOGS = (*texts_of("raw/**/*", (".txt", ".log")), *texts_of("cases/*/*", (".txt", ".log")))
CONFIGS = (
    *texts_of("configs/**/*", (".yaml", ".json", ".toml", ".py", ".sh", ".txt")),
    *texts_of("cases/*/*", (".py", ".sh", ".json")),
)
JUNK = (
    "\x1b[31m",
    "\x1b]8;;http://x\x07",
    "\r",
    "\r\n",
    "\x00",
    "\u202e",
    "\u2028",
    "\x85",
    "\ufeff",
    "\ud800",
    "[red]",
    "[/]",
    "<script>",
    "```",
    "|",
    "@all",
    "9" * 400,
    "-1",
    "1e400",
    "nan",
    "0 bytes",
    "99999999999999999999 GiB",
    "-1.00 GiB",
    "1,234.56 GiB",
    "1,16 GiB",
    "[rank7]: ",
    "Traceback (most recent call last):\n",
    '  File "',
    "During handling of the above exception,",
    "{",
    "[" * 200,
    "(" * 200,
    "&a [*a]",
    "!!python/object:x ",
    "\t",
    "\n\n\n",
    "#",
    '"',
    "'",
)  # fmt: skip - a flat list of pieces

logs = st.sampled_from(LOGS)
configs = st.sampled_from(CONFIGS)
pieces = st.one_of(st.sampled_from(JUNK), st.text(max_size=8))


@st.composite
def damaged(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """Cut, splice, interleave, repeat or litter texts, up to four times over."""
    text = draw(texts)
    for _ in range(draw(st.integers(0, 4))):
        at, to = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        match draw(st.sampled_from(("cut", "splice", "weave", "repeat", "litter", "swap"))):
            case "cut":
                text = text[at:to] or text[:at]
            case "splice":
                text = text[:at] + draw(texts)[to:]
            case "weave":
                text = woven(text, draw(texts))
            case "repeat":
                text = text[:at] + text[at:to] * 3 + text[to:]
            case "litter":
                text = text[:at] + draw(pieces) + text[at:]
            case _:
                text = text[:at] + text[to:] + text[at:to]
        text = text[: 2 * LONGEST]
    return text + "\n"


def woven(one: str, other: str) -> str:
    """Return the lines of two ranks as they reach one file."""
    first = [f"[rank0]: {line}" for line in one.split("\n")[:150]]
    second = [f"[rank1]: {line}" for line in other.split("\n")[:150]]
    return "\n".join(line for pair in zip(first, second, strict=False) for line in pair)


@pytest.fixture(scope="module", autouse=True)
def rules_loaded_once() -> Iterator[None]:
    """Load the rules once; this is no test of loading them."""
    held = loader.load_rules()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "load_rules", lambda *_given, **_named: held)
        yield


def quotes_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every quote of a JSON answer."""
    if isinstance(value, dict):
        if set(value) == {"artifact", "line", "text"}:
            yield value
        for part in value.values():
            yield from quotes_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from quotes_in(part)


def check_contract(found: Diagnosis, inputs: dict[str, str]) -> None:
    """Assert what holds for the JSON of any answer to these inputs."""
    answer = json.loads(to_json(found), parse_constant=lambda word: pytest.fail(f"holds {word}"))
    assert answer["answer"] in ANSWERS
    shares = [cause["probability"] for cause in answer["causes"]]
    assert all(0 <= share <= 1 for share in [*shares, answer["other_probability"]])
    if shares:
        assert math.isclose(sum(shares) + answer["other_probability"], 1, abs_tol=1e-9)
    for note in answer["notes"]:
        assert " failed: " not in note
        assert "were not derived" not in note
    assert [one for one in answer["faults"] if "Error: " in one["message"]] == []
    for quote in quotes_in(answer):
        line = inputs[quote["artifact"]].split("\n")[quote["line"] - 1]
        assert plain(quote["text"]) in plain(line)


def plain(text: str) -> str:
    """Return a text without blanks at its ends and without what cleaning drops inside of words."""
    kept = (char for char in COLOUR.sub("", text) if unicodedata.category(char) not in HIDDEN)
    return "".join(kept).strip()


def check_pages(found: Diagnosis) -> None:
    """Assert that no page holds what acts on a terminal, and that ASCII is ASCII."""
    wide = render(found, width=100, colour=False, unicode=True)
    narrow = render(found, width=40, colour=False, unicode=False)
    assert narrow.isascii()
    for page in (wide, narrow, to_markdown(Names().out_of(found))):
        page.encode()
        assert {char for char in page if unicodedata.category(char) in HIDDEN} <= {"\n"}


def check(log: str, config: str | None = None) -> None:
    """Diagnose and check everything."""
    found = diagnose(log, config=config)
    check_contract(found, {"<text>": log, "<config>": config or ""})
    check_pages(found)


@QUICK
@given(damaged(logs))
def test_any_damaged_log_has_an_answer(log: str) -> None:
    check(log)


@QUICK
@given(damaged(logs), damaged(configs))
def test_any_damaged_config_leaves_an_answer(log: str, config: str) -> None:
    check(log, config)


@QUICK
@given(st.text(max_size=400))
def test_any_text_has_an_answer(text: str) -> None:
    check(text + "\n")


@pytest.mark.slow
@THOROUGH
@given(damaged(logs), st.none() | damaged(configs))
def test_very_many_damaged_inputs_have_an_answer(log: str, config: str | None) -> None:
    check(log, config)
