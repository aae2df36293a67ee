"""What `diagnose --simulate` does: the diagnosis, and what a trace of its job adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor import pipeline
from oomdoctor.cli.diagnose_snapshot import gathered_with
from oomdoctor.cli.options import codes_of
from oomdoctor.cli.progress import bar_for
from oomdoctor.cli.settings import rule_directories
from oomdoctor.cli.steps import steps_for
from oomdoctor.errors import InputError
from oomdoctor.estimating.choice import engines
from oomdoctor.estimating.describe import cards_asked, settings_of
from oomdoctor.estimating.of_failure import with_simulation
from oomdoctor.facts.given import parse_possible
from oomdoctor.record import replace

if TYPE_CHECKING:
    from oomdoctor.cli.diagnose import Asked
    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.job import CardSpec
    from oomdoctor.model.plan import Diagnosis


def diagnosed_with_simulation(asked: Asked) -> Diagnosis:
    """Diagnose, and trace the job while nobody has an answer yet."""
    with (
        steps_for(quiet=asked["quiet"]) as say,
        engines(None, say=say) as chosen,
    ):
        with bar_for(quiet=asked["quiet"]) as bar:
            gathered = gathered_with(
                asked["files"], asked["snapshot"], asked["config"], progress=bar
            )
        book = pipeline.assemble(gathered, parse_possible(asked["fact"]))
        ruleset = pipeline.chosen_rules(
            (*rule_directories(), *asked["rules"]),
            preview=asked["preview"],
            select=codes_of(asked["select"]),
            ignore=codes_of(asked["ignore"]),
        )
        diagnosis = pipeline.concluded(gathered, book, ruleset)
        chosen.settings = settings_of(book)
        try:
            made = chosen.speak(
                _card(book), lambda engine: with_simulation(diagnosis, book, engine)
            )
        except InputError as error:
            return _noted(diagnosis, error.message)
    return made if chosen.fallback is None else _noted(made, chosen.fallback)


def _card(book: FactBook) -> CardSpec | None:
    found = cards_asked([], book)
    return found[0] if found else None


def _noted(diagnosis: Diagnosis, why: str) -> Diagnosis:
    return replace(diagnosis, notes=(*diagnosis.notes, f"the job was not simulated: {why}"))
