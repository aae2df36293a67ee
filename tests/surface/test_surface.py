"""What users rely on, as frozen lists: a change here is a change for them.

`pytest tests/surface --update-golden` writes the lists anew; a removed line needs a fragment in
changes/ that says what to use instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import oomdoctor
from oomdoctor.cli import lint_settings
from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.main import cli
from oomdoctor.facts.registry import specs
from oomdoctor.model.enums import Maturity, Severity
from oomdoctor.model.lint import FileReport, JobReport, LintFinding, LintReport
from oomdoctor.model.plan import Diagnosis
from oomdoctor.render.json import as_dict
from oomdoctor.render.lint.json import as_dict as lint_as_dict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    Golden = Callable[[str, str], None]


def listed(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def test_public_names(golden: Golden) -> None:
    golden("lists/public_names.txt", listed(sorted(oomdoctor.__all__)))


def test_exit_codes(golden: Golden) -> None:
    golden("lists/exit_codes.txt", listed(f"{code.value} {code.name}" for code in ExitCode))


def test_command_line_options(golden: Golden) -> None:
    golden("lists/cli_options.txt", listed(_options(cli, "oomdoctor")))


def _options(command: click.Command, path: str) -> Iterator[str]:
    for parameter in command.params:
        names = "/".join(parameter.opts) if isinstance(parameter, click.Option) else "argument"
        kind = parameter.type.name
        if isinstance(parameter.type, click.Choice):
            kind = "|".join(map(str, parameter.type.choices))
        several = " ..." if parameter.multiple or parameter.nargs != 1 else ""
        yield f"{path} {names} {parameter.name}: {kind}{several}"
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield f"{path} {name}"
            yield from _options(found, f"{path} {name}")


def test_json_keys(golden: Golden) -> None:
    nothing = Diagnosis(answer="nothing_found", resource="unknown", conclusive=False, headline="")

    golden("lists/json_keys.txt", listed(sorted(as_dict(nothing))))


def test_lint_json_keys(golden: Golden) -> None:
    finding = LintFinding(
        code="",
        rule="",
        severity=Severity.INFO,
        title="",
        message="",
        category="",
        maturity=Maturity.STABLE,
    )
    file = FileReport(path="", dialect=None, findings=(finding,))
    whole: Any = lint_as_dict(LintReport(jobs=(JobReport(files=(file,)),)), root=".")
    parts = {
        "": whole,
        "files.": whole["files"][0],
        "findings.": whole["files"][0]["findings"][0],
        "jobs.": whole["jobs"][0],
    }

    keys = (f"{head}{key}" for head, part in parts.items() for key in sorted(part))
    golden("lists/lint_json_keys.txt", listed(keys))


def test_lint_settings(golden: Golden) -> None:
    golden("lists/lint_settings.txt", listed(sorted(lint_settings.KNOWN)))


def test_fact_keys(golden: Golden) -> None:
    golden(
        "lists/fact_keys.txt", listed(f"{key} {specs()[key].kind.value}" for key in sorted(specs()))
    )


def test_rule_codes(golden: Golden, root: Path) -> None:
    files = sorted((root / "rules").glob("*/*.yaml"), key=lambda path: path.name)

    golden("lists/rule_codes.txt", listed(path.name[:7] for path in files))
