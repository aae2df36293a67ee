"""The case that an interview is about: what was read, joined with what was answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor import pipeline
from oomdoctor.facts.derive import derive
from oomdoctor.facts.given import parse_given
from oomdoctor.gathering import Gathered
from oomdoctor.reason import interview
from oomdoctor.reason.supposing import Supposing
from oomdoctor.reason.timeline import first_failure
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.facts.book import FactBook
    from oomdoctor.model.core import Fact
    from oomdoctor.model.plan import Diagnosis
    from oomdoctor.reason.interview import Answer, Prospect
    from oomdoctor.rules.shape import RuleSet

# Figures that words speak of may be those of another try: "batch 8 runs".
_OF_ANOTHER_TRY = frozenset(
    ("train.micro_batch", "train.global_batch", "train.seq_len", "train.tokens", "eval.batch")
)
_OF_THIS_JOB = ("size", "config")


class View:
    """How a case stands after some answers."""

    def __init__(self, case: Case, answers: Sequence[Answer]) -> None:
        """Join the inputs with the answers and judge the rules."""
        self.gathered = case.joined(answers)
        self.book: FactBook = pipeline.assemble(self.gathered, case.stated(answers))
        event = first_failure(self.gathered.failures)
        self.supposing = Supposing(case.rules, self.book, event=event, complete=derive)
        self.options: tuple[Prospect, ...] | None = None
        self._rules = case.rules

    def diagnosis(self) -> Diagnosis:
        """Return the usual answer."""
        return pipeline.concluded(self.gathered, self.book, self._rules)


class Case:
    """The inputs, read once, and the rules."""

    def __init__(self, gathered: Gathered, rules: RuleSet, given: Sequence[str] = ()) -> None:
        """Take what was read, the rules in force and the facts of the command line."""
        self.rules = rules
        self._gathered = gathered
        self._given = tuple(given)
        self._read: dict[Answer, Gathered] = {}

    def stated(self, answers: Sequence[Answer]) -> tuple[Fact, ...]:
        """Return the facts stated on the command line and in answers, the answers first."""
        found = {item.partition("=")[0].strip(): item for item in self._given}
        found |= {item.partition("=")[0]: item for item in interview.stated(answers)}
        words = interview.sources(answers)
        return tuple(
            replace(fact, source=words.get(fact.key, fact.source))
            for fact in parse_given(found.values())
        )

    def joined(self, answers: Sequence[Answer]) -> Gathered:
        """Return the inputs together with the words and pastes of the answers."""
        parts = [self._heard(answer) for answer in answers if answer.text]
        dropped = {key for answer in answers for key in answer.drops}
        joined = Gathered()
        told = any(one.failures for one in parts) and not _has_figures(self._gathered)
        for part in [*parts, self._gathered]:
            joined.facts += [fact for fact in part.facts if fact.key not in dropped]
            joined.config_facts += [fact for fact in part.config_facts if fact.key not in dropped]
            joined.readings += part.readings
            joined.artifacts += part.artifacts
            joined.logs += part.logs
            joined.closes |= part.closes
            joined.notes += part.notes
            if part is not self._gathered or not told:
                joined.failures += part.failures
        return joined

    def view(self, answers: Sequence[Answer]) -> View:
        """Return how the case stands after `answers`."""
        return View(self, answers)

    def options(self, view: View, answers: Sequence[Answer]) -> tuple[Prospect, ...]:
        """Return the questions that could be put now, best first; judged once per view."""
        if view.options is None:
            view.options = interview.prospects(view.supposing, view.book, answers)
        asked = {answer.question for answer in answers}
        return tuple(one for one in view.options if one.question.id not in asked)

    def _heard(self, answer: Answer) -> Gathered:
        """Read the text of an answer like any input: a paste by its content, words as a note."""
        if answer not in self._read:
            text = answer.text.rstrip("\n") + "\n"
            if answer.pasted:
                self._read[answer] = pipeline.gather([text])
            else:
                self._read[answer] = _as_note(text, answer.question)
        return self._read[answer]


def _as_note(text: str, question: str) -> Gathered:
    note = pipeline.gather((), config=[text])
    if question not in _OF_THIS_JOB:
        note.config_facts = [one for one in note.config_facts if one.key not in _OF_ANOTHER_TRY]
    note.closes.clear()
    if question == "memory":
        said = pipeline.gather([text])
        note.failures, note.facts = said.failures, said.facts
    return note


def _has_figures(gathered: Gathered) -> bool:
    """Say whether a failure that was read states more than that there was one."""
    return any(
        fact.key == "oom.requested" or not failure.kind.startswith("gpu")
        for failure in gathered.failures
        for fact in failure.facts
    )
