"""What tests of runs share: trials by formula, and a run over some places that shows nothing."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from oomdoctor.lab.drive import Budget, Drive
from oomdoctor.lab.executors import OneByOne, SideBySide
from oomdoctor.lab.guard import Guard, Wish
from oomdoctor.lab.journal import Journal
from oomdoctor.lab.places import Place
from oomdoctor.lab.simulated import FormulaBackend
from oomdoctor.model.trial import TrialResult, TrialSpec
from oomdoctor.search.axes import Axis
from oomdoctor.search.rounds import Ask

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from oomdoctor.lab.executors import Executor
    from oomdoctor.model.trial import Value

GIB = 1 << 30
BATCH = Axis(name="batch", low=1, high=512)
SEQ = Axis(name="seq", low=512, high=4096, step=512)
EDGE = 37


def peak(values: Mapping[str, Value]) -> float:
    length = int(values.get("seq", 1024)) / 1024
    return 2 * GIB + 0.5 * GIB * int(values["batch"]) * length


def cap() -> int:
    return int(peak({"batch": EDGE}))


class Quiet:
    """Hears all and shows nothing."""

    def __init__(self) -> None:
        """Have heard nothing yet."""
        self.ran: list[Mapping[str, Value]] = []
        self.replayed = 0

    def began(self, spec: TrialSpec) -> None:
        self.ran.append(spec.values)

    def heard(self, spec: TrialSpec, text: str) -> None:
        pass

    def ended(self, result: TrialResult, *, replayed: bool) -> None:
        self.replayed += replayed
        self.last = result


def place(backend: Any = None) -> Place:
    made = backend or FormulaBackend(peak, cap_bytes=cap())
    return Place(Guard(Wish(backend="formula")), lambda _stop, _environment: made)


def spec_of(ask: Ask) -> TrialSpec:
    return TrialSpec(values=ask.values, repeat=ask.repeat)


@contextmanager
def driving(
    folder: Path, *backends: Any, resume: Path | None = None, **budget: Any
) -> Iterator[tuple[Drive, Quiet, Journal]]:
    quiet = Quiet()
    with ExitStack() as stack:
        places = [place(one) for one in backends or (None,)]
        for one in places:
            stack.enter_context(one.opened())
        executor: Executor = OneByOne(places[0]) if len(places) == 1 else SideBySide(places)
        journal = (
            Journal.create(folder, "ab" * 32, arguments=["oomdoctor"], started=0.0)
            if resume is None
            else Journal.resume(resume)
        )
        stack.callback(journal.close)
        yield (
            Drive(executor, journal, spec_of=spec_of, tells=quiet, budget=Budget(**budget)),
            quiet,
            journal,
        )


def ask(batch: int) -> Ask:
    return Ask(values={"batch": batch})
