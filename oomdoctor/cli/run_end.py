"""The end of a run: it is examined, and its bundle gets a diagnosis and a report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.errors import OomdoctorError
from oomdoctor.record import NamedTuple, replace
from oomdoctor.recorder import balance, run_file
from oomdoctor.recorder.bundle import read_bundle, read_told
from oomdoctor.recorder.diagnosing import Wishes, examine
from oomdoctor.recorder.outcome import SUCCEEDED, WORDS
from oomdoctor.render.run_json import diagnosis_json

if TYPE_CHECKING:
    from oomdoctor.model.core import Finding
    from oomdoctor.recorder.diagnosing import Examined
    from oomdoctor.render.page import Page

DIAGNOSIS_FILE, REPORT_FILE, HTML_FILE = "diagnosis.json", "report.txt", "report.html"
_COLUMNS = 100
_LONGEST = 100
_LEAST = 0.25  # less probable causes are in the report, but not what is said first
_ANSWERED = ("cause", "not_gpu_oom")


def examined_run(folder: Path, wishes: Wishes | None = None) -> Examined:
    """Examine the run of a bundle."""
    from oomdoctor.cli.settings import rule_directories

    wishes = wishes or Wishes()
    rules = (*rule_directories(), *wishes.rules)
    return examine(read_bundle(folder), replace(wishes, rules=rules))


class Concluded(NamedTuple):
    """A run that was examined at its end, and the line that says what came of it, and where."""

    examined: Examined
    line: str


def conclude(folder: Path) -> Concluded:
    """Examine a run that has ended, and write what came of it into its bundle, if there is room."""
    examined = examined_run(folder)
    line = last_line(examined)
    try:
        _keep(examined)
    except OSError as error:
        line += f" (its report could not be kept: {error.strerror})"
    return Concluded(examined, line)


def _keep(examined: Examined) -> None:
    folder = examined.run.folder
    told = dict(read_told(folder))
    peak = balance.reserved_peak(examined.run) or balance.host_peak(examined.run)
    told.update(outcome=examined.outcome.word, why=examined.outcome.why)
    leading = leading_cause(examined)
    if leading is not None:
        told["cause"] = leading.cause
    if peak is not None:
        told["peak_bytes"] = peak.bytes
    run_file.write(folder, told)
    run_file.write_whole(folder / DIAGNOSIS_FILE, diagnosis_json(examined.diagnosis))
    run_file.write_whole(folder / REPORT_FILE, text_of(examined))
    html = html_of(examined)
    if html is not None:
        run_file.write_whole(folder / HTML_FILE, html)


def last_line(examined: Examined) -> str:
    """Return the line that a run leaves on standard error: what came of it, where that stands."""
    parts = [WORDS[examined.outcome.word]]
    leading = leading_cause(examined)
    if leading is not None:
        share = f"{round(100 * leading.probability)} %"
        settled = "" if examined.diagnosis.answer in _ANSWERED else ", not settled"
        parts.append(f"{leading.cause} ({share}{settled})")
    elif examined.outcome.word != SUCCEEDED:
        why = examined.outcome.why
        parts.append(why if len(why) <= _LONGEST else f"{why[: _LONGEST - 3]}...")
    return f"oomdoctor: {'; '.join(parts)} - {shown_path(examined.run.folder)}"


def leading_cause(examined: Examined) -> Finding | None:
    """Return the first cause of what went wrong; None where none is worth its name."""
    if examined.outcome.word == SUCCEEDED:
        return None
    first = next(iter(examined.diagnosis.causes), None)
    return first if first is not None and first.probability >= _LEAST else None


def shown_path(folder: Path) -> str:
    """Return a folder as seen from here, where it lies below."""
    here = Path.cwd()
    return os.path.relpath(folder) if folder.is_relative_to(here) else str(folder)


def text_of(examined: Examined, *, colour: bool = False, width: int = _COLUMNS) -> str:
    """Return the report as text: the run, then its diagnosis where there is something to say."""
    from oomdoctor.render.page_text import page_lines
    from oomdoctor.render.run_page import run_page
    from oomdoctor.render.text import paint, render
    from oomdoctor.render.theme import Theme

    theme = Theme(width=width, colour=colour, unicode=True)
    text = paint(page_lines(run_page(examined), theme), theme)
    if not says_something(examined):
        return text
    diagnosis = render(examined.diagnosis, width=width, colour=colour, unicode=True)
    return f"{text}\n{diagnosis}"


def html_of(examined: Examined) -> str | None:
    """Return the report as HTML; None where what writes it is not installed."""
    from oomdoctor.render.html import page_html

    try:
        # without the charts' library, whose import takes most of a second: the command has ended,
        # and whoever waits for its exit code waits for us
        return page_html(whole_page(examined), still=True)
    except (OomdoctorError, ImportError):
        return None


def whole_page(examined: Examined) -> Page:
    """Return the run with its diagnosis as one page."""
    from oomdoctor.render.diagnosis_page import diagnosis_page
    from oomdoctor.render.run_page import run_page

    page = run_page(examined)
    if not says_something(examined):
        return page
    told = diagnosis_page(examined.diagnosis, before=page.sections)
    return replace(
        told,
        lead=(*page.lead, *told.lead),
        figures=(*page.figures, *told.figures),
        badges=(page.title, *told.badges),
        notes=(*page.notes, *told.notes),
    )


def says_something(examined: Examined) -> bool:
    """Say whether a diagnosis adds to what came of the run."""
    diagnosis = examined.diagnosis
    if examined.outcome.word == SUCCEEDED:
        return bool(diagnosis.side_findings) or diagnosis.answer in _ANSWERED
    return diagnosis.answer not in ("nothing_found", "no_failure")
