"""The figures by which the estimates are judged, and the bounds that they must keep."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.measured import OUTCOME
from oomdoctor.model.estimate import FITS, OOM, TIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from benchmarks.measured import Record

ENGINES = ("simulation", "formula")
TOO_LOW = -0.10
BOUNDS = {
    "simulation": {"median": 0.03, "p90": 0.12, "too low": 0.03},
    "formula": {"median": 0.08},
}
RIGHT, MOST_TIGHT = 0.90, 0.20


def error_of(record: Record, figure: float | None) -> float | None:
    """Return by how much a figure is off; nothing within the rounding of what was printed."""
    if record.value is None or figure is None:
        return None
    off = figure - record.value
    if abs(off) <= record.rounding:
        return 0.0
    return off / record.value


def speaks(record: Record, engine: str) -> bool:
    """Say whether what an engine describes is what was measured."""
    return record.comparable and (engine != "formula" or record.formula is None)


def summary(wanted: Sequence[Record], results: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of each engine over the comparable records, and of the rules and peers."""
    found: dict[str, Any] = {}
    for engine in ENGINES:
        errors = [
            off
            for one in wanted
            if speaks(one, engine)
            and (off := error_of(one, results[one.id].get(engine, {}).get("bytes"))) is not None
        ]
        found[engine] = {**_figures(errors), **_verdicts(wanted, results, engine)}
    for kind in ("naive", "peers"):
        for name in sorted({key for one in results.values() for key in one.get(kind, {})}):
            errors = [
                off
                for one in wanted
                if one.comparable
                and (off := error_of(one, results[one.id].get(kind, {}).get(name))) is not None
            ]
            found[name] = _figures(errors)
    return found


def groups(wanted: Sequence[Record], results: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the simulation's figures by source and by what was traced; "worst" is signed."""
    names: dict[str, list[float]] = {}
    for one in wanted:
        off = error_of(one, results[one.id].get("simulation", {}).get("bytes"))
        if off is not None and one.comparable:
            what = "twin" if one.twin is not None else "job"
            point = "" if one.point == "peak" else f", {one.point}"
            names.setdefault(f"{one.source}: {one.quantity}{point} | {what}", []).append(off)
    return {
        name: {**_figures(errors), "worst": max(errors, key=abs)} for name, errors in names.items()
    }


def _figures(errors: Sequence[float]) -> dict[str, Any]:
    if not errors:
        return {"records": 0}
    sizes = sorted(map(abs, errors))
    return {
        "records": len(errors),
        "median": round(median(sizes), 5),
        "p90": round(sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))], 5),
        "too low": round(sum(off < TOO_LOW for off in errors) / len(errors), 4),
    }


def _verdicts(wanted: Iterable[Record], results: Mapping[str, Any], engine: str) -> dict[str, Any]:
    said = [
        (one, answer)
        for one in wanted
        if one.outcome is not None and (answer := results[one.id].get(engine, {})).get("verdict")
        if speaks(one, engine) or one.quantity == OUTCOME
        if engine != "formula" or one.formula is None
    ]
    if not said:
        return {}
    wrong = [one.id for one, answer in said if not _right(one, answer)]
    tight = sum(answer["verdict"] == TIGHT for _, answer in said)
    unsafe = [one.id for one, answer in said if one.outcome == OOM and answer["verdict"] == FITS]
    edges = [one for one, _ in said if one.quantity == OUTCOME]
    return {
        "edges": len(edges),
        "edges right": len(edges) - sum(one.id in wrong for one in edges),
        "thresholds": len(said),
        "right": round(1 - len(wrong) / len(said), 4),
        "tight": round(tight / len(said), 4),
        "fits that was an OOM": unsafe,
        "wrong": wrong,
    }


def _right(record: Record, answer: Mapping[str, str]) -> bool:
    """Say whether a verdict is right: a tight one is, where it had to be one of both."""
    word = answer["verdict"]
    if record.outcome == OOM:
        return word != FITS
    if record.outcome == FITS:
        return word != OOM
    return word != OOM and answer.get("longer") != FITS


def broken(found: Mapping[str, Any]) -> list[str]:
    """Return the bounds that are broken."""
    return list(_broken(found))


def _broken(found: Mapping[str, Any]) -> Iterator[str]:
    for engine, bounds in BOUNDS.items():
        for name, most in bounds.items():
            figure = found[engine].get(name)
            if figure is None:
                yield f"{engine}: without {name}"
            elif figure > most:
                yield f"{engine}: {name} {figure:.2%} of at most {most:.0%}"
    says = found["simulation"]
    if says.get("right", 0) < RIGHT:
        yield f"verdicts right: {says.get('right', 0):.0%} of at least {RIGHT:.0%}"
    if says.get("tight", 1) > MOST_TIGHT:
        yield f"verdicts tight: {says.get('tight', 1):.0%} of at most {MOST_TIGHT:.0%}"
    for engine in ENGINES:
        for name in found[engine].get("fits that was an OOM", ()):
            yield f"{engine}: {name} fits, and was an OOM"
