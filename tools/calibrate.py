"""Print how often the leading cause is right at each probability, as a Markdown table.

    python tools/calibrate.py FOLDER [FOLDER...] [--stubs] [--bins 0,0.2,0.4,0.6,0.8,0.9,1]

Each folder holds labelled cases, one YAML file each: `id`, `log`, perhaps `config`, `tier`, the
true `cause` (and `also_accept`), and the `answer` that an expert could give. A case whose cause is
`undetermined` counts for the answers alone; stubs, of which only a line is known, are left out.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the checkout is measured, installed or not

BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
POOLED = (0.6, 0.9)
UNDETERMINED = "undetermined"
_Z = 1.96
"""A band of 95 %."""


class Outcome(NamedTuple):
    """One case: what an expert answers, what the tool answered, its leading cause, the truth."""

    name: str
    wanted: str
    answer: str
    cause: str
    probability: float
    right: bool
    known: bool
    brier: float


def outcome(case: Mapping[str, Any]) -> Outcome:
    """Ask the tool about one case."""
    from oomdoctor.pipeline import diagnose
    from oomdoctor.render.json import to_json

    log = str(case.get("log", "")) + "\n"
    config = f"{case['config']}\n" if case.get("config") else None
    said = json.loads(to_json(diagnose(log, config=config)))
    accepted = {case["cause"], *case.get("also_accept", ())}
    causes = said["causes"]
    leading = causes[0] if causes else {"cause": "", "probability": 0.0}
    credited = sum(one["probability"] for one in causes if one["cause"] in accepted)
    return Outcome(
        name=str(case["id"]),
        wanted=str(case["answer"]),
        answer=said["answer"],
        cause=leading["cause"],
        probability=leading["probability"],
        right=leading["cause"] in accepted,
        known=case["cause"] != UNDETERMINED,
        brier=(1 - min(1.0, credited)) ** 2,
    )


def cases_in(folder: Path, *, stubs: bool = False) -> Iterator[Mapping[str, Any]]:
    """Yield the cases of a folder by name."""
    import yaml

    for path in sorted(folder.glob("*.yaml")):
        case = yaml.safe_load(path.read_text(encoding="utf-8"))
        if stubs or case.get("tier") != "stub":
            yield case


def band(right: int, count: int) -> tuple[float, float]:
    """Return Wilson's interval for a share."""
    share, extra = right / count, _Z**2 / count
    middle = (share + extra / 2) / (1 + extra)
    half = _Z * math.sqrt(share * (1 - share) / count + extra / (4 * count)) / (1 + extra)
    return max(0.0, middle - half), min(1.0, middle + half)


def row(label: str, held: Sequence[Outcome]) -> str:
    """Return a line of the table for cases of one bin."""
    if not held:
        return f"| {label} | 0 | | | |"
    count, right = len(held), sum(one.right for one in held)
    mean = sum(one.probability for one in held) / count
    low, high = band(right, count)
    return f"| {label} | {count} | {mean:.2f} | {right / count:.2f} | {low:.2f} to {high:.2f} |"


def table(outcomes: Sequence[Outcome], bins: Sequence[float] = BINS) -> str:
    """Return the calibration of all cases whose cause is known and that got a cause."""
    held = [one for one in outcomes if one.known and one.cause]
    lines = [
        "| leading cause | n | mean probability | right | 95 % band |",
        "|---|---:|---:|---:|---|",
    ]
    for low, high in itertools.pairwise(bins):
        last = high == bins[-1]
        chosen = [one for one in held if _within(one.probability, low, high, last=last)]
        lines.append(row(f"{low:g} to {high:g}", chosen))
    low, high = POOLED
    pooled = [one for one in held if _within(one.probability, low, high, last=False)]
    lines += [row(f"**{low:g} to {high:g}, pooled**", pooled), row("all", held)]
    return "\n".join(lines)


def _within(probability: float, low: float, high: float, *, last: bool) -> bool:
    return low <= probability < high or (last and probability >= high)


def answers(outcomes: Sequence[Outcome]) -> str:
    """Return how often each answer was given where an expert gives which."""
    counted = collections.Counter((one.wanted, one.answer) for one in outcomes)
    given = sorted({one.answer for one in outcomes})
    lines = [
        "| expert \\ tool | " + " | ".join(given) + " |",
        "|---|" + "---:|" * len(given),
    ]
    for wanted in sorted({one.wanted for one in outcomes}):
        cells = (str(counted[wanted, one] or "") for one in given)
        lines.append(f"| {wanted} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return the counts and the Brier score in one line."""
    known = [one for one in outcomes if one.known]
    without = sum(not one.cause for one in known)
    score = sum(one.brier for one in known) / max(1, len(known))
    return (
        f"{len(outcomes)} cases, {len(known)} with a known cause,"
        f" {without} of them without a named cause. Brier {score:.3f}."
    )


def page(outcomes: Sequence[Outcome], bins: Sequence[float] = BINS) -> str:
    """Return both tables and the summary."""
    return "\n\n".join((summary(outcomes), table(outcomes, bins), answers(outcomes))) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Ask about all cases and print the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--stubs", action="store_true", help="take stubs, too")
    parser.add_argument("--bins", default=",".join(f"{one:g}" for one in BINS))
    options = parser.parse_args(arguments)
    bins = tuple(float(one) for one in options.bins.split(","))
    found = [
        outcome(case)
        for folder in options.folders
        for case in cases_in(folder, stubs=options.stubs)
    ]
    if not found:
        parser.error("no case in these folders")
    print(page(found, bins), end="")


if __name__ == "__main__":
    main()
