"""Reports of every kind, made from small inputs, some of which try to act in a page."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from oomdoctor.cli.run_end import whole_page
from oomdoctor.model.bisect import AxisRange, Bisected
from oomdoctor.model.trial import (
    FIT,
    OOM,
    Bracket,
    CommandSpec,
    Curve,
    Frontier,
    SearchAnswer,
    TrialResult,
)
from oomdoctor.pipeline import diagnose
from oomdoctor.record import replace
from oomdoctor.recorder.bundle import read_bundle
from oomdoctor.recorder.diagnosing import examine
from oomdoctor.render.bisect_page import bisect_page
from oomdoctor.render.diagnosis_page import diagnosis_page
from oomdoctor.render.html import page_html
from oomdoctor.render.page import Mark, Page, Section, Series, Stretch, Timeline
from oomdoctor.render.snapshot_page import snapshot_page
from oomdoctor.snapshot.report import report_on
from oomdoctor.snapshot.shapes import snapshot_of
from tests.unit.recorder.made import bundle, event, refusal
from tests.unit.snapshot.planted import MIB, Recorded, leak, train

GIB = 1 << 30
ACTING = (
    "<script>document.title='taken over'</script><img src=x onerror=\"document.title='taken'\">"
)
FORMULA = "$$\\frac{1}{2}$$"
LOG = f"""\
step 17 loss 1.25 {ACTING}
Traceback (most recent call last):
  File "/home/me/{ACTING}.py", line 12, in main
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity \
of 23.64 GiB of which 1.56 GiB is free. Including non-PyTorch memory, this process has 22.07 GiB \
memory in use. Of the allocated memory 21.49 GiB is allocated by PyTorch, and 133.27 MiB is \
reserved by PyTorch but unallocated. {ACTING}
"""
CONFIG = (
    f"model_name_or_path: meta-llama/Llama-2-7b-hf  # {ACTING}\nper_device_train_batch_size: 8\n"
)
TIMELINE = Timeline(
    caption="Memory over the run",
    across="seconds",
    series=(
        Series("allocated", tuple((at, GIB * (8 + at % 20 / 2)) for at in range(400))),
        Series(f"reserved {FORMULA}", ((0, 10 * GIB), (100, 17 * GIB), (300, 20 * GIB))),
    ),
    phases=(
        Stretch("load", 0, 40),
        Stretch(f"train {ACTING}", 40, 380),
        Stretch(f"evaluation {FORMULA}", 380, 400),
    ),
    marks=(Mark(200, "peak", calm=True), Mark(399, f"out of memory {FORMULA}")),
    levels=(("the card 23.64 GiB", 23.64 * GIB),),
)


def run_report(*, still: bool) -> str:
    """Return a diagnosis with a time line, of a log and a config that try to act."""
    with TemporaryDirectory() as folder:
        log, config = Path(folder) / "crash.log", Path(folder) / "train.yaml"
        log.write_text(LOG, encoding="utf-8")
        config.write_text(CONFIG, encoding="utf-8")
        found = diagnose([str(log)], config=[str(config)])
    before = Section(title="The run over time", timeline=TIMELINE)
    return page_html(diagnosis_page(found, before=(before,)), still=still)


def snapshot_report(*, still: bool) -> str:
    """Return the report of a snapshot with a leak and a request that failed."""
    run = train(Recorded(capacity=2900 * MIB), extra=leak(16 * MIB), steps=60)
    return page_html(snapshot_page(report_on(snapshot_of(run.snapshot())), ACTING), still=still)


def _trial(batch: int, outcome: str = FIT) -> TrialResult:
    return TrialResult(
        key=f"k{batch}",
        values={"batch": batch},
        backend="cuda",
        outcome=outcome,
        reserved_bytes=(2 + batch) * GIB if outcome == FIT else None,
        reason=ACTING,
        seconds=3.0,
    )


def _bisected() -> Bisected:
    curve = Curve(
        axis="batch",
        quantity="reserved",
        constant=2.0 * GIB,
        linear=1.0 * GIB,
        points=((4.0, 6 * GIB), (20.0, 22 * GIB)),
    )
    answer = SearchAnswer(
        bracket=Bracket(axis="batch", step=1, fits_at=20.0, ooms_at=21.0, fits=2, proven=True),
        trials=(_trial(4), _trial(21, OOM), _trial(20), _trial(20)),
        curve=curve,
        safe_value=18.0,
    )
    return Bisected(
        backend="cuda",
        axes=(AxisRange(name="batch", low=1, high=64, step=1, memory="device"),),
        trials=answer.trials,
        answer=answer,
        command=CommandSpec(arguments=("train", ACTING), folder="/"),
        limit_bytes=int(22.6 * GIB),
        card="NVIDIA GeForce RTX 4090",
    )


def bisect_report(*, still: bool) -> str:
    """Return the report of a search along one axis, with its fitted curve."""
    return page_html(bisect_page(_bisected()), still=still)


def frontier_report(*, still: bool) -> str:
    """Return the report of a search over two axes, with its heat map."""
    made = _bisected()
    answer = made.answer
    assert answer is not None
    less = replace(answer, bracket=replace(answer.bracket, fits_at=9.0, ooms_at=10.0))
    frontier = Frontier(outer="seq", inner="batch", rows=((512.0, answer), (1024.0, less)))
    return page_html(bisect_page(replace(made, answer=None, frontier=frontier)), still=still)


def recorded_report(*, still: bool) -> str:
    """Return the report of a recorded run that ended for want of memory."""
    events = [event("phase", 3, phase=f"load {ACTING}", seconds=3.0, allocated_bytes=2 * GIB)]
    for step in range(40):
        figures = {
            "allocated_bytes": (4 + step // 4) * GIB,
            "reserved_bytes": (5 + step // 4) * GIB,
        }
        events.append(event("step", 4 + step, number=step + 1, seconds=1.0, **figures))
    events.append(refusal(45, step=41))
    with TemporaryDirectory() as folder:
        told = {"exit_code": 1, "kernel_kills": {"on_machine": 0, "in_group": 0}}
        place = bundle(Path(folder) / "run", told=told, events={"100-1": events}, output=LOG)
        return page_html(whole_page(examine(read_bundle(place))), still=still)


def plain_report(*, still: bool) -> str:
    """Return a page of sentences alone."""
    return page_html(Page(title="Nothing to draw", lead=("All is said.",)), still=still)


class Report(Protocol):
    """Makes a report; a `still` one has no charts of the library."""

    def __call__(self, *, still: bool) -> str:
        """Return the document."""


REPORTS: dict[str, Report] = {
    "run": run_report,
    "snapshot": snapshot_report,
    "recorded": recorded_report,
    "bisect": bisect_report,
    "frontier": frontier_report,
    "plain": plain_report,
}
