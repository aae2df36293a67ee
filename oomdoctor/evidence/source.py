"""Inputs as raw lines: a file, standard input or a given text, decoded and bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomdoctor.model.core import Artifact


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One input as (physical line number, raw text) pairs; `notes` tells what was cut."""

    artifact: Artifact
    lines: tuple[tuple[int, str], ...]
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return all lines joined by line feeds."""
        return "\n".join(line for _, line in self.lines)
