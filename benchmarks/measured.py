"""Records of memory that others measured, out of `fixtures/measured`, as jobs and twins.

A record says what was measured (allocated, reserved, or only whether it fitted), the bytes and how
they were printed, the card, and the job. A *twin* is a function under `benchmarks/twins` that runs
the code of the source where that is no library's: it is traced in place of the job.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from oomdoctor.facts import model_configs
from oomdoctor.lab.protocol import decode, encode
from oomdoctor.model.job import Job, ModelSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "measured"
ASIDE = "set_aside.yaml"
ALLOCATED, RESERVED, OUTCOME = "allocated", "reserved", "outcome"
QUANTITIES = (ALLOCATED, RESERVED, OUTCOME)
POINTS = ("peak", "after-load", "after-step")
OUTCOMES = ("fits", "oom", "max")


@dataclass(frozen=True, kw_only=True)
class Twin:
    """What is traced in place of the job: module and function, and how often it steps.

    `empties` says that the cache is emptied before the last step.
    """

    entry: str
    arguments: Mapping[str, Any]
    steps: int
    empties: bool = False


@dataclass(frozen=True, kw_only=True)
class Record:
    """One figure that somebody else measured; `value` is in bytes, None for a mere outcome.

    `rounding` is half of the last digit that was printed. `why` says why a record is not
    comparable: its quantity or its versions are not those that an engine predicts. `formula` says
    why the job is not what the formula describes, although its twin can be traced.
    """

    id: str
    record: str
    source: str
    quality: str
    quantity: str
    card: str
    comparable: bool
    value: int | None = None
    printed: str | None = None
    rounding: int = 0
    point: str = "peak"
    outcome: str | None = None
    why: str | None = None
    formula: str | None = None
    note: str | None = None
    job: Job | None = None
    twin: Twin | None = None


def records() -> tuple[Record, ...]:
    """Return all records, file by file."""
    return tuple(one for path in files() for one in read(path))


def files() -> tuple[Path, ...]:
    """Return the files that hold records."""
    return tuple(sorted(path for path in FOLDER.glob("*.yaml") if path.name != ASIDE))


def aside() -> Mapping[str, str]:
    """Return the fully described records that are no jobs here, each with its reason."""
    data = yaml.safe_load((FOLDER / ASIDE).read_text())
    return {name: group["why"] for group in data["aside"] for name in group["records"]}


def read(path: Path) -> Iterator[Record]:
    """Yield the records of one file."""
    data = yaml.safe_load(path.read_text())
    source = data["source"]
    for row in data["records"]:
        given = {**row, "value": row.get("bytes"), "rounding": row.get("rounding_bytes", 0)}
        job, twin = row.get("job"), row.get("twin")
        fields = {name: given[name] for name in Record.__dataclass_fields__ if name in given}
        yield Record(
            **{
                **fields,
                "source": source["name"],
                "job": None if job is None else _job(job, source),
                "twin": None if twin is None else _twin(twin, source),
            }
        )


def _job(data: Mapping[str, Any], source: Mapping[str, Any]) -> Job:
    length = data.get("seq_len") or source["lengths"]["longest"]
    model = encode(_model(data["model"], source.get("models", {})))
    return decode(Job, {**data, "model": model, "seq_len": length})


def _model(name: str, given: Mapping[str, Mapping[str, object]]) -> ModelSpec:
    """Return the model that a file describes itself, or one of the table."""
    if name in given:
        config = given[name]
        named = config.get("architectures")
        first = str(named[0]) if isinstance(named, list) else None
        return ModelSpec(name=name, config=config, source="measured", architecture=first)
    known = model_configs.lookup(name)
    if known is None:
        raise KeyError(f"{name} is neither in the file nor in the table of models")
    return ModelSpec(
        name=known.name,
        config=known.config,
        source="table of models",
        architecture=known.architecture,
        params=known.params,
    )


def _twin(data: Mapping[str, Any], source: Mapping[str, Any]) -> Twin:
    arguments = dict(data["arguments"])
    lengths = source.get("lengths", {})
    longest = arguments.get("lengths") == "longest"
    if longest:
        arguments["lengths"] = [lengths["short"], lengths["longest"]]
    elif arguments.get("lengths") == "mean":
        arguments["lengths"] = [lengths["mean"], lengths["mean"]]
    return Twin(entry=data["entry"], arguments=arguments, steps=data["steps"], empties=longest)
