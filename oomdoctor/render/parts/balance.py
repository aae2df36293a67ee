"""The balance sheet: who holds the device's memory, as a bar with a legend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.bars import Share, bar, fill_of
from oomdoctor.render.layout import Line, Span, flow
from oomdoctor.render.parts.pieces import INDENT, heading, paragraph, safe
from oomdoctor.render.words import (
    dimension_words,
    entry_source,
    owner_words,
    percent,
    rank_state,
    rank_words,
)
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from oomdoctor.model.estimate import Owner
    from oomdoctor.model.plan import Diagnosis, Fingerprint, FingerprintMatch, Ledger, LedgerEntry
    from oomdoctor.render.theme import Theme
    from oomdoctor.render.view import View

STYLES = 4
WIDEST_BAR = 100


def balance(diagnosis: Diagnosis, theme: Theme, view: View) -> list[Line]:
    """Return the balance sheet of the failing device, or nothing where no figure is known."""
    ledger = diagnosis.ledger
    lines: list[Line] = []
    if ledger and (ledger.entries or ledger.capacity_bytes):
        lines += [heading(_title(ledger)), *_bar(ledger, theme)]
        for order, entry in enumerate(ledger.entries):
            lines += _legend(entry, order, ledger, theme)
        lines += _sums(ledger, theme)
    lines += _request(diagnosis, theme, view)
    return lines


def _title(ledger: Ledger) -> str:
    if ledger.capacity_bytes is None:
        return "Balance sheet"
    return f"Balance sheet of {format_size(ledger.capacity_bytes)}"


def _bar(ledger: Ledger, theme: Theme) -> list[Line]:
    shown = [
        Share(entry.bytes, fill_of(entry.owner, at, unicode=theme.unicode), _style(entry, at))
        for at, entry in enumerate(ledger.entries)
    ]
    if not shown:
        return []
    width = min(theme.width - len(INDENT), WIDEST_BAR)
    return [(Span(INDENT), *bar(shown, whole=ledger.capacity_bytes or 0, width=width))]


def _style(entry: LedgerEntry, order: int) -> str:
    return "free" if entry.owner == "free" else f"bar{order % STYLES}"


def _legend(entry: LedgerEntry, order: int, ledger: Ledger, theme: Theme) -> list[Line]:
    fill = fill_of(entry.owner, order, unicode=theme.unicode)
    whole = ledger.capacity_bytes
    share = percent(min(entry.bytes / whole, 1.0)) if whole and entry.bytes >= 0 else ""
    first = f"{INDENT}{fill} "
    figures = f"{format_size(entry.bytes):>10} {share:>6}  "
    spans = [
        Span(figures, "strong"),
        Span(safe(owner_words(entry.owner), theme)),
        Span(f" ({safe(entry_source(entry), theme)})", "dim"),
    ]
    hanging = " " * (len(first) + len(figures))
    wrapped = flow(spans[1:], width=theme.width, first=hanging)
    head = (Span(INDENT), Span(fill, _style(entry, order)), Span(" "), spans[0], *wrapped[0][1:])
    return [head, *wrapped[1:]]


def _sums(ledger: Ledger, theme: Theme) -> list[Line]:
    return [one for text in sum_words(ledger) for one in paragraph(text, theme, first=INDENT)]


def sum_words(ledger: Ledger) -> list[str]:
    """Say what is missing at least, and where the figures contradict each other."""
    texts = []
    if ledger.overshoot_bytes is not None and ledger.overshoot_bytes > 0:
        texts.append(
            f"The request overshoots what was left by at least "
            f"{format_size(ledger.overshoot_bytes)}."
        )
    return [*texts, *ledger.notes]


def _request(diagnosis: Diagnosis, theme: Theme, view: View) -> list[Line]:
    """Return what the failed request is equal to, by the job's own dimensions."""
    found = diagnosis.fingerprint
    lines = [one for owner in diagnosis.traced for one in _traced(owner, theme)]
    if found is None or not found.matches:
        return lines
    most = len(found.matches) if view.explain else 2
    for match in found.matches[:most]:
        lines += paragraph(match_words(match), theme, first=INDENT)
    chance = Span(chance_words(found, most), "dim")
    return lines + flow([chance], width=theme.width, first=INDENT)


def match_words(match: FingerprintMatch) -> str:
    """Say what the failed request is equal to."""
    return (
        f"The request equals {match.expression} = {format_size(match.bytes)}: "
        f"{match.meaning} ({dimension_words(match.values)})."
    )


def _traced(owner: Owner, theme: Theme) -> list[Line]:
    return paragraph(traced_words(owner), theme, first=INDENT)


def traced_words(owner: Owner) -> str:
    """Name a request of the simulated job that prints as the failed one."""
    when = " of ".join(word for word in (owner.part, owner.phase) if word)
    where = f" in {owner.module}" if owner.module else ""
    times = f", {owner.allocations} times" if owner.allocations > 1 else ""
    return (
        f"In the simulated job the request is that of {owner.operator}{where}"
        f" ({when}{times}): {format_size(owner.bytes)}, {owner.category}."
    )


def chance_words(found: Fingerprint, most: int) -> str:
    """Say how many products would match the request by chance."""
    more = len(found.matches) - most
    others = f"{more} more match; " if more > 0 else ""
    return (
        f"{others}{found.tried} products tried, "
        f"{found.expected_by_chance:.1f} match by chance alone."
    )


def ranks(diagnosis: Diagnosis, theme: Theme, _view: View) -> list[Line]:
    """Return one line per group of ranks, the first to fail first."""
    if len(diagnosis.ranks) < 2:
        return []
    lines = [heading("Ranks, first failure first")]
    for summary in diagnosis.ranks:
        text = f"{rank_words(summary)}: {rank_state(summary)}: {summary.headline}"
        lines += paragraph(text, theme, first=INDENT)
    return lines
