"""How much of a lint report is shown."""

from __future__ import annotations

from oomdoctor.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LintView:
    """How talkative the page is: -1 one line per finding, 0 as agreed, 1 everything."""

    verbosity: int = 0
    explain: bool = False
    fixes: int = 2
    jobs: int = 1

    @property
    def is_quiet(self) -> bool:
        """Say whether only the lines of findings are wanted."""
        return self.verbosity < 0

    @property
    def is_talkative(self) -> bool:
        """Say whether everything is wanted."""
        return self.explain or self.verbosity > 0
