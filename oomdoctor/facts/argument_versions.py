"""Which arguments of trainers the versions in use take, from the field lists of their releases.

use_liger_kernel is in transformers 4.46.3 and not in 4.41.2, the last one read before it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.facts.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from oomdoctor.facts.book import FactBook

DIALECTS = frozenset({"hf_trainer", "trl", "llamafactory", "unsloth", "python"})
"""Dialects whose keys are arguments of these trainers."""


@cache
def _changes() -> Mapping[str, tuple[tuple[str, str | None, str | None], ...]]:
    """Return by argument: package, first version that has it, first that has not any more."""
    found: dict[str, list[tuple[str, str | None, str | None]]] = {}
    for schema, fields in table("schemas")["versions"].items():
        package = schema.partition(".")[0]
        for name, (first, gone) in fields.items():
            found.setdefault(name, []).append((package, first, gone))
    return {name: tuple(rows) for name, rows in found.items()}


def are_taken(dialect: str, settings: Mapping[str, object], book: FactBook) -> bool:
    """Say whether the versions in use take what a patch sets, as far as that is known."""
    if dialect not in DIALECTS:
        return True
    of_trl = dialect == "trl" or book.value("job.framework") == "trl"
    packages = ("transformers", "trl") if of_trl else ("transformers",)
    return all(_is_taken(key, packages, book) for key in _set(settings))


def _set(settings: Mapping[str, object]) -> Iterator[str]:
    """Yield the keys that are there after a patch: not those that it takes out or renames."""
    for key, value in settings.items():
        word, _, name = value.partition(" ") if isinstance(value, str) else ("", "", "")
        if word == "!rename":
            yield name.strip()
        elif word != "!remove":
            yield key


def _is_taken(key: str, packages: tuple[str, ...], book: FactBook) -> bool:
    rows = [row for row in _changes().get(key.rpartition(".")[2], ()) if row[0] in packages]
    return not rows or any(_holds(row, book) for row in rows)


def _holds(row: tuple[str, str | None, str | None], book: FactBook) -> bool:
    package, first, gone = row
    version = book.value(f"env.{package}")
    if version is None:
        return True
    used = _numbers(str(version))
    return not (first and used < _numbers(first)) and not (gone and used >= _numbers(gone))


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.partition("+")[0].split(".")[:3]
    numbers = [int("".join(c for c in part if c.isdecimal()) or 0) for part in parts]
    return (*numbers, 0, 0, 0)[:3]
