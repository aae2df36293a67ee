"""How bundles are named, found and kept apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoctor.errors import UsageError
from oomdoctor.recorder.places import bundle_named, bundles, new_bundle, runs_folder, word_of
from tests.unit.recorder.made import bundle


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["python", "train.py", "--lr", "1"], "train"),
        (["/usr/bin/python3.11", "-u", "/work/fit.py"], "fit"),
        (["torchrun", "--nproc-per-node=2", "train.py"], "train"),
        (["accelerate", "launch", "run.py"], "run"),
        (["python", "-m", "torch.distributed.run", "--nproc-per-node", "2", "fit.py"], "fit"),
        (["python", "-m", "torch.distributed.run", "-m", "our.job"], "our.job"),
        (["CUDA=1", "env", "A=b", "./job.sh"], "job"),
        (["bash", "-c", "make all"], "make"),
        (["python"], "python"),
        (["python3", "-c", "import os; os._exit(1)"], "python3"),
        (["--"], "command"),
        (["über ../x"], "ber"),
    ],
)
def test_a_bundle_is_named_after_what_a_person_calls_the_command(
    command: list[str], expected: str
) -> None:
    assert expected == word_of(command)


def test_bundles_of_one_second_get_names_of_their_own(tmp_path: Path) -> None:
    names = [new_bundle(tmp_path / "runs", ["train.py"], now=0.0).name for _ in range(3)]

    assert [one[len("19700101-000000") :] for one in names] == ["-train", "-train-2", "-train-3"]


def test_git_leaves_the_default_folder_alone(tmp_path: Path) -> None:
    new_bundle(tmp_path / ".oomdoctor" / "runs", ["x"])
    new_bundle(tmp_path / "mine", ["x"])

    assert (tmp_path / ".oomdoctor" / ".gitignore").read_text(encoding="utf-8") == "*\n"
    assert not (tmp_path / ".gitignore").exists()


def test_the_option_outranks_the_variable(tmp_path: Path) -> None:
    assert runs_folder("here", {"OOMDOCTOR_RUNS": "there"}) == Path("here").absolute()
    assert runs_folder(None, {"OOMDOCTOR_RUNS": str(tmp_path)}) == tmp_path
    assert runs_folder(None, {}) == Path(".oomdoctor/runs").absolute()


def test_a_name_means_the_last_run_a_path_an_id_or_a_part_of_one(tmp_path: Path) -> None:
    first = bundle(tmp_path / "20260101-000000-train", told={"started": "2026-01-01T00:00:00"})
    second = bundle(tmp_path / "20260101-000000-eval", told={"started": "2026-01-01T00:00:01"})
    (tmp_path / "no-bundle").mkdir()

    assert bundles(tmp_path) == [second, first]
    assert bundle_named("last", tmp_path) == second
    assert bundle_named("train", tmp_path) == first
    assert bundle_named(first.name, tmp_path) == first
    assert bundle_named(str(first), tmp_path / "elsewhere") == first


@pytest.mark.parametrize(
    ("name", "said"), [("2026", "names 2 runs"), ("other", "no run is called")]
)
def test_a_name_that_means_no_single_run_is_refused(tmp_path: Path, name: str, said: str) -> None:
    bundle(tmp_path / "20260101-000000-train")
    bundle(tmp_path / "20260101-000001-train")

    with pytest.raises(UsageError, match=said):
        bundle_named(name, tmp_path)
