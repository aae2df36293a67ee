"""What a bundle would replace, for its maker's eyes: kinds, how often, masked examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.redaction.redactor import Redactor

_EXAMPLES = 6


def preview(redactor: Redactor, *, left_out: list[str]) -> str:
    """Return a table of what was replaced, with values of which only the beginning is shown."""
    return "".join(f"{line}\n" for line in _lines(redactor, left_out))


def _lines(redactor: Redactor, left_out: list[str]) -> Iterator[str]:
    if not redactor.counts:
        yield "nothing to replace"
    for kind, places in redactor.counts.items():
        examples = redactor.examples.get(kind, {})
        noun = "place" if places == 1 else "places"
        yield f"{kind}: {places} {noun}, {redactor.distinct.get(kind, 0)} different"
        for shown, masked in list(examples.items())[:_EXAMPLES]:
            yield f"  {shown} for {masked}"
        if len(examples) > _EXAMPLES:
            yield f"  and {len(examples) - _EXAMPLES} more"
    yield from (f"left out: {note}" for note in left_out)
