"""`oomdoctor collect`: one redacted bundle of logs, configs and their diagnosis, for sharing."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

import click

from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.options import (
    check_inputs,
    input_options,
    is_run,
    rules_option,
    standard_input,
)
from oomdoctor.cli.output import say, write_result

if TYPE_CHECKING:
    from oomdoctor.model.plan import Diagnosis
    from oomdoctor.sharing.bundle import Bundle
    from oomdoctor.sharing.inputs import Inputs


class Asked(TypedDict):
    """What the command line asks for."""

    files: tuple[str, ...]
    config: tuple[str, ...]
    fact: tuple[str, ...]
    rules: tuple[str, ...]
    output: str | None
    format: str | None
    force: bool
    show: bool


class Collect(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example("oomdoctor collect crash.log --config train.yaml", "a bundle to attach"),
        Example("oomdoctor collect logs/ --show", "what would be replaced"),
        Example("oomdoctor collect logs/ -o for-support", "a folder instead of an archive"),
    )


@click.command("collect", cls=Collect)
@input_options
@rules_option
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="Where to write it.  [default: oomdoctor-<date>.zip]",
)
@click.option(
    "-f",
    "--format",
    type=click.Choice(["zip", "folder"]),
    help="An archive or a folder.  [default: what --output ends in]",
)
@click.option("--force", is_flag=True, help="Replace a bundle that exists.")
@click.option("--show", is_flag=True, help="Write nothing; show what would be replaced, masked.")
def command(**values: object) -> int:
    """Put inputs and diagnosis into a bundle without names, addresses and secrets.

    Users, hosts, addresses, keys, accounts and buckets become placeholders such as USER1, the same
    ones in all files. Figures, versions and public model names stay. DIR stands for the text files
    below it. Nothing leaves this machine: sending the bundle is up to you.
    """
    asked = cast("Asked", values)
    check_inputs([*asked["files"], *asked["config"]])
    if asked["output"] == "-":
        raise click.UsageError("a bundle is a file or a folder: give it a name")
    inputs, bundle = _collected(asked)
    try:
        if asked["show"]:
            _show(bundle)
        else:
            _write(bundle, asked)
    finally:
        inputs.close()
    return int(ExitCode.DONE)


def _collected(asked: Asked) -> tuple[Inputs, Bundle]:
    """Return the inputs with what is made of them; of a recorded run, what it holds as well."""
    from oomdoctor.cli.settings import rule_directories
    from oomdoctor.sharing.bundle import Bundle
    from oomdoctor.sharing.inputs import Inputs

    rules = (*rule_directories(), *asked["rules"])
    files, configs = list(asked["files"]), list(asked["config"])
    diagnose = None
    if any(map(is_run, files)):
        from oomdoctor.cli.diagnose_bundle import shared_files, taken_apart
        from oomdoctor.cli.run_end import examined_run
        from oomdoctor.recorder.diagnosing import Wishes

        folder, others = taken_apart(files)
        wishes = Wishes(
            inputs=others, configs=asked["config"], facts=asked["fact"], rules=asked["rules"]
        )
        texts, copies = shared_files(folder)
        files, configs = [*texts, *others], [*copies, *configs]

        def diagnose() -> Diagnosis:
            return examined_run(folder, wishes).diagnosis

    inputs = Inputs(files, config=configs, stdin=standard_input())
    try:
        return inputs, Bundle(inputs, facts=asked["fact"], rules=rules, diagnose=diagnose)
    except BaseException:
        inputs.close()
        raise


def _show(made: Bundle) -> None:
    from oomdoctor.sharing.preview import preview

    for _ in made.files():
        pass
    write_result(preview(made.redactor, left_out=made.inputs.left_out))


def _write(made: Bundle, asked: Asked) -> None:
    from oomdoctor.sharing.writer import write_bundle

    path = _path(asked["output"], asked["format"])
    write_bundle(made.files(), path, force=asked["force"])
    for note in made.inputs.left_out:
        say(f"warning: left out: {note}")
    places = sum(made.redactor.counts.values())
    say(f"{places} places replaced; look through it before you send it (--show lists the kinds)")
    write_result(f"{path}\n")


def _path(output: str | None, style: str | None) -> str:
    if output is None:
        from datetime import datetime, timezone

        day = datetime.now(timezone.utc).strftime("%Y-%m-%d")
        output = f"oomdoctor-{day}" + ("" if style == "folder" else ".zip")
    is_archive = output.lower().endswith(".zip")
    if style == "zip" and not is_archive:
        return f"{output}.zip"
    if style == "folder" and is_archive:
        raise click.UsageError("a folder cannot end in .zip: give another --output")
    return output
