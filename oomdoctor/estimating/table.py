"""Peaks for every batch and length: a few are traced, one is checked, the others computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.estimating.shapes import Shape, longest, shape_of
from oomdoctor.estimating.verdicts import word_for
from oomdoctor.model.estimate import SIMULATE, VIRTUAL, Cell, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oomdoctor.estimating.engine import Engine
    from oomdoctor.estimating.peak import Peak
    from oomdoctor.memory.outside import Outside
    from oomdoctor.model.job import CardSpec, Job

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
BY_FORMULA = "All cells are computed by the formula."
COMPUTED = (
    "{traced} of {cells} cells are {how}. The others are computed from how each allocation grows"
    " (with the rows, with the length or with its square, as three traces of a few layers show),"
    " and put through the allocator one by one; the cell that was {how} to check them differs by"
    " {error:.2%}."
)
WHOLE = "Every cell is {how}."
HOW = {SIMULATE: "traced", VIRTUAL: "run"}


def axes(
    job: Job, *, batches: Sequence[int] = (), lengths: Sequence[int] = ()
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the batches and lengths of a table: as asked, else powers of two that hold the job."""
    base = shape_of(job)
    if base.length is None:
        tall: tuple[int, ...] = (0,)
    else:
        most = max(longest(job), base.length)
        usual = {one for one in LENGTHS if one <= most} | {base.length}
        tall = tuple(sorted(set(lengths) or _around(usual, base.length, len(LENGTHS))))
    wide = tuple(sorted(set(batches) or _around({*BATCHES, base.rows}, base.rows, len(BATCHES))))
    return wide, tall


def _around(values: set[int], kept: int, most: int) -> list[int]:
    """Return at most so many of the values, without losing one of them."""
    ordered = sorted(values)
    while len(ordered) > most:
        ordered.remove(ordered[-1] if ordered[-1] != kept else ordered[0])
    return ordered


def table(
    engine: Engine,
    job: Job,
    cards: Sequence[CardSpec],
    beside: Outside,
    *,
    batches: Sequence[int],
    lengths: Sequence[int],
    say: Callable[[str], None] = lambda _: None,
) -> Table:
    """Fill the table; of a simulation one far cell is traced as well, as a check."""
    from oomdoctor.estimating.simulation import Simulation

    traced: dict[Shape, Peak] = {}
    error = None
    how = BY_FORMULA
    base = shape_of(job)
    if isinstance(engine, Simulation):
        traced[base] = engine.at(job, base)
        how = WHOLE.format(how=HOW[engine.name])
        if engine.growth(job) is not None:
            far = _far(batches, lengths, base)
            say(f"tracing batch {far.rows} at length {far.length} to check the table")
            traced[far], error = engine.checked(job, far)
    rows = []
    for number, batch in enumerate(batches):
        say(f"table: row {number + 1} of {len(batches)}")
        cells = []
        for length in lengths:
            shape = Shape(batch, length or None)
            peak = traced.get(shape) or engine.at(job, shape)
            cells.append(_cell(peak, shape, cards, beside, traced=error is None or shape in traced))
        rows.append(tuple(cells))
    if error is not None:
        count = sum(one.traced for row in rows for one in row)
        cells_in_all = len(batches) * len(lengths)
        how = COMPUTED.format(traced=count, cells=cells_in_all, error=error, how=HOW[engine.name])
    return Table(
        batches=tuple(batches), lengths=tuple(lengths), rows=tuple(rows), how=how, error=error
    )


def _far(batches: Sequence[int], lengths: Sequence[int], base: Shape) -> Shape:
    """Return the cell to check: far from the base, but of a size that somebody might run."""
    rows = max((one for one in batches if one <= 4 * base.rows), default=batches[-1])
    length = base.length
    if length is None:
        return Shape(rows, None)
    near = [one for one in lengths if one != length] or [length]
    return Shape(rows, min(near, key=lambda one: abs(one - 2 * length)))


def _cell(
    peak: Peak, shape: Shape, cards: Sequence[CardSpec], beside: Outside, *, traced: bool
) -> Cell:
    return Cell(
        batch=shape.rows,
        seq_len=shape.length or 0,
        allocated_bytes=peak.allocated,
        reserved_bytes=peak.reserved,
        traced=traced and peak.stream is not None,
        verdicts=tuple(word_for(peak, card.total_bytes, beside) for card in cards),
    )
