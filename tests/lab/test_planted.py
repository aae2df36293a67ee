"""Planted causes are diagnosed, then confirmed; causes that are not there are refuted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.rules.loader import load_rules
from tests.lab import planting

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.planting import Plant

pytestmark = pytest.mark.slow
pytest.importorskip("torch")


def names(plants: list[Plant]) -> list[str]:
    return [str(one.get("script") or one["job"]) for one in plants]


def told_apart(cause: str) -> set[str]:
    """Return a cause with those that the vocabulary says it is easily taken for."""
    return {cause, *load_rules().causes[cause].near}


@pytest.mark.parametrize("plant", planting.SCRIPTS, ids=names(planting.SCRIPTS))
def test_what_a_script_hides_is_found_by_its_log_and_proven_by_trials(
    plant: Plant, tmp_path: Path
) -> None:
    cause, swapped = planting.cause_of(plant), plant["swapped"]
    script = planting.FOLDER / plant["script"] / "train.py"

    failure = planting.failing(plant, tmp_path)
    assert (failure.outcome, bool(failure.output_path)) == ("oom", True)
    diagnosis = planting.diagnosed(tmp_path, str(failure.output_path), "--config", str(script))
    assert diagnosis["causes"][0]["cause"] in told_apart(cause)

    mended = planting.command_of(plant, tmp_path, "mended.py")
    found = planting.confirmed(
        tmp_path,
        str(planting.suspected(tmp_path, cause, swapped)),
        *("--backend", "cpu", "--cap", f"{plant['cap_mib']}MiB"),
        *("--steps", str(plant.get("steps", 2))),
        *(("--evaluate",) if plant.get("evaluates") else ()),
        *(("--treated", " ".join(mended)) if plant.get("mended") else ()),
        "--",
        *planting.command_of(plant, tmp_path, "train.py"),
    )

    assert {one: found[one]["verdict"] for one in found} == {
        cause: "confirmed",
        swapped: "refuted",
    }, {one: found[one]["reason"] for one in found}


@pytest.mark.parametrize("plant", planting.JOBS, ids=names(planting.JOBS))
def test_what_the_config_of_a_job_hides_is_proven_without_a_card(
    plant: Plant, tmp_path: Path
) -> None:
    cause, swapped = planting.cause_of(plant), plant["swapped"]
    config = str(planting.FOLDER / "jobs" / plant["job"] / "train.yaml")

    found = planting.confirmed(
        tmp_path,
        str(planting.suspected(tmp_path, cause, swapped)),
        config,
        *("--backend", "simulate", "--gpu", "RTX 4090", "--cap", f"{plant['cap_mib']}MiB"),
    )
    log = planting.log_of(plant, found[cause]["baseline"][0], tmp_path)
    diagnosis = planting.diagnosed(tmp_path, str(log), "--config", config)

    assert diagnosis["causes"][0]["cause"] in told_apart(cause)
    assert {one: found[one]["verdict"] for one in found} == {
        cause: "confirmed",
        swapped: "refuted",
    }, {one: found[one]["reason"] for one in found}
