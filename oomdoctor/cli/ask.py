"""`diagnose --ask`: the interview in a terminal; it talks on standard error, answers on stdin."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from oomdoctor.cli import ask_page, ask_session
from oomdoctor.cli.ask_terminal import LeavingError, Terminal
from oomdoctor.errors import InputError, UsageError
from oomdoctor.reason import answering, interview
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.cli.ask_case import Case, View
    from oomdoctor.cli.ask_session import Session
    from oomdoctor.reason.interview import Answer, Prospect


# A first line of a paste is longer than what people type instead of one.
SHORTEST_PASTE = 20


def is_possible() -> bool:
    """Say whether somebody sits at a terminal who can be asked."""
    return bool(sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty())


class Interview:
    """One sitting: asks until the cause is established, nothing is worth asking, or they leave."""

    def __init__(self, case: Case, session: Session, path: str, terminal: Terminal) -> None:
        """Take the case, the answers given so far and where they are kept."""
        self.case, self.session, self.path, self.terminal = case, session, path, terminal
        self.is_kept = True
        self._again: str | None = None
        self._options: tuple[Prospect, ...] = ()

    @property
    def answers(self) -> tuple[Answer, ...]:
        """Return all answers so far."""
        return self.session.answers

    def run(self) -> View:
        """Ask; return how the case stands at the end."""
        view = self.case.view(self.answers)
        self.terminal.show(ask_page.opening(self.terminal.theme))
        with suppress(LeavingError, KeyboardInterrupt):
            while (prospect := self._next(view)) is not None:
                view = self._ask(prospect, view)
        return view

    def _next(self, view: View) -> Prospect | None:
        self._options = self.case.options(view, self.answers)
        again, self._again = self._again, None
        if again is not None:
            found = [one for one in self._options if one.question.id == again]
            if found:
                return found[0]
        diagnosis = view.diagnosis()
        now = view.supposing.now
        leading = now.asking.get(now.leader, 0.0)
        established = diagnosis.conclusive and diagnosis.answer in ("cause", "not_gpu_oom")
        return interview.next_question(self._options, conclusive=established, leading=leading)

    def _ask(self, prospect: Prospect, view: View) -> View:
        """Put one question until it is answered in some way; return the case as it stands then."""
        number = 1 + sum(bool(answer.question) for answer in self.answers)
        self.terminal.show(ask_page.question(prospect, number, self.terminal.theme))
        while True:
            line = self.terminal.line()
            command = answering.command_of(line)
            if command == "quit":
                raise LeavingError
            if command == "back":
                return self._back(prospect, view)
            if command == "why":
                self.terminal.show(ask_page.why(prospect, self.terminal.theme))
                continue
            if command == "help":
                self.terminal.show(ask_page.explained(self.terminal.theme))
                continue
            answer = self._answer(prospect, line)
            if answer is not None:
                return self._take(answer, view)
            self.terminal.show(ask_page.not_understood(prospect, self.terminal.theme))

    def _answer(self, prospect: Prospect, line: str) -> Answer | None:
        """Return what a line answers, with the lines behind it where it is the first of a paste."""
        question = prospect.question
        is_short = not line.strip() or line.strip().isdecimal()
        waits = question.kind == "paste" and len(line) > SHORTEST_PASTE
        text = line if is_short else self.terminal.rest_of(line, waits=waits)
        if "\n" in text.strip():
            return answering.pasted(question, text)
        if line.strip().lower().startswith("no ") and "." in line:
            keys = tuple(word.strip(",;") for word in line.split()[1:])
            return interview.Answer(question="", drops=keys)
        try:
            answer = answering.understand(question, line)
        except UsageError as fault:
            self.terminal.show(ask_page.refused(str(fault), self.terminal.theme))
            return None
        if answer is not None and question.kind == "paste" and answer.text:
            return answering.pasted(question, answer.text)
        return answer

    def _take(self, answer: Answer, before: View) -> View:
        """Keep an answer, show what it said and how the ranking moved."""
        answers = (*self.answers, answer)
        self._keep(answers)
        if not (answer.is_known or answer.drops):
            return before
        view = self.case.view(answers)
        understood = ask_page.understood(answer, before.book, view.book)
        if answer.text and not understood:
            self.terminal.show(ask_page.nothing_understood(answer, self.terminal.theme))
        self.terminal.show(
            ask_page.moved(
                understood, before.supposing.now, view.supposing.now, self.terminal.theme
            )
        )
        return view

    def _back(self, prospect: Prospect, view: View) -> View:
        """Take the last answer back and put its question again."""
        if not self.answers:
            self.terminal.show(ask_page.refused("this is the first question", self.terminal.theme))
            self._again = prospect.question.id
            return view
        last = self.answers[-1]
        self._keep(self.answers[:-1])
        self._again = last.question or prospect.question.id
        return self.case.view(self.answers)

    def _keep(self, answers: Sequence[Answer]) -> None:
        self.session = replace(self.session, answers=tuple(answers))
        if not self.is_kept:
            return
        try:
            ask_session.write(self.session, self.path)
        except InputError as fault:
            self.is_kept = False
            self.terminal.show(ask_page.refused(f"{fault}; going on", self.terminal.theme))
