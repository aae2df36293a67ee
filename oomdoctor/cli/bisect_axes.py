"""Axes as they are typed: `batch`, `batch=1..512`, `seq=512..32768:256`, `batch=8`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from oomdoctor.record import replace
from oomdoctor.search.axes import Axis, axis_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.model.job import Job

MOST_AXES = 2
EXAMPLES = "batch, batch=1..512, seq=512..32768:256, batch=8"
_NUMBER = r"\d[\d_]*(?:\.\d+)?"
_AXIS = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_-]*)"
    rf"(?:=(?P<low>{_NUMBER})(?:\.\.(?P<high>{_NUMBER})(?::(?P<step>{_NUMBER}))?)?)?\Z"
)
# how the axes of a job are called there, by each name that a person may give them
OF_A_JOB = {
    "batch": "batch",
    "seq": "seq",
    "lora_rank": "lora_rank",
    "lora_r": "lora_rank",
    "rank": "lora_rank",
    "resolution": "resolution",
    "image_size": "resolution",
    "new_tokens": "new_tokens",
    "grad_accum": "accumulation",
    "accumulation": "accumulation",
    "eval_batch": "eval_batch",
}


def axes_of(texts: Sequence[str]) -> tuple[Axis, ...]:
    """Return the axes; UsageError for a text that is none, and for more than two."""
    found = tuple(_axis(text) for text in texts)
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise click.UsageError(f"--axis: {', '.join(names)}: each axis once")
    if len(found) > MOST_AXES:
        raise click.UsageError(f"--axis: at most {MOST_AXES} axes, not {len(found)}")
    return found


def within_model(axis: Axis, job: Job, text: str) -> Axis:
    """Return the axis of a job; without a range of its own it ends where the model does."""
    from oomdoctor.estimating.shapes import longest

    in_job = name_in_job(axis.name)
    if axis.first < 1:
        raise click.UsageError(f"--axis {text!r}: a job has a {axis.name} of 1 or more")
    if "=" in text or in_job != "seq":
        return axis
    most = min(axis.high, longest(job))
    low = min(axis.low, most)
    return replace(axis, low=low, high=most, step=min(axis.step, most)).check()


def name_in_job(name: str) -> str:
    """Return what an axis is called in a job; UsageError where a job has no such axis."""
    found = OF_A_JOB.get(name.lower().replace("-", "_"))
    if found is None:
        known = ", ".join(dict.fromkeys(OF_A_JOB))
        raise click.UsageError(
            f"--axis {name}: a job has no such axis (it has {known}); any other one needs a"
            " command: oomdoctor bisect --axis workers=0..16 -- python train.py --workers {workers}"
        )
    return found


def _axis(text: str) -> Axis:
    found = _AXIS.match(text.strip())
    if found is None:
        raise click.UsageError(f"--axis {text!r}: expected NAME[=LOW..HIGH[:STEP]], as {EXAMPLES}")
    low = _number(found["low"])
    high = low if found["high"] is None else _number(found["high"])
    step = _number(found["step"])
    if low is not None and high is not None and low > high:
        raise click.UsageError(f"--axis {text!r}: the range begins above its end")
    name = found["name"]
    if found["high"] is None and low is not None:  # one value: whatever it is, it is on the grid
        return replace(axis_named(name.replace("-", "_"), low, low, low or 1), name=name)
    return replace(axis_named(name.replace("-", "_"), low, high, step), name=name)


def _number(text: str | None) -> int | float | None:
    if text is None:
        return None
    plain = text.replace("_", "")
    return float(plain) if "." in plain else int(plain)
