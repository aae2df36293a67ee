"""One run of `estimate`: flags to facts, facts to a job, the job to an estimate."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from oomdoctor.cli.options import check_inputs
from oomdoctor.cli.steps import steps_for
from oomdoctor.estimating.choice import Engines, engines
from oomdoctor.estimating.describe import (
    Described,
    Source,
    cards_asked,
    settings_of,
    source_of,
)
from oomdoctor.estimating.engine import NotSimulatedError
from oomdoctor.estimating.estimate import Wanted, compared, estimate
from oomdoctor.estimating.flags import (
    FLAGS,
    METHOD,
    check_together,
    facts_of,
    without_implied,
)
from oomdoctor.facts.given import parse_given
from oomdoctor.model.estimate import SIMULATE, VIRTUAL
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from oomdoctor.cli.estimate import Asked
    from oomdoctor.model.estimate import Estimate, Variant


def estimated(values: Mapping[str, object], *, stdin: BinaryIO | None) -> Estimate:
    """Return the estimate that a command line asks for."""
    asked = cast("Asked", values)
    with (
        steps_for(quiet=asked["quiet"]) as say,
        engines(asked["engine"], say=say, python=asked["python"]) as chosen,
    ):
        source = described_by(values, stdin=stdin)
        own = source.described()
        wanted = _wanted(asked, own)
        confs = wanted.alloc_confs
        chosen.settings = confs[0] if confs else settings_of(own.book)
        others = {text: source.described(text) for text in asked["what_if"]}
        if own.serving is not None:
            from oomdoctor.estimating.serving import FALLBACK, served

            if asked["engine"] in (SIMULATE, VIRTUAL):
                raise NotSimulatedError(FALLBACK, engine=str(asked["engine"]))
            return served(own, others, wanted, simulated=chosen.name == SIMULATE)
        made = _estimated(own, wanted, chosen)
        variants = _variants(others, wanted, chosen)
    return replace(made, variants=variants)


def _wanted(asked: Asked, own: Described) -> Wanted:
    return Wanted(
        cards=cards_asked(asked["gpu"], own.book),
        alloc_confs=asked["alloc_conf"],
        with_table=asked["table"] or asked["format"] == "html",
        with_limits=asked["limits"],
        batches=_numbers("--batches", asked["batches"]),
        lengths=_numbers("--lengths", asked["lengths"]),
    )


def described_by(values: Mapping[str, object], *, stdin: BinaryIO | None) -> Source:
    """Return where the jobs of a command line come from."""
    asked = cast("Asked", values)
    flags = {name: values.get(name.replace("-", "_")) for name in (METHOD, *FLAGS)}
    check_together(flags)
    paths = list(asked["configs"])
    model = asked["model"]
    file = None if model is None else _model_file(model)
    if file is not None:
        paths.insert(0, file)
        flags["model"] = None
    check_inputs(paths, needed=False)
    if not paths and model is None and not asked["fact"]:
        raise click.UsageError("no job: give a config, --model NAME or config.json, or both")
    stated = parse_given(asked["fact"])
    given = (*without_implied(facts_of(flags), stated), *stated)
    used = tuple(name for name, value in flags.items() if value is not None)
    source = source_of(paths, given=given, flags=used, stdin=stdin)
    if file is not None and not _tells_model(source, file):
        raise click.UsageError(
            f"--model {file}: this is no config.json of a model (it names no model_type, or no"
            " layers); give a training config without --model"
        )
    return source


def _tells_model(source: Source, file: str) -> bool:
    """Say whether a file that --model names says anything of a model."""
    return any(
        fact.key.startswith("model.")
        for reading in source.configs.readings
        if reading.source_id == file
        for fact in reading.facts
    )


def _model_file(model: str) -> str | None:
    """Return the config.json that --model names, None where it is a name from the hub."""
    path = Path(model)
    if path.suffix.lower() == ".gguf":
        return None  # its name says what it holds
    try:
        if path.is_dir():
            path /= "config.json"
        if path.is_file():
            return str(path)
    except OSError as error:  # a name that no file can have, or a folder that is closed to us
        reason = error.strerror or "it cannot be looked at"
        raise click.UsageError(f"--model {model[:80]!r}: {reason.lower()}") from error
    if path.suffix == ".json" or model.startswith((".", "/", "~")):
        raise click.UsageError(f"--model {model!r}: there is no such file")
    return None


def _estimated(own: Described, wanted: Wanted, chosen: Engines) -> Estimate:
    card = wanted.cards[0] if wanted.cards else None
    made = chosen.speak(
        card,
        lambda engine: estimate(
            own.job, engine, wanted, assumptions=own.assumptions, say=chosen.say
        ),
    )
    return replace(made, fallback=chosen.fallback)


def _variants(
    others: Mapping[str, Described], wanted: Wanted, chosen: Engines
) -> tuple[Variant, ...]:
    """Return the same job with something changed, one for each --what-if."""
    card = wanted.cards[0] if wanted.cards else None
    found = []
    for text, other in others.items():
        chosen.say(f"what if {text}")
        compare = partial(compared, text, other.job, wanted=wanted)
        found.append(chosen.speak(card, compare))
    return tuple(found)


def _numbers(option: str, text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    words = [word.strip().replace("_", "") for word in text.split(",") if word.strip()]
    if not words or not all(word.isdecimal() and 0 < int(word) < 10**8 for word in words):
        raise click.UsageError(f"{option} takes whole numbers with commas, such as 1,2,4")
    return tuple(sorted({int(word) for word in words}))
