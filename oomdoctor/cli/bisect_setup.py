"""What a command line of `bisect` comes to: axes, what runs, where, and what a trial is."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from oomdoctor.cli.bisect_axes import axes_of, name_in_job, within_model
from oomdoctor.cli.bisect_backend import (
    ON_NO_CARD,
    VIRTUAL,
    backend_of,
    cap_of,
    card_of,
    on_virtual_cards,
    search_path,
)
from oomdoctor.cli.bisect_command import check_edits, check_start, command_given, template_of
from oomdoctor.cli.estimate_run import described_by
from oomdoctor.estimating.describe import cards_asked
from oomdoctor.lab.job_values import job_at
from oomdoctor.lab.keys import digest
from oomdoctor.lab.protocol import encode
from oomdoctor.model.trial import CommandSpec, TrialSpec
from oomdoctor.record import NamedTuple
from oomdoctor.render.bisect_words import TIMELESS
from oomdoctor.search.axes import HOST, QUADRATIC

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from oomdoctor.cli.bisect import Asked
    from oomdoctor.cli.bisect_command import CommandTemplate
    from oomdoctor.estimating.describe import Source
    from oomdoctor.lab.guard import Allowed
    from oomdoctor.model.job import CardSpec, Job
    from oomdoctor.model.trial import Value
    from oomdoctor.search.axes import Axis
    from oomdoctor.search.rounds import Ask

SPEED = "tokens-per-second"
_NOT_OF_THE_PLAN = ("notes", "source")


class Setup(NamedTuple):
    """A run before it begins. `outer` is there where a frontier is wanted.

    `job` is what runs, or (beside a `template`) what the estimate is made of; it was read from
    `source`, which may be standard input and is read but once. `cards` is how many virtual cards a
    command gets.
    """

    backend: str
    inner: Axis
    outer: Axis | None
    job: Job | None
    template: CommandTemplate | None
    card: CardSpec | None
    cap_bytes: int | None
    steps: int
    evaluates: bool
    saves: bool
    cards: int = 1
    notes: tuple[str, ...] = ()
    source: Source | None = None

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Return the axes, the outer one first."""
        return (self.inner,) if self.outer is None else (self.outer, self.inner)

    @property
    def on_host(self) -> bool:
        """Say whether the memory of the host decides."""
        return self.inner.memory == HOST

    def card_words(self, allowed: Allowed) -> str | None:
        """Return the cards of a run as its report names them."""
        if allowed.names or self.card is None:
            return ", ".join(allowed.names) or None
        return self.card.name if self.cards == 1 else f"{self.cards} x {self.card.name}"

    def plan_digest(self, **more: object) -> str:
        """Return what two runs have in common when one may go on with the other's journal."""
        plain = self._asdict()
        shown = {
            name: _plain(value) for name, value in plain.items() if name not in ("notes", "source")
        }
        return digest({**shown, **more})

    def spec_of(self, allowed: Allowed) -> Callable[[Ask], TrialSpec]:
        """Return what turns the values that a search asks for into a trial."""
        cap = None if self.on_host else allowed.cap_bytes
        if self.backend == "simulate" and self.card is not None and cap is not None:
            cap = min(cap, self.card.total_bytes)
        host_cap = None if self.backend in ON_NO_CARD else allowed.host_cap_bytes
        if self.on_host and self.cap_bytes is not None:
            host_cap = min(self.cap_bytes, host_cap or self.cap_bytes)

        def spec_of(ask: Ask) -> TrialSpec:
            return TrialSpec(
                values=ask.values,
                job=self.job_at(ask.values) if self.template is None else None,
                command=self.command_at(ask.values),
                card=self.card if self.backend in ("simulate", VIRTUAL) else None,
                steps=self.steps,
                evaluates=self.evaluates,
                saves=self.saves,
                cap_bytes=cap,
                host_cap_bytes=host_cap,
                repeat=ask.repeat,
            )

        return spec_of

    def job_at(self, values: Mapping[str, Value]) -> Job | None:
        """Return the job at the values of a trial."""
        if self.job is None:
            return None
        return job_at(self.job, {name_in_job(name): value for name, value in values.items()})

    def command_at(self, values: Mapping[str, Value]) -> CommandSpec | None:
        """Return the command at the values of a trial."""
        return None if self.template is None else self.template.at(values)


def setup_of(values: Mapping[str, object], *, stdin: BinaryIO | None) -> Setup:
    """Return what a command line comes to; UsageError says what it lacks."""
    words = command_given()
    values, count = on_virtual_cards(values, has_command=bool(words))
    asked = cast("Asked", values)
    if not asked["axis"] and not asked["git_bisect"]:
        raise click.UsageError("no axis: give --axis batch, or --axis NAME=LOW..HIGH")
    axes = axes_of(asked["axis"])
    source = _source(values, needed=not words, stdin=stdin)
    job, cards = _described(source, asked, needed=not words)
    template = template_of(words, asked["edit"], [one.name for one in axes]) if words else None
    added: tuple[str, ...] = ()
    if template is None:
        if asked["edit"]:
            raise click.UsageError("--edit changes what a command reads, and there is no command")
        texts = dict(zip([one.name for one in axes], asked["axis"], strict=True))
        axes = tuple(
            one if job is None else within_model(one, job, texts[one.name]) for one in axes
        )
        for one in axes:
            name_in_job(one.name)
    else:
        added = check_edits(template, {one.name: one.value(0) for one in axes})
    backend, notes = backend_of(asked, has_command=bool(words))
    if asked["objective"] == SPEED and backend in TIMELESS:
        raise click.UsageError(
            f"--objective {SPEED} needs trials that take their time: --backend cuda or cpu"
        )
    if words and asked["executor"] != "ray" and not asked["git_bisect"]:
        check_start(words[0], search_path(asked["backend"], asked["python"]))
    cap = cap_of(asked["cap"])
    inner, outer = _roles(axes)
    return Setup(
        backend=backend,
        inner=inner,
        outer=outer,
        job=job,
        template=template,
        card=card_of(backend, cards, cap),
        cap_bytes=cap,
        steps=asked["steps"],
        evaluates=asked["evaluates"],
        saves=asked["saves"],
        cards=count,
        notes=(*notes, *added),
    )


def _source(values: Mapping[str, object], *, needed: bool, stdin: BinaryIO | None) -> Source | None:
    """Return where the job comes from; a command may go without one."""
    asked = cast("Asked", values)
    if not needed and not (asked["configs"] or asked["model"] or asked["fact"]):
        return None
    return described_by(values, stdin=stdin)


def _described(
    source: Source | None, asked: Asked, *, needed: bool
) -> tuple[Job | None, tuple[CardSpec, ...]]:
    """Return the job and the cards that are named."""
    if source is None:
        from oomdoctor.estimating.cards import cards_of

        return None, cards_of(asked["gpu"])
    described = source.described()
    if described.serving is not None and needed:
        raise click.UsageError(
            "trials of a server need its command: oomdoctor bisect --axis"
            " gpu_memory_utilization -- vllm serve MODEL --gpu-memory-utilization"
            " {gpu_memory_utilization}"
        )
    return described.job, cards_asked(asked["gpu"], described.book)


def _roles(axes: tuple[Axis, ...]) -> tuple[Axis, Axis | None]:
    """Return the axis whose edge is looked for and the one whose values are its rows.

    Of batch and length the length has the rows; else the one that was named last.
    """
    if not axes:
        from oomdoctor.search.axes import Axis

        return Axis(name="run", low=1, high=1), None
    if len(axes) == 1:
        return axes[0], None
    first, second = axes
    if first.growth == QUADRATIC and second.growth != QUADRATIC:
        return second, first
    return first, second


def _plain(value: object) -> object:
    if hasattr(value, "_field_names"):
        return encode(value)
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value
