"""Pipelines of diffusers: networks side by side or one at a time, by formula.

Weights are the published counts of each network (PIPELINES of formula_serving). What a pass adds is
known only roughly: of a comparison on one H100 (1,024 x 1,024 pixels) the pipeline of PixArt-Sigma
in 16 bits took 12.09 GiB where its weights are 12.0, and one of FLUX.1 in nf4 on an RTX 4090
14.95 GB where they are 9; the decoder alone asks for three maps of 128 channels. So it is a band.
T5 in fp16 keeps one of its layers in fp32 (_keep_in_fp32_modules: wo).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory import serving_rows as rows
from oomdoctor.memory.formula_serving import PACKED, PIPELINES
from oomdoctor.memory.serving_rows import GIB
from oomdoctor.model.estimate import FITS
from oomdoctor.model.serving import CardBudget
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from oomdoctor.model.job import CardSpec
    from oomdoctor.model.serving import BudgetRow, ServingSpec

NETWORK = "transformer or UNet"
TEXT = "text encoders"
DECODER = "decoder of images"
WORK = "work of a pass"
LARGE_TEXT = 8.0  # GiB of text encoders in 16 bits from which one of them is T5-XXL
WIDER = 24 * 4096 * 10240 * 2  # T5-XXL's output layers in fp32 instead of fp16
SQUARE = 1024 * 1024


def known(name: str) -> str | None:
    """Return the pipeline of the table that a name means."""
    base = name.rstrip("/").rpartition("/")[2].lower()
    return next((one for one in PIPELINES if base.startswith(one.lower())), None)


def _rows(spec: ServingSpec) -> tuple[BudgetRow, ...]:
    name = known(spec.job.model.name)
    if name is None:
        raise ValueError(f"no formula for the pipeline {spec.job.model.name}")
    network, text, decoder, work = PIPELINES[name]
    scale = (4 if spec.job.dtype == "fp32" else 2) / 2 * GIB
    packed = PACKED.get(spec.job.quant.kind, 2.0) / 2 if spec.job.quant is not None else 1.0
    wider = WIDER if spec.job.dtype == "fp16" and text > LARGE_TEXT and packed == 1.0 else 0
    passing = work * scale * spec.pixels / SQUARE
    passing *= min(1.0, SQUARE / 4 / spec.pixels) if spec.tiled else spec.job.batch
    said = f"16-bit weights of {name} by its published counts"
    return (
        rows.row(NETWORK, "weights", rows.around(network * scale * packed, 0.02), said),
        rows.row(TEXT, "weights", rows.around(text * scale * packed + wider, 0.03), said),
        rows.row(DECODER, "weights", rows.around(decoder * scale, 0.05), said),
        rows.row(
            WORK,
            "temporary",
            (0.05 * passing, passing, 1.8 * passing),
            f"about {work:g} GiB for 1,024 x 1,024 pixels, an estimate from few measured runs",
        ),
        rows.row(
            rows.CONTEXT,
            "outside",
            (0.3 * GIB, 0.5 * GIB, 0.86 * GIB),
            "published messages of PyTorch",
        ),
    )


def resident(spec: ServingSpec, found: tuple[BudgetRow, ...]) -> tuple[int, int, int]:
    """Return the band of the pipeline's peak, by what is on the card at one time."""
    parts = {one.name: (one.low_bytes, one.bytes, one.high_bytes) for one in found}
    network, text, decoder, work = (parts[name] for name in (NETWORK, TEXT, DECODER, WORK))
    if spec.offload == "sequential":
        return _each(decoder, work)
    if spec.offload == "model":
        stages = ([network, tuple(one // 5 for one in work)], [text], [decoder, work])
        sums = [_each(*stage) for stage in stages]
        return (max(s[0] for s in sums), max(s[1] for s in sums), max(s[2] for s in sums))
    return _each(network, text, decoder, work)


def absent(spec: ServingSpec) -> tuple[str, ...]:
    """Return the networks that are not on the card at the peak."""
    if spec.offload == "sequential":
        return (NETWORK, TEXT)
    return (TEXT, DECODER) if spec.offload == "model" else ()


def _each(*bands: tuple[int, ...]) -> tuple[int, int, int]:
    low, middle, high = (sum(one[at] for one in bands) for at in range(3))
    return (low, middle, high)


def pipeline_budget(spec: ServingSpec, card: CardSpec) -> CardBudget:
    """Judge a pipeline on a card; ValueError for one that is not known."""
    found = _rows(spec)
    peak = resident(spec, found)
    context = rows.summed(found, [rows.CONTEXT])
    low, middle, high = (one + other for one, other in zip(peak, context, strict=True))
    verdict = rows.judged((low, middle, high), card.total_bytes)
    missing = max(0, middle - card.total_bytes)
    why = (
        f"{format_size(missing)} more than the card has"
        if missing
        else "it depends on what is known as a band alone"
    )
    return CardBudget(
        card=card.name,
        capacity_bytes=card.total_bytes,
        budget_bytes=card.total_bytes,
        taken_bytes=min(middle, card.total_bytes),
        needed_low_bytes=low,
        needed_bytes=middle,
        needed_high_bytes=high,
        rows=found,
        cache_bytes=0,
        tokens=0,
        requests=float(spec.job.batch),
        longest=0,
        missing_bytes=missing,
        verdict=verdict,
        why="" if verdict == FITS else why,
    )


def weights_bytes(spec: ServingSpec) -> int:
    """Return all weights, which are in main memory where they are offloaded."""
    return sum(one.bytes for one in _rows(spec) if one.category == "weights")
