"""One lint run of the command line: settings and options together, report, fixes, pages."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from oomdoctor.cli.output import theme_for, write_result
from oomdoctor.errors import UsageError
from oomdoctor.linting import baseline as known_findings
from oomdoctor.linting.codes import split
from oomdoctor.linting.files import LintFile, paths_in, read_file
from oomdoctor.linting.naming import check_rules
from oomdoctor.linting.places import project_root
from oomdoctor.linting.policy import Policy, applied
from oomdoctor.linting.run import Wanted, is_used, lint_files, lint_rules, rule_names
from oomdoctor.linting.suppressions import speaks
from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import BinaryIO

    from oomdoctor.cli.lint import Asked
    from oomdoctor.linting.fixing import Fixed
    from oomdoctor.model.core import Fact
    from oomdoctor.model.lint import LintReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What is asked for, with the project's settings in the place of what was not said."""

    asked: Asked
    wanted: Wanted
    fail_on: str
    baseline: str | None
    settings_root: str | None
    per_file_ignores: Mapping[str, tuple[str, ...]]
    stdin: BinaryIO | None = None

    @classmethod
    def of(cls, asked: Asked, *, stdin: BinaryIO | None) -> Session:
        """Join the command line and the nearest settings; the command line wins."""
        from oomdoctor.cli.lint_settings import lint_settings
        from oomdoctor.cli.settings import rule_directories

        held = lint_settings()
        versions = asked["versions"] or tuple(f"{k}=={v}" for k, v in held.versions.items())
        wanted = Wanted(
            together=asked["job"],
            gpu=held.gpu if asked["gpu"] is None else asked["gpu"],
            gpus=asked["gpus"],
            versions=versions,
            facts=asked["fact"],
            extra=_measured(asked),
            rules=(*rule_directories(), *asked["rules"]),
            preview=asked["preview"],
            select=_names("--select", asked["select"]) or held.select,
            ignore=(*_names("--ignore", asked["ignore"]), *held.ignore),
        )
        if held.per_file_ignores:
            listed = (name for names in held.per_file_ignores.values() for name in names)
            check_rules(listed, rule_names(wanted), where="per-file-ignores")
        return cls(
            asked=asked,
            wanted=wanted,
            fail_on=asked["fail_on"] or held.fail_on or "error",
            baseline=asked["baseline"] or held.baseline,
            settings_root=held.folder,
            per_file_ignores=held.per_file_ignores,
            stdin=stdin,
        )

    def files(self) -> list[LintFile]:
        """Read all files that are meant."""
        return [read_file(path, stdin=self.stdin) for path in self.watched()]

    def watched(self) -> tuple[str, ...]:
        """Return the paths of all files that are meant, as they are now."""
        return paths_in(self.asked["files"])

    def report(self) -> LintReport:
        """Lint, and set aside what the project holds back."""
        files = self.files()
        return self._decided(lint_files(files, self.wanted), files)

    def fixed(self, *, unsafe: bool) -> Fixed:
        """Fix in memory what may be fixed."""
        from oomdoctor.linting.fixing import SAFE, UNSAFE, fixed

        files = self.files()
        allowed = UNSAFE if unsafe else SAFE
        return fixed(files, self.wanted, allowed=allowed, decided=self._decided)

    def _decided(self, report: LintReport, files: Sequence[LintFile]) -> LintReport:
        held = self.baseline
        # the settings may name the file that is about to be written
        is_new = held and self.asked["write_baseline"] and not known_findings.is_there(held)
        known = known_findings.read(held) if held and not is_new else None
        texts = {file.path: file.text for file in files}
        names = rule_names(self.wanted) if any(map(speaks, texts.values())) else {}
        policy = Policy(
            root=project_root(),
            settings_root=self.settings_root,
            per_file_ignores=self.per_file_ignores,
            baseline=known,
            names=names,
            is_used=lambda code: is_used(self.wanted, names, code),
        )
        return applied(report, policy, texts=texts)

    def write_baseline(self, report: LintReport) -> None:
        """Write the findings that stand as known ones."""
        path = self.asked["write_baseline"] or ""
        known_findings.check_target(path)
        write_result(known_findings.text_of(report, root=project_root()), path=path, force=True)

    def rendered(self, report: LintReport) -> str:
        """Write the report in the format that was asked for."""
        from oomdoctor.render.lint.formats import default_format, rendered
        from oomdoctor.render.lint.view import LintView

        asked = self.asked
        style = asked["format"] or default_format(os.environ)
        theme = theme_for(
            color=asked["color"],
            width=asked["width"],
            to_file=asked["output"] not in (None, "-"),
        )
        view = LintView(
            verbosity=int(asked["verbose"]) - int(asked["quiet"]), explain=asked["explain"]
        )
        rules = lint_rules(self.wanted) if style == "sarif" else ()
        root = project_root()
        return rendered(report, style, root=root, theme=theme, view=view, rules=rules)


def _names(option: str, values: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name for value in values for name in split(value))
    if values and not names:
        raise UsageError(f"{option} names no rule", hint="give a code, the start of one, or a name")
    return names


def _measured(asked: Asked) -> tuple[Fact, ...]:
    """Measure the data sets that were given."""
    if not asked["data"]:
        return ()
    from oomdoctor.cli.progress import bar_for
    from oomdoctor.data.facts import facts_of
    from oomdoctor.data.report import report_of
    from oomdoctor.facts.given import parse_given

    if asked["tokenizer"] is None:
        raise UsageError("--data needs --tokenizer", hint="name the folder with tokenizer.json")
    configs = tuple(path for path in paths_in(asked["files"]) if path != "-")
    given = parse_given(asked["fact"])
    with bar_for(quiet=asked["quiet"]) as bar:
        report = report_of(
            asked["data"],
            tokenizer=asked["tokenizer"],
            configs=configs,
            given=given,
            progress=bar,
        )
    return facts_of(report)
