"""Parts of a page have the same content in a terminal and in Markdown, and act in neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.render.escape import cells
from oomdoctor.render.html import code_rows, fills, page_html, share_words
from oomdoctor.render.layout import plain
from oomdoctor.render.page import (
    Code,
    Flame,
    FlameFrame,
    Fold,
    Mark,
    Page,
    Point,
    Quoted,
    Section,
    Series,
    Stack,
    StackPart,
    Stretch,
    Table,
    Timeline,
)
from oomdoctor.render.page_markdown import page_markdown
from oomdoctor.render.page_text import page_lines
from oomdoctor.render.theme import Theme
from tests.unit.render.reading_html import read_html

if TYPE_CHECKING:
    from collections.abc import Callable

    Golden = Callable[[str, str], None]

GIB = 1 << 30
STACK = Stack(
    caption="Who holds the card",
    parts=(
        StackPart("allocated", 20 * GIB, "20.00 GiB", "stated", "allocated"),
        StackPart("weights of the other job", 2 * GIB, "2.00 GiB", "probed"),
        StackPart("free", 2 * GIB, "2.00 GiB", "stated", "free"),
    ),
    whole=24 * GIB,
)
TIMELINE = Timeline(
    caption="Memory over the run",
    across="seconds",
    series=(
        Series("allocated", tuple((at, GIB * (1 + at % 10)) for at in range(100))),
        Series("reserved", ((0, 5 * GIB), (50, 11 * GIB))),
    ),
    phases=(Stretch("load", 0, 30), Stretch("train", 30, 99)),
    marks=(Mark(99, "out of memory"),),
    levels=(("card 12.00 GiB", 12.0 * GIB),),
)
FLAME = Flame(
    caption="By which calls",
    whole=100,
    frames=(FlameFrame(0, 0, 100, "all", "all: 100 B"), FlameFrame(1, 0, 60, "main", "main: 60 B")),
    table=Table(caption="calls", headers=("held", "calls"), rows=(("60 B", "main"),)),
)
FOLD = Fold(
    title="The logits are large.",
    badge="83 %",
    tag="logits, ACT2001",
    role="bad",
    share=0.83,
    sentences=("Use a chunked loss.",),
    points=(Point("+", "the loss fails"),),
    quotes=(Quoted("crash.log:7", "CUDA out of memory"),),
    contrary=(Point("-", "a smaller batch failed, too"),),
    codes=(Code("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-batch: 2\n+batch: 1", "diff", "train.yaml"),),
    opened=True,
)
PAGE = Page(
    title="A run that failed",
    lead=("It failed.",),
    role="bad",
    badges=("cause found", "conclusive"),
    quotes=(Quoted("crash.log:7", "CUDA out of memory"),),
    sections=(
        Section(title="Balance", stack=STACK),
        Section(title="Time", timeline=TIMELINE),
        Section(title="Calls", flame=FLAME),
        Section(title="Causes", folds=(FOLD,), points=(Point("•", "nothing else"),)),
        Section(title="Proof", codes=(Code("oomdoctor confirm logits", "sh"),), folded=True),
    ),
)


@pytest.mark.parametrize("unicode", [True, False])
def test_all_parts_in_a_terminal_look_as_agreed(golden: Golden, unicode: bool) -> None:
    text = plain(page_lines(PAGE, Theme(width=80, unicode=unicode)))

    assert max(map(cells, text.split("\n"))) <= 80
    assert unicode or text.isascii()
    golden(f"screens/items-80{'' if unicode else '-ascii'}.txt", text + "\n")


def test_all_parts_as_markdown_look_as_agreed(golden: Golden) -> None:
    golden("screens/items.md", page_markdown(PAGE))


def test_all_parts_are_in_html_with_the_same_words() -> None:
    text = " ".join(read_html(page_html(PAGE, still=True)).text.split())

    for word in (
        "weights of the other job",
        "card 12.00 GiB",
        "out of memory",
        "main",
        "83 %",
        "a smaller batch failed, too",
        "+batch: 1",
        "oomdoctor confirm logits",
    ):
        assert word in text


def test_no_two_parts_of_a_bar_look_alike() -> None:
    found = fills(STACK)

    assert found["free"] == "fill-free"
    assert len(set(found.values())) == len(STACK.parts)


def test_a_share_is_told_only_of_a_known_whole() -> None:
    assert share_words(STACK.parts[1], STACK) == "8 %"
    assert share_words(STACK.parts[1], Stack(caption="", parts=STACK.parts)) == ""


def test_the_names_of_a_patchs_files_are_neither_added_nor_removed() -> None:
    assert [kind.strip() for kind, _ in code_rows(FOLD.codes[0])] == [
        "hunk",
        "hunk",
        "hunk",
        "removed",
        "added",
    ]
    assert {kind for kind, _ in code_rows(Code("-x\n+y", "sh"))} == {""}
