"""Damaged configs: cut, doubled or mixed, they are read to the end with quotes that hold."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oomdoctor.configs.patch import patch
from oomdoctor.configs.reader import read_config
from oomdoctor.errors import InputError

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "configs"
TEXTS = [path.read_text() for path in sorted(FIXTURES.rglob("*")) if path.is_file()]
NAMES = ("a.yaml", "a.json", "a.py", "a.sh", "a.toml", "config.txt")
STRANGE = (
    "",
    "\t",
    "\r\n",
    "\x00",
    "{",
    "]",
    '"',
    "#",
    ": ",
    "\\\n",
    "\u2028",
    "é",
    "- ",
    "<<: *a\n",
)
WANTED = {
    "hf_trainer": {"gradient_checkpointing": True, "a.b": 1},
    "deepspeed": {"zero_optimization": {"stage": 1}},
    "env": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
}


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Draw a text that is cut, mixed with another one and strewn with odd characters."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 60)))
        insert = draw(st.one_of(st.sampled_from(STRANGE), st.sampled_from(TEXTS)))
        text = text[:start] + insert + text[start:end] * draw(st.integers(0, 3)) + text[end:]
    return text


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=damaged(), name=st.sampled_from(NAMES))
def test_damaged_configs_are_read_and_patched_without_a_fault(text: str, name: str) -> None:
    try:
        readings = read_config(text, name=name, path=name)
    except InputError:
        return
    lines = text.split("\n")

    for fact in (fact for reading in readings for fact in reading.facts):
        for quote in fact.quotes:
            end = quote.end_column - 1 if quote.end_column else None
            assert lines[quote.line - 1][quote.column - 1 : end] == quote.text
    patch(readings, WANTED)
