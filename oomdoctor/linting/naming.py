"""Names that people give, of rules and of cards: one that nothing has is told, not passed over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.linting.codes import names_rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from oomdoctor.model.core import Fact

CUTOFF = 0.6
FAMILY = 4  # characters of a code that name its family
MAKERS = ("nvidia ", "geforce ", "amd ", "instinct ", "tesla ", "radeon ")


def check_rules(names: Iterable[str], codes: Mapping[str, str], *, where: str) -> None:
    """Refuse a name that means no rule; `codes` has the code of every rule by its name."""
    for name in names:
        if any(names_rule(name, code=code, rule=rule) for rule, code in codes.items()):
            continue
        starts = {code[:FAMILY] for code in codes.values()}
        near = nearest(name.lower(), codes) or nearest(name.upper(), (*starts, *codes.values()))
        hint = f"did you mean {near}? " if near else ""
        raise UsageError(
            f"{where}: no rule is called {name!r}",
            hint=f"{hint}`oomdoctor rules list` lists codes and names",
        )


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like the one that was given."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), n=1, cutoff=CUTOFF)), None)


def check_card(name: str, stated: Sequence[Fact]) -> None:
    """Refuse a card that no table has, where nothing else says how much memory it has."""
    from oomdoctor.facts import gpus

    if gpus.lookup(name) or any(fact.key == "gpu.total" for fact in stated):
        return
    bare = {_bare(card.name): card.name for card in gpus.cards()}
    near = nearest(_bare(name), bare)
    hint = f"did you mean {bare[near]!r}? " if near else ""
    raise UsageError(
        f"--gpu {name!r}: no such card is known",
        hint=f"{hint}of one that is not in the table give --fact gpu.total='24 GiB'"
        " and --fact gpu.compute_capability=8.9",
    )


def _bare(name: str) -> str:
    """Return the name of a card without its maker's."""
    low = " ".join(name.lower().split())
    for maker in MAKERS:
        low = low.removeprefix(maker)
    return low
