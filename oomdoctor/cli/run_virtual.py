"""The options by which `oomdoctor run` puts a command on cards that are not there."""

from __future__ import annotations

import json
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar

import click

from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from oomdoctor.recorder.recording import Ended, Settings
    from oomdoctor.virtual.session import Session

F = TypeVar("F", bound="Callable[..., object]")
REPORT = "virtual.json"
_ONLY_WITH = "--virtual-gpu"


def bytes_of(ctx: click.Context | None, param: click.Parameter, value: str | None) -> int | None:
    """Return a size such as 3GiB in bytes."""
    if value is None:
        return None
    from oomdoctor.units import parse_size

    size = parse_size(value)
    if size is None:
        raise click.BadParameter(
            f"{value!r} is no size: expected such as 3GiB", ctx=ctx, param=param
        )
    if size.bytes < 0:
        raise click.BadParameter(f"{value!r} is less than nothing", ctx=ctx, param=param)
    return round(size.bytes)


class AskedVirtual(TypedDict):
    """What the command line asks of a virtual run; None: nothing."""

    inject: bool
    virtual_gpu: str | None
    virtual_venv: str | None
    others: int | None
    context: int | None
    fail_alloc_at: int | None
    steps: int | None
    evaluate: bool
    save: bool
    worst_case_seq: int | None
    longest_first: bool
    unknown_rows: float | None
    seed: int | None


_COUNT = click.IntRange(min=1)
_OPTIONS = (
    click.option(
        "--virtual-gpu",
        metavar="NAMES",
        help="Run on cards that are not there: 'RTX 4090', 'L4 x2', 'A100, H100 MIG 2g.20gb'. "
        "PyTorch's CUDA build and its allocator are real, nothing is computed.",
    ),
    click.option(
        "--virtual-venv",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="The virtual environment with PyTorch's CUDA build.  [default: the command's own]",
    ),
    click.option(
        "--others", metavar="SIZE", callback=bytes_of, help="What others hold of each card."
    ),
    click.option(
        "--context",
        metavar="SIZE",
        callback=bytes_of,
        help="What the CUDA context of a process takes.  [default: 0.45GiB]",
    ),
    click.option(
        "--fail-alloc-at",
        metavar="N",
        type=_COUNT,
        help="From its Nth allocation on, the driver gives a process nothing more.",
    ),
    click.option("--steps", metavar="N", type=_COUNT, help="End after so many optimizer steps."),
    click.option("--eval", "evaluate", is_flag=True, help="Evaluate once after the last step."),
    click.option("--save", is_flag=True, help="Save once after the last step."),
    click.option(
        "--worst-case-seq", metavar="N", type=_COUNT, help="Stretch every batch to N tokens."
    ),
    click.option(
        "--longest-first", is_flag=True, help="Let the longest examples be the first batch."
    ),
    click.option(
        "--unknown-rows",
        metavar="SHARE",
        type=click.FloatRange(0, 1),
        help="How much of a mask that only a GPU could compute is true.  [default: 1]",
    ),
    click.option("--seed", metavar="N", type=int, help="Shuffles the experts of a mixture."),
)


def virtual_options(function: F) -> F:
    """Add the options."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def virtual_session(
    asked: AskedVirtual, command: tuple[str, ...]
) -> AbstractContextManager[Session | None]:
    """Return the run's virtual cards; nothing where none are asked for."""
    names = asked["virtual_gpu"]
    if names is None:
        _refuse_without(asked)
        return nullcontext()
    if not asked["inject"] and (said := _given(asked, _INSIDE)):
        raise click.UsageError(f"{', '.join(said)}: not with --no-inject, it is done inside")
    from oomdoctor.virtual.card import cards_named
    from oomdoctor.virtual.session import Session, Wanted

    venv = asked["virtual_venv"]
    wanted = Wanted(
        cards=cards_named(names),
        venv=Path(venv) if venv is not None else None,
        others_bytes=asked["others"] or 0,
        context_bytes=asked["context"],
        fail_at=asked["fail_alloc_at"],
        steps=asked["steps"],
        evaluates=asked["evaluate"],
        saves=asked["save"],
        tokens=asked["worst_case_seq"],
        longest_first=asked["longest_first"],
        rows=asked["unknown_rows"],
        seed=asked["seed"],
    )
    return Session(wanted, command)


def _refuse_without(asked: Mapping[str, object]) -> None:
    given = _given(asked, _WORDS)
    if given:
        raise click.UsageError(f"{', '.join(given)}: only with {_ONLY_WITH} NAMES")


def _given(asked: Mapping[str, object], words: Mapping[str, str]) -> list[str]:
    """Return those of some options that were given."""
    return [
        said for key, said in words.items() if asked[key] is not None and asked[key] is not False
    ]


_WORDS = {
    "virtual_venv": "--virtual-venv",
    "others": "--others",
    "context": "--context",
    "fail_alloc_at": "--fail-alloc-at",
    "steps": "--steps",
    "evaluate": "--eval",
    "save": "--save",
    "worst_case_seq": "--worst-case-seq",
    "longest_first": "--longest-first",
    "unknown_rows": "--unknown-rows",
    "seed": "--seed",
}


_INSIDE = {key: _WORDS[key] for key in ("steps", "worst_case_seq", "longest_first")}


def on_cards_of(session: Session | None, settings: Settings) -> Settings:
    """Return settings by which a run is recorded on the virtual cards."""
    if session is None:
        return settings
    from oomdoctor.virtual.devices import devices

    return replace(
        settings,
        environment={**settings.environment, **session.environment},
        virtual=session.words,
        look=partial(devices, session.cards, session.usage),
    )


def tell_virtual(session: Session | None, ended: Ended, *, quiet: bool) -> None:
    """Keep what the run took for granted in its bundle, and say it."""
    if session is None:
        return
    from oomdoctor.cli.output import say

    report = session.report()
    with suppress(OSError):
        text = json.dumps(report.as_data(), indent=1)
        (ended.folder / REPORT).write_text(f"{text}\n", encoding="utf-8")
    if not quiet:
        say(f"oomdoctor: on virtual cards ({session.words}):")
        for sentence in report.sentences():
            say(f"  - {sentence}")
