"""How much of a diagnosis is shown."""

from __future__ import annotations

from oomdoctor.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the reader asked for: causes shown, the full chain, next steps alone, how talkative."""

    top: int = 3
    explain: bool = False
    next_only: bool = False
    verbosity: int = 0
    fixes: int = 4
    quotes: int = 4
