"""How often the tool is right, and how sure of it; the committed numbers may only get better.

fixtures/cases/scorecard.json holds the numbers of the golden cases. --update-golden raises them
where the tool got better and never lowers them: that is done by hand, with a reason.
"""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from oomdoctor.pipeline import diagnose
from oomdoctor.render.json import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import ModuleType

Said = dict[str, Any]
HIGHER_IS_BETTER = {"answered": True, "top_1": True, "top_3": True, "brier": False}
JUDGED_TIERS = ("core", "extra")


def _brier(truth: str, said: Said) -> float:
    """Return the squared distance between the answer's probabilities and the truth."""
    named = {one["cause"]: one["probability"] for one in said["causes"]}
    wrong = sum(share**2 for cause, share in named.items() if cause != truth)
    return float(
        (1 - named.get(truth, 0.0)) ** 2 + wrong + (said["other_probability"] if named else 1) ** 2
    )


def _answers_as_claimed(case: Any, said: Said) -> bool:
    claim = case.claims["answer"]
    return said["answer"] in (claim if isinstance(claim, list) else [claim])


def score(cases: Sequence[Any], said_to: Callable[[str], Said]) -> dict[str, float]:
    settled = [case for case in cases if case.truth != "undetermined"]
    named = {case.name: [one["cause"] for one in said_to(case.name)["causes"]] for case in cases}
    claimed = [case for case in cases if "answer" in case.claims]
    answered = [case for case in claimed if _answers_as_claimed(case, said_to(case.name))]
    numbers = {
        "answered": len(answered) / len(claimed),
        "top_1": sum(case.truth in named[case.name][:1] for case in settled) / len(settled),
        "top_3": sum(case.truth in named[case.name][:3] for case in settled) / len(settled),
        "brier": sum(_brier(case.truth, said_to(case.name)) for case in settled) / len(settled),
    }
    return {key: round(value, 4) for key, value in numbers.items()}


def _is_worse(key: str, now: float, committed: float) -> bool:
    return now < committed if HIGHER_IS_BETTER[key] else now > committed


def test_the_scorecard_does_not_fall(cases: Any, said_to: Any, root: Path, may_write: bool) -> None:
    path = root / "fixtures" / "cases" / "scorecard.json"
    now = score(cases, said_to)
    committed = json.loads(path.read_text(encoding="utf-8")) if path.exists() else now
    if may_write:
        best = {
            key: committed[key] if _is_worse(key, value, committed[key]) else value
            for key, value in now.items()
        }
        path.write_text(json.dumps(best, indent=1, sort_keys=True) + "\n", encoding="utf-8")

    worse = {
        key: (value, committed[key])
        for key, value in now.items()
        if _is_worse(key, value, committed[key])
    }

    assert worse == {}
    assert path.exists()


@pytest.fixture(scope="module")
def judge(root_of_judge: Path) -> ModuleType:
    """The judge that lies beside the checkout."""
    path = root_of_judge / "score_cases.py"
    spec = importlib.util.spec_from_file_location("score_cases", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def root_of_judge(root: Path) -> Path:
    folder = root.parent / "shared"
    if not (folder / "score_cases.py").exists():
        pytest.skip("no labelled cases lie beside the checkout")
    return folder


def _labelled(folder: Path) -> Iterator[Said]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for path in sorted((folder / "cases").glob("*.yaml")):
        case = yaml.load(path.read_text(encoding="utf-8"), loader)  # noqa: S506 - a safe loader
        if case["tier"] in JUDGED_TIERS:
            yield case


def _asking(folder: Path) -> Callable[..., Said]:
    """Return the judge's `ask`, in this process instead of one process per case."""

    def ask(tool: str, log: str, config: str | None, timeout: float) -> Said:
        del tool, timeout
        (folder / "crash.log").write_text(log + "\n", encoding="utf-8")
        given = None
        if config:
            given = str(folder / "config.txt")
            (folder / "config.txt").write_text(config + "\n", encoding="utf-8")
        said: Said = json.loads(to_json(diagnose(str(folder / "crash.log"), config=given)))
        return said

    return ask


@pytest.fixture(scope="module")
def judged(
    judge: Any, root_of_judge: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[Said, str, Said | None]]:
    """All labelled cases with the judge's verdict and what was said."""
    judge.ask = _asking(tmp_path_factory.mktemp("labelled"))
    return [(case, *_judged(judge, case)) for case in _labelled(root_of_judge)]


def _judged(judge: ModuleType, case: Said) -> tuple[str, Said | None]:
    try:
        said = judge.ask("", case.get("log", ""), case.get("config"), 0)
        return judge.judge(case, said), said
    except Exception as fault:  # noqa: BLE001 - any fault at all counts as a crash
        return f"crash {type(fault).__name__}: {fault}", None


@pytest.mark.slow
def test_no_labelled_case_crashes(judged: Any) -> None:
    crashes = {case["id"]: verdict for case, verdict, said in judged if said is None}

    assert crashes == {}


@pytest.mark.slow
def test_labelled_cases_of_torch_are_judged_right_and_hardly_ever_misleading(judged: Any) -> None:
    verdicts = Counter(verdict for case, verdict, _ in judged if case["scope"] == "torch")
    total = verdicts.total()

    assert verdicts["right"] / total >= 0.80, verdicts
    assert (verdicts["overconfident"] + verdicts["misled"]) / total <= 0.04, verdicts


@pytest.mark.slow
def test_quotes_for_labelled_cases_carry_the_answer(judged: Any, judge: ModuleType) -> None:
    certain = [
        (case, said)
        for case, verdict, said in judged
        if verdict == "right" and said["answer"] != "need_evidence"
    ]
    decorative = [case["id"] for case, said in certain if not judge.faithful("", case, said, 0)]

    assert len(decorative) <= 0.05 * len(certain), " ".join(decorative)
