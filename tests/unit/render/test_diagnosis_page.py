"""The page of a diagnosis holds all of the answer in every format, and nothing of it acts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

import pytest

from oomdoctor.render.diagnosis_page import diagnosis_page
from oomdoctor.render.escape import cells
from oomdoctor.render.html import page_html
from oomdoctor.render.layout import plain
from oomdoctor.render.page import Code, Section
from oomdoctor.render.page_markdown import page_markdown
from oomdoctor.render.page_text import page_lines
from oomdoctor.render.theme import Theme
from oomdoctor.render.view import View
from tests.unit.render.reading_html import read_html

if TYPE_CHECKING:
    from oomdoctor.model.plan import Diagnosis

ACTING = "<script>alert(1)</script><img src=x onerror=alert(2)> & \x1b[2J \u202e"
LARGEST_BYTES = 200_000
WORDS = (
    "GPU memory ran out: float32 logits",
    "cause found",
    "83 %",
    "logits-vocab-fp32",
    "the failing frame computes a loss",
    "Compute the loss in chunks with the Liger kernel",
    "Set it before the process starts",
    "Liger must support the model",
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    "nvidia-smi --query-compute-apps",
    "rank 0",
    "EXT5001 needs gpu.foreign",
    "pattern took too long",
    "3 progress bars were folded",
    "23.64 GiB",
    "float32 logits (batch 2, seq 2,048, vocab 151,936)",
)


def poisoned(value: Any) -> Any:
    """Return a value in which every text holds what would act in a page."""
    if isinstance(value, Enum) or value is None:
        return value
    if isinstance(value, str):
        return value + ACTING
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(
            **{one.name: poisoned(getattr(value, one.name)) for one in fields(value)}
        )
    if isinstance(value, tuple):
        return tuple(poisoned(one) for one in value)
    if isinstance(value, Mapping):
        return {key: poisoned(one) for key, one in value.items()}
    return value


def test_the_html_page_says_all_of_the_answer(full: Diagnosis) -> None:
    text = " ".join(read_html(page_html(diagnosis_page(full))).text.split())

    assert [word for word in WORDS if word not in text] == []


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_the_other_formats_say_the_same(full: Diagnosis, form: str) -> None:
    page = diagnosis_page(full)
    text = plain(page_lines(page, Theme(width=120)))
    if form == "markdown":
        text = page_markdown(page).replace("\\", "")
    text = " ".join(text.split())

    assert [word for word in WORDS if word not in text] == []


def test_nothing_that_an_input_says_acts(full: Diagnosis) -> None:
    hostile = cast("Diagnosis", poisoned(full))

    document = page_html(diagnosis_page(hostile, View(explain=True)))

    found = read_html(document)
    assert {"img", "iframe"} & found.tags == set()
    assert len(found.scripts) == 1
    assert found.text.count("alert(1)") > 40
    assert "\x1b" not in document
    assert "\u202e" not in document


def test_a_page_without_pictures_stays_small(full: Diagnosis) -> None:
    assert len(page_html(diagnosis_page(full)).encode()) < LARGEST_BYTES


def test_a_patch_is_there_row_for_row_with_a_button_to_copy_it(full: Diagnosis) -> None:
    found = read_html(page_html(diagnosis_page(full)))
    diff = full.prescriptions[0].patches[0].diff
    assert diff is not None

    classes = [attributes.get("class", "") or "" for attributes in found.all("span")]
    rows = [one for one in classes if one.startswith("row ")]
    assert diff.rstrip("\n").replace("\n", "") in found.text
    assert {"row added", "row removed", "row hunk"} >= set(rows) > {"row hunk"}
    copies = [one for one in found.all("button") if "copy" in (one.get("class") or "")]
    assert len(copies) == len(
        [one for section in diagnosis_page(full).sections for one in codes(section)]
    )


def codes(section: Section) -> list[Code]:
    return [*section.codes, *(one for fold in section.folds for one in fold.codes)]


def test_the_leading_cause_is_open_and_the_others_can_be_opened(full: Diagnosis) -> None:
    section = next(one for one in diagnosis_page(full).sections if one.title.startswith("Causes"))

    assert [one.opened for one in section.folds] == [True, False]
    assert [one.share for one in section.folds] == [0.8333, 0.1111]


def test_tabs_of_a_patch_are_kept_so_that_it_applies() -> None:
    from oomdoctor.render.page import Page

    code = Code("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\tkey: 1\n+\tkey: 2", "diff")
    page = Page(title="t", lead=(), sections=(Section(title="s", codes=(code,)),))

    assert "+\tkey: 2" in read_html(page_html(page)).text


def test_next_shows_the_measurements_alone(full: Diagnosis) -> None:
    page = diagnosis_page(full, View(next_only=True))

    assert [one.title for one in page.sections] == ["What would make it surer"]


def test_an_answer_without_anything_is_a_page_as_well(nothing: Diagnosis) -> None:
    page = diagnosis_page(nothing)

    assert "No failure." in read_html(page_html(page)).text
    assert "nothing recognised" in plain(page_lines(page, Theme()))


@pytest.mark.parametrize("unicode", [True, False])
def test_sections_of_a_run_stand_before_the_answer(full: Diagnosis, unicode: bool) -> None:
    page = diagnosis_page(full, before=(Section(title="The run", sentences=("It ran.",)),))
    text = plain(page_lines(page, Theme(width=80, unicode=unicode)))

    assert page.sections[0].title == "The run"
    assert unicode or text.isascii()
    # only what is copied may be wider than the page
    wide = [one for one in text.split("\n") if cells(one) > 80]
    assert all("nvidia-smi" in one or "---" in one or one.startswith("     ") for one in wide)
