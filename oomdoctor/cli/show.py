"""`oomdoctor show`: the runs that were recorded, one of them opened again, old ones deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

import click

from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.options import SHARED, output_options, talk_options
from oomdoctor.cli.output import hand_over, say, theme_for
from oomdoctor.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from oomdoctor.recorder.diagnosing import Examined
    from oomdoctor.recorder.listing import Listed
    from oomdoctor.render.redact import Names


class Asked(TypedDict):
    """What the command line asks for."""

    name: str | None
    folder: str | None
    format: str
    delete: bool
    keep: int | None
    output: str | None
    force: bool
    color: str
    width: int | None
    quiet: bool
    verbose: bool


class Show(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example("oomdoctor show", "all runs, the newest first"),
        Example("oomdoctor show last", "what came of the last one, and why"),
        Example("oomdoctor show last -f html -o report.html", "as a page to pass on"),
        Example("oomdoctor show --keep 10", "delete all but the ten newest"),
    )


@click.command("show", cls=Show)
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(min=0),
    help="Delete all runs but the N newest.",
)
@click.option("--delete", is_flag=True, help="Delete the bundle of RUN.")
@click.option(
    "-f",
    "--format",
    type=click.Choice(["text", "json", "markdown", "html"]),
    default="text",
    show_default=True,
    help="How it is written.",
)
@click.option(
    "--folder",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Where bundles are kept.  [default: $OOMDOCTOR_RUNS, else .oomdoctor/runs]",
)
@output_options
@talk_options
@click.argument("name", metavar="[RUN]", required=False)
def command(**values: object) -> int:
    """List the runs that `oomdoctor run` recorded, or open one of them.

    RUN is `last`, a run's id or a part of it, or the path of a bundle. A run that goes on is shown
    as far as it is known; one whose recorder was killed, too.
    """
    asked = cast("Asked", values)
    from oomdoctor.recorder.places import bundle_named, runs_folder

    runs = runs_folder(asked["folder"])
    if asked["keep"] is not None:
        if asked["name"] is not None or asked["delete"]:
            raise UsageError("--keep speaks of all runs: give it alone")
        return _keep(runs, asked["keep"], quiet=asked["quiet"])
    if asked["delete"]:
        if asked["name"] is None:
            raise UsageError("--delete needs the name of a run", hint="oomdoctor show lists them")
        return _delete([bundle_named(asked["name"], runs)], quiet=asked["quiet"])
    text = _list(runs, asked) if asked["name"] is None else _one(runs, asked["name"], asked)
    hand_over(text, path=asked["output"], force=asked["force"], quiet=asked["quiet"])
    return int(ExitCode.DONE)


def _keep(runs: Path, count: int, *, quiet: bool) -> int:
    from oomdoctor.recorder.listing import is_recorded
    from oomdoctor.recorder.places import bundles

    old = bundles(runs)[count:]
    return _delete([one for one in old if not is_recorded(one)], quiet=quiet)


def _delete(folders: list[Path], *, quiet: bool) -> int:
    from oomdoctor.recorder.listing import delete
    from oomdoctor.units import format_size

    freed = delete(folders)
    if not quiet:
        runs = "1 run" if len(folders) == 1 else f"{len(folders)} runs"
        say(f"deleted {runs}: {format_size(freed)}")
    return int(ExitCode.DONE)


def _list(runs: Path, asked: Asked) -> str:
    from oomdoctor.cli.pages import written
    from oomdoctor.recorder.listing import listed
    from oomdoctor.render.run_json import list_json
    from oomdoctor.render.run_list import list_page

    found: list[Listed] = listed(runs)
    if asked["format"] == "json":
        return list_json(found)
    page = list_page(found, runs)
    if asked["format"] in SHARED:
        from oomdoctor.render.redact import Names

        page = Names().out_of_page(page)
    return written(page, asked)


def _one(runs: Path, name: str, asked: Asked) -> str:
    from oomdoctor.cli.run_end import examined_run
    from oomdoctor.recorder.places import bundle_named

    folder = bundle_named(name, runs)
    if asked["format"] not in SHARED:
        return _written(examined_run(folder), asked)
    from oomdoctor.render.redact import Names

    names = Names()
    with names.learned():
        examined = examined_run(folder)
    return _written(examined, asked, names)


def _written(examined: Examined, asked: Asked, names: Names | None = None) -> str:
    from oomdoctor.cli import run_end
    from oomdoctor.cli.pages import written
    from oomdoctor.render.run_page import run_page

    if asked["format"] == "json":
        from oomdoctor.render.run_json import run_json

        return run_json(examined)
    told = run_end.whole_page(examined) if asked["format"] == "html" else run_page(examined)
    page = written(told if names is None else names.out_of_page(told), asked)
    if asked["format"] == "html":
        return page
    if asked["quiet"] or not run_end.says_something(examined):
        return page
    if asked["format"] == "markdown":
        from oomdoctor.render.markdown import to_markdown

        known = examined.diagnosis
        return f"{page}\n{to_markdown(known if names is None else names.out_of(known))}"
    from oomdoctor.render.text import render
    from oomdoctor.render.view import View

    to_file = asked["output"] not in (None, "-")
    theme = theme_for(color=asked["color"], width=asked["width"], to_file=to_file)
    view = View(verbosity=int(asked["verbose"]))
    diagnosis = render(
        examined.diagnosis,
        width=theme.width,
        colour=theme.colour,
        unicode=theme.unicode,
        view=view,
    )
    return f"{page}\n{diagnosis}"
