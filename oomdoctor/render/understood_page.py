"""The job as understood, as sections of a page: what it trains, and its memory by formula."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.lint.understood import JOB, MEMORY, is_sum, source_words
from oomdoctor.render.page import Section, Stack, StackPart, Table
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.model.lint import UnderstoodRow


def understood_sections(rows: Sequence[UnderstoodRow], files: Sequence[str]) -> tuple[Section, ...]:
    """Return the sections about the job that these files are; none where it was not understood."""
    found = []
    job = [one for one in rows if one.group == JOB]
    if job:
        found.append(
            Section(
                title="The job as understood",
                table=Table(
                    caption=f"From {', '.join(files)}" if files else "From the inputs",
                    headers=("what", "is", "how it is known"),
                    rows=tuple((one.name, one.text, source_words(one)) for one in job),
                ),
            )
        )
    memory = [one for one in rows if one.group == MEMORY]
    if memory:
        found.append(_memory(memory))
    return tuple(found)


def _memory(rows: Sequence[UnderstoodRow]) -> Section:
    parts = tuple(_part(one) for one in rows if not is_sum(one))
    sums = (
        f"{one.name}: {one.text}" + (f" ({source})." if (source := source_words(one)) else ".")
        for one in rows
        if is_sum(one)
    )
    return Section(
        title="Its memory on one card, by formula",
        sentences=tuple(one[:1].upper() + one[1:] for one in sums),
        stack=Stack(
            caption="Parts of the job's memory, by formula and not measured",
            parts=parts,
            whole=max((one.of_bytes or 0 for one in rows), default=0),
        ),
    )


def _part(row: UnderstoodRow) -> StackPart:
    size = "not known" if row.bytes is None else format_size(row.bytes)
    said = "" if row.text == size else row.text
    return StackPart(
        row.name, row.bytes or 0, size, "; ".join(filter(None, [said, source_words(row)]))
    )
