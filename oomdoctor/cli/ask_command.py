"""What `diagnose --ask` and `--resume` do: sit down to an interview, or list its questions."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.cli import ask_session
from oomdoctor.cli.ask import Interview, is_possible
from oomdoctor.cli.ask_case import Case
from oomdoctor.cli.ask_session import Session
from oomdoctor.cli.ask_terminal import Terminal
from oomdoctor.cli.output import say, theme_for
from oomdoctor.facts.given import parse_given
from oomdoctor.model.plan import Measurement
from oomdoctor.record import replace
from oomdoctor.render.words import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.cli.diagnose import Asked
    from oomdoctor.model.plan import Diagnosis
    from oomdoctor.reason.interview import Prospect

SHOWN = 5


def diagnosed(asked: Asked) -> Diagnosis:
    """Interview whoever sits at the terminal and return the diagnosis; else list the questions."""
    path = asked["resume"]
    session = Session() if path is None else ask_session.read(path)
    session = Session(
        files=_once([*session.files, *_absolute([*asked["files"], *asked["snapshot"]])]),
        config=_once([*session.config, *_absolute(asked["config"])]),
        facts=_once([*session.facts, *asked["fact"]]),
        answers=session.answers,
    )
    case = _case(session, asked)
    if not is_possible():
        return unattended(case, session)
    path = ask_session.default_path(os.environ) if path is None else path
    theme = theme_for(color=asked["color"], width=asked["width"], stream=sys.stderr)
    interview = Interview(case, session, path, Terminal(theme))
    view = interview.run()
    if interview.answers and interview.is_kept and not asked["quiet"]:
        say(f"\nAnswers are kept in {path}; go on with: oomdoctor diagnose --resume {path}\n")
    elif not asked["quiet"]:
        say("")
    return _still_open(view.diagnosis(), case.options(view, interview.answers))


def unattended(case: Case, session: Session) -> Diagnosis:
    """Return the diagnosis with the questions as the next measurements."""
    view = case.view(session.answers)
    return _still_open(view.diagnosis(), case.options(view, session.answers))


def _still_open(diagnosis: Diagnosis, options: Sequence[Prospect]) -> Diagnosis:
    """Put the questions that nobody was asked before the other measurements."""
    if diagnosis.answer in ("cause", "not_gpu_oom") and diagnosis.conclusive:
        return diagnosis
    questions = tuple(as_measurement(one) for one in options[:SHOWN] if one.gain_bits > 0)
    asked = {one.fact for one in questions}
    others = [one for one in diagnosis.next_measurements if one.fact not in asked]
    return replace(diagnosis, next_measurements=(*questions, *others)[:SHOWN])


def as_measurement(prospect: Prospect) -> Measurement:
    """Write a question as a measurement: its answers as --fact options, what each would mean."""
    question = prospect.question
    meanings, leaders = [], []
    for one in prospect.outcomes:
        leader = one.belief.leader
        leaders.append(leader)
        share = percent(one.belief.masses.get(leader, 0.0))
        facts = " ".join(f"--fact {_quoted(item)}" for item in one.choice.sets)
        answer = f"{one.choice.text}: {facts}" if question.kind == "choice" else one.choice.text
        meanings.append(f"{answer} (then {leader} leads with {share})")
    return Measurement(
        fact=question.facts[0],
        command=question.text if question.hint is None else f"{question.text} ({question.hint})",
        seconds=question.seconds,
        gain_bits=round(prospect.gain_bits, 4),
        decides_between=tuple(dict.fromkeys(leaders))[:6],
        meanings=tuple(meanings),
    )


def _quoted(item: str) -> str:
    return f'"{item}"' if " " in item else item


def _case(session: Session, asked: Asked) -> Case:
    from oomdoctor.cli.diagnose_snapshot import gathered_with
    from oomdoctor.cli.options import codes_of
    from oomdoctor.cli.settings import rule_directories
    from oomdoctor.rules.loader import load_rules
    from oomdoctor.rules.selection import selected

    parse_given(session.facts)
    gathered = gathered_with(session.files, (), session.config)
    directories = (*rule_directories(), *asked["rules"])
    rules = load_rules(directories, preview=asked["preview"])
    rules = selected(rules, select=codes_of(asked["select"]), ignore=codes_of(asked["ignore"]))
    return Case(gathered, rules, session.facts)


def _absolute(paths: Sequence[str]) -> list[str]:
    return [path if path == "-" else str(Path(path).resolve()) for path in paths]


def _once(items: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))
