"""How a page looks: width, colour or not, Unicode or not; decided once, from values passed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_WIDTH = 100
NARROWEST = 40
WIDEST = 160
LOCALES = ("LC_ALL", "LC_CTYPE", "LANG")  # the first that is set decides, as POSIX has it

# role -> (Unicode, ASCII); a word always stands beside the glyph, so that neither has to be seen
GLYPHS = {
    "bad": ("✖", "[x]"),
    "open": ("?", "[?]"),
    "aside": ("!", "[!]"),
    "good": ("✔", "[ok]"),
    "none": ("○", "[-]"),
    "dot": ("·", "-"),
    "cut": ("…", "..."),
    "quote": ("│", "|"),
}
STYLES = {
    "heading": "bold",
    "bad": "bold red",
    "open": "bold yellow",
    "aside": "bold yellow",
    "good": "bold green",
    "none": "bold",
    "strong": "bold",
    "dim": "dim",
    "place": "cyan",
    "command": "bold cyan",
    "added": "green",
    "removed": "red",
    "hunk": "cyan",
    "bar0": "blue",
    "bar1": "cyan",
    "bar2": "magenta",
    "bar3": "yellow",
    "free": "dim",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Width in columns, and whether colour and characters beyond ASCII may be used."""

    width: int = DEFAULT_WIDTH
    colour: bool = False
    unicode: bool = True

    def glyph(self, role: str) -> str:
        """Return the sign of `role` in the character set of this page."""
        fancy, plain = GLYPHS[role]
        return fancy if self.unicode else plain


def colour_wanted(mode: str, *, environ: Mapping[str, str], terminal: bool) -> bool:
    """Decide about colour: --color, then NO_COLOR (non-empty), then FORCE_COLOR, then the TTY."""
    if mode != "auto":
        return mode == "always"
    if environ.get("NO_COLOR"):
        return False
    force = environ.get("FORCE_COLOR")
    if force:
        return force != "0"
    return terminal and environ.get("TERM") != "dumb"


def unicode_wanted(encoding: str | None, *, environ: Mapping[str, str]) -> bool:
    """Say whether a stream of this encoding can carry every character that we print.

    In the C locale Python writes UTF-8 all the same, whatever reads it: who asks for that locale
    gets ASCII, unless Python was told how to encode.
    """
    asked = next((environ[key] for key in LOCALES if environ.get(key)), "")
    told = environ.get("PYTHONUTF8") == "1" or environ.get("PYTHONIOENCODING")
    if asked in ("C", "POSIX") and not told:
        return False
    name = (encoding or "ascii").lower().replace("-", "").replace("_", "")
    return name in ("utf8", "utf8sig", "cp65001", "utf16", "utf16le", "utf16be")


def width_wanted(asked: int | None, *, columns: int | None) -> int:
    """Return the page width: as asked, else that of the stream up to a readable limit, else 100."""
    if asked is not None:
        return max(asked, NARROWEST)
    return DEFAULT_WIDTH if columns is None else min(max(columns, NARROWEST), WIDEST)
