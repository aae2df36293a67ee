"""What a command line of `confirm` puts to the test: the case, and the run that fails."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from oomdoctor.cli.bisect_backend import search_path
from oomdoctor.cli.bisect_command import check_start, command_given
from oomdoctor.cli.bisect_setup import setup_of
from oomdoctor.errors import InputError, Location
from oomdoctor.experiments.arms import Subject
from oomdoctor.experiments.case import Case, case_of_cause, case_of_diagnosis
from oomdoctor.experiments.catalogue import EXPERIMENTS
from oomdoctor.lab.hooks import names
from oomdoctor.model.trial import CommandSpec
from oomdoctor.reason.after import jobs_after
from oomdoctor.reason.prescribe import prescriptions_of
from oomdoctor.record import NamedTuple, replace
from oomdoctor.search.rounds import Ask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import BinaryIO

    from oomdoctor.cli.bisect_setup import Setup
    from oomdoctor.cli.confirm import Asked
    from oomdoctor.configs.dialect import ConfigReading
    from oomdoctor.facts.book import FactBook
    from oomdoctor.lab.guard import Allowed
    from oomdoctor.model.job import Job
    from oomdoctor.model.plan import Prescription

_MOST_BYTES = 64 << 20


class Wanted(NamedTuple):
    """A case with the set-up of its trials."""

    case: Case
    setup: Setup
    jobs: Mapping[str, Job]

    def subject(self, asked: Asked, allowed: Allowed) -> Subject:
        """Return what fails, under the caps of this place."""
        words = _words(asked["treated"])
        treated = CommandSpec(arguments=words, folder=str(Path.cwd())) if words else None
        return Subject(
            spec=self.setup.spec_of(allowed)(Ask()),
            fixes=self.case.fixes,
            jobs=self.jobs,
            treated=treated,
            hooks=names(),
        )


def wanted_of(values: Mapping[str, object], *, stdin: BinaryIO | None) -> Wanted:
    """Return what a command line asks for; UsageError or InputError says what is wrong."""
    asked = cast("Asked", values)
    case = _case(asked["case"])
    case = replace(case, suspects=case.suspects[: asked["top"]])
    # one run without an axis is what `bisect --git-bisect` sets up
    setup = setup_of({**values, "axis": (), "git_bisect": True, "objective": "memory"}, stdin=stdin)
    if setup.backend == "formula":
        raise click.UsageError(
            "nothing can run here: no card is seen, and torch is not installed for --backend"
            " simulate or cpu (pip install 'oomdoctor[lab]', or name --python)"
        )
    if asked["treated"] is not None and setup.template is None:
        raise click.UsageError("--treated stands for a command, and there is none behind --")
    for words in (_words(asked["treated"]), command_given()):
        if words:
            check_start(words[0], search_path(asked["backend"], asked["python"]))
    if asked["write_config"] is not None and not asked["minimal"]:
        raise click.UsageError("--write-config writes what --minimal finds: give both")
    if setup.job is None or setup.source is None:
        return Wanted(case, setup, {})
    book = setup.source.described().book
    if not case.fixes:
        case = replace(case, fixes=_fixes_of_rules(book, setup.source.configs.readings))
    return Wanted(case, setup, jobs_after(tuple(case.fixes.values()), book))


def _words(text: str | None) -> tuple[str, ...]:
    """Return the words of the changed command; UsageError where its quotes do not match."""
    if text is None:
        return ()
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise click.UsageError(f"--treated {text!r}: {error}") from error
    if not words:
        raise click.UsageError("--treated names no command")
    return words


def _case(text: str) -> Case:
    path = Path(text)
    if path.suffix == ".json" or path.is_file():
        try:
            if path.stat().st_size > _MOST_BYTES:
                raise InputError("too large for a diagnosis", location=Location(path=text))
            return case_of_diagnosis(json.loads(path.read_text(encoding="utf-8")), text)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read: {error}", location=Location(path=text)) from error
        except ValueError as error:
            raise InputError(
                f"not JSON: {error}",
                location=Location(path=text),
                hint=f"diagnose it first: oomdoctor diagnose {text} -f json -o diagnosis.json",
            ) from error
    from oomdoctor.rules.loader import load_rules

    known = load_rules().causes
    if text not in known:
        from difflib import get_close_matches

        near = get_close_matches(text, known, n=3, cutoff=0.5)
        remedy = f"did you mean {', '.join(near)}?" if near else "docs/rules.md lists them"
        raise click.UsageError(f"{text!r} is neither a file nor a cause; {remedy}")
    return case_of_cause(text)


def _fixes_of_rules(book: FactBook, readings: Sequence[ConfigReading]) -> dict[str, Prescription]:
    """Return what the rules would change in these configs for the experiments that there are."""
    from oomdoctor.rules.loader import load_rules

    wanted = {one.fix for one in EXPERIMENTS}
    found: dict[str, Prescription] = {}
    for rule in load_rules().rules:
        if any(fix.id in wanted for fix in rule.fixes):
            for one in prescriptions_of(rule, book, readings):
                if one.fix_id in wanted:
                    found.setdefault(one.fix_id, one)
    return found
