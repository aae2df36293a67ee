"""`oomdoctor data`: how long the rows of a data set are, and what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

import click

from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.options import (
    check_inputs,
    complete_fact,
    output_options,
    standard_input,
    talk_options,
)
from oomdoctor.cli.output import say, theme_for, write_result

if TYPE_CHECKING:
    from oomdoctor.data.report import DataReport


class Asked(TypedDict):
    """What the command line asks for."""

    files: tuple[str, ...]
    tokenizer: str
    config: tuple[str, ...]
    fact: tuple[str, ...]
    field: str | None
    split: str | None
    template: bool
    processes: int | None
    format: str
    output: str | None
    force: bool
    color: str
    width: int | None
    quiet: bool
    verbose: bool


class Data(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example("oomdoctor data train.jsonl --tokenizer models/llama", "lengths, padding, packing"),
        Example(
            "oomdoctor data train.jsonl --tokenizer models/llama --config train.yaml",
            "with the limit and the batch of a job",
        ),
        Example(
            "oomdoctor data saved/ --tokenizer models/llama -f html -o data.html",
            "a page to pass on",
        ),
    )


@click.command("data", cls=Data)
@click.argument("files", nargs=-1, metavar="FILE|DIR|-...", type=click.Path(allow_dash=True))
@click.option(
    "--tokenizer",
    required=True,
    metavar="DIR",
    type=click.Path(exists=True),
    help="The folder with tokenizer.json, such as the model's.",
)
@click.option(
    "--config",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="The training config: limit, rows per pass, packing; may be given again.",
)
@click.option(
    "--fact",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_fact,
    help="Something you know, such as train.seq_len=2048; outranks the config.",
)
@click.option("--field", metavar="NAME", help="The field that holds the text or the messages.")
@click.option("--split", metavar="NAME", help="Which split of a saved data set.  [default: train]")
@click.option(
    "--template/--no-template",
    default=True,
    help="Apply the tokenizer's chat template to messages.  [default: where there is one]",
)
@click.option(
    "--processes",
    metavar="N",
    type=click.IntRange(min=1),
    help="Processes that count.  [default: as many as cores]",
)
@click.option(
    "-f",
    "--format",
    type=click.Choice(["text", "json", "markdown", "html"]),
    default="text",
    show_default=True,
    help="How the answer is written.",
)
@output_options
@talk_options
def command(**values: object) -> int:
    """Count the tokens of a data set and say what they mean for memory and time.

    FILE is JSON lines, JSON, parquet, arrow or text (also compressed), DIR a folder of such files
    or what save_to_disk wrote. Chat, instruction, preference and plain layouts are recognised row
    by row. Files may be larger than memory; rows that cannot be read are listed, with their lines.
    """
    asked = cast("Asked", values)
    check_inputs(asked["files"], what="a data set")
    report = _counted(asked)
    write_result(_rendered(report, asked), path=asked["output"], force=asked["force"])
    if not asked["quiet"]:
        if report.bad_rows:
            say(f"warning: {report.bad_rows:,} rows could not be counted")
        if asked["output"] not in (None, "-"):
            say(f"written to {asked['output']}")
    return int(ExitCode.DONE)


def _counted(asked: Asked) -> DataReport:
    from oomdoctor.cli.progress import bar_for
    from oomdoctor.data.report import Reading, report_of
    from oomdoctor.facts.given import parse_given

    with bar_for(quiet=asked["quiet"]) as bar:
        return report_of(
            asked["files"],
            tokenizer=asked["tokenizer"],
            configs=asked["config"],
            given=parse_given(asked["fact"]),
            reading=Reading(
                field=asked["field"],
                split=asked["split"],
                template=asked["template"],
                processes=asked["processes"],
            ),
            stdin=standard_input(),
            progress=bar,
        )


def _rendered(report: DataReport, asked: Asked) -> str:
    if asked["format"] == "json":
        from oomdoctor.render.data_json import to_json

        return to_json(report)
    from oomdoctor.render.data_page import data_page

    page = data_page(report)
    if asked["format"] == "html":
        from oomdoctor.render.html import page_html

        return page_html(page)
    if asked["format"] == "markdown":
        from oomdoctor.render.page_markdown import page_markdown

        return page_markdown(page)
    from oomdoctor.render.page_text import page_lines
    from oomdoctor.render.text import paint

    to_file = asked["output"] not in (None, "-")
    theme = theme_for(color=asked["color"], width=asked["width"], to_file=to_file)
    return paint(page_lines(page, theme, brief=asked["quiet"]), theme)
