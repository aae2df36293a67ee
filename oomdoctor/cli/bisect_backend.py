"""Where the trials of `bisect` and `confirm` run: the back end, its card, and the cap."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from oomdoctor.errors import ProbeError, UsageError
from oomdoctor.estimating.cards import PLAIN
from oomdoctor.estimating.engine import torch_is_there
from oomdoctor.memory.outside import COMMUNICATION, CONTEXT
from oomdoctor.probe import gpu
from oomdoctor.record import replace
from oomdoctor.units import format_size, parse_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.cli.bisect import Asked
    from oomdoctor.model.job import CardSpec

ON_NO_CARD = ("simulate", "formula")
VIRTUAL = "virtual"
WITHOUT_TORCH = ("formula", VIRTUAL)
"""Back ends that say themselves which torch they need, if any."""
TWIN = "cuda-twin"
LEAST_CAP = 1 << 20


def on_virtual_cards(
    values: Mapping[str, object], *, has_command: bool
) -> tuple[Mapping[str, object], int]:
    """Return what is asked for with one card named, and how many of it there are."""
    if values["backend"] != VIRTUAL:
        return values, 1
    from oomdoctor.cli.bisect_virtual import counted

    names, count = counted(cast("Asked", values)["gpu"], has_command=has_command)
    return {**values, "gpu": names}, count


def search_path(backend: str | None, python: str | None) -> str | None:
    """Return where a command is looked for on virtual cards: first beside the --python named."""
    if backend != VIRTUAL or python is None:
        return None
    beside = Path(python).absolute().parent
    return os.pathsep.join((str(beside), os.environ.get("PATH", os.defpath)))


def backend_of(asked: Asked, *, has_command: bool) -> tuple[str, tuple[str, ...]]:
    """Return where trials run, and why where nobody chose."""
    has_torch = asked["python"] is not None or torch_is_there()
    if asked["backend"] is not None:
        if asked["backend"] == TWIN and (has_command or asked["cap"] is None):
            raise click.UsageError(
                "--backend cuda-twin scales a job and its cap: give a job and --cap SIZE, the room"
                " that the whole job would have"
            )
        if has_command and asked["backend"] in ON_NO_CARD:
            raise click.UsageError(
                f"--backend {asked['backend']} knows jobs alone; a command runs on cuda, virtual"
                " or cpu"
            )
        if not (has_command or has_torch or asked["backend"] in WITHOUT_TORCH):
            raise _without_torch(asked["backend"])
        return asked["backend"], ()
    try:
        if gpu.devices():
            if not (has_command or has_torch):
                raise _without_torch("cuda")
            return "cuda", ()
        why = ""
    except ProbeError as error:
        why = f" ({error.message})"
    if has_command:
        raise click.UsageError(
            f"no card is seen here{why}: give --backend cpu (tensors of the CPU, counted) or"
            " --backend virtual --gpu NAME (no device, PyTorch's CUDA build)"
        )
    if has_torch:
        return "simulate", (f"No card is seen here{why}, so trials are simulated",)
    return "formula", (f"Neither a card{why} nor torch is here, so trials are computed by formula",)


def _without_torch(backend: str) -> UsageError:
    return UsageError(
        f"--backend {backend} builds the job with torch, which is not installed beside oomdoctor",
        hint="`pip install 'oomdoctor[lab]'` brings it, --python FILE names an interpreter that has"
        " it, and `bisect --backend formula` computes without it",
    )


def cap_of(text: str | None) -> int | None:
    """Return the bytes of --cap."""
    if text is None:
        return None
    size = parse_size(text)
    if size is None or size.bytes < LEAST_CAP:
        raise click.UsageError(f"--cap {text!r}: expected a size such as 8GiB, 1 MiB or more")
    return size.bytes


def card_of(backend: str, cards: tuple[CardSpec, ...], cap: int | None) -> CardSpec | None:
    """Return the card that trials run on, where a back end has to be told."""
    if len(cards) > 1 and backend not in ("cuda", "cuda-twin"):
        names = ", ".join(repr(one.name) for one in cards)
        raise click.UsageError(f"--gpu: trials run on one card; give one of {names}")
    if cards:
        return cards[0]
    if backend in ON_NO_CARD and cap is not None:
        return replace(PLAIN, name=f"{format_size(cap)} card", total_bytes=cap)
    if backend == VIRTUAL and cap is not None:
        # the cap decides, and whatever lies outside the allocator does not
        total = cap + CONTEXT[1] + COMMUNICATION[1]
        return replace(PLAIN, name=f"{format_size(total)} card", total_bytes=total)
    if backend in (*ON_NO_CARD, VIRTUAL):
        raise click.UsageError(
            f"no card is known, and --backend {backend} needs one: --gpu NAME or SIZE, or"
            " --cap SIZE"
        )
    return None
