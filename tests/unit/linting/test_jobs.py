"""Which files are one job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.linting.files import paths_in, read_file
from oomdoctor.linting.jobs import jobs_of

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = "model_name_or_path: gpt2\noutput_dir: out\nper_device_train_batch_size: 2\n"
ZERO = '{"zero_optimization": {"stage": 2}}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.yaml").write_text(f"{TRAIN}deepspeed: ds.json\n", "utf-8")
    (tmp_path / "other.yaml").write_text(TRAIN, "utf-8")
    (tmp_path / "ds.json").write_text(ZERO, "utf-8")
    return tmp_path


def jobs(*paths: str, together: bool = False) -> list[list[str]]:
    files = [read_file(path) for path in paths]
    return [[file.path for file in job.files] for job in jobs_of(files, together=together)]


@pytest.mark.usefixtures("folder")
def test_each_file_is_a_job_of_its_own() -> None:
    assert jobs("other.yaml", "ds.json") == [["other.yaml"], ["ds.json"]]


@pytest.mark.usefixtures("folder")
def test_files_that_name_each_other_are_one_job() -> None:
    assert jobs("ds.json", "train.yaml", "other.yaml") == [
        ["train.yaml", "ds.json"],
        ["other.yaml"],
    ]


@pytest.mark.usefixtures("folder")
def test_a_file_that_is_named_is_read_as_well() -> None:
    assert jobs("train.yaml") == [["train.yaml", "ds.json"]]


@pytest.mark.usefixtures("folder")
def test_a_file_that_is_named_and_not_there_is_left_out(folder: Path) -> None:
    (folder / "ds.json").unlink()
    assert jobs("train.yaml") == [["train.yaml"]]


@pytest.mark.usefixtures("folder")
def test_all_files_are_one_job_where_that_is_said() -> None:
    assert jobs("other.yaml", "ds.json", together=True) == [["other.yaml", "ds.json"]]


def test_files_that_name_each_other_in_a_circle_are_one_job(folder: Path) -> None:
    (folder / "a.sh").write_text("accelerate launch --config_file acc.yaml train.py\n", "utf-8")
    acc = "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n"
    (folder / "acc.yaml").write_text(
        f"{acc}deepspeed_config:\n  deepspeed_config_file: ds.json\n", "utf-8"
    )
    assert jobs("a.sh", "acc.yaml", "ds.json") == [["a.sh", "acc.yaml", "ds.json"]]


def test_a_folder_stands_for_the_configs_in_it(folder: Path) -> None:
    (folder / "notes.txt").write_text("bf16\n", "utf-8")
    (folder / ".cache").mkdir()
    (folder / ".cache" / "x.yaml").write_text(TRAIN, "utf-8")
    (folder / "sub").mkdir()
    (folder / "sub" / "run.sh").write_text("torchrun train.py\n", "utf-8")
    assert [path.removeprefix("./") for path in paths_in(["."])] == [
        "ds.json",
        "other.yaml",
        "train.yaml",
        "sub/run.sh",
    ]


def test_files_of_a_circle_are_one_job_behind_the_others(folder: Path) -> None:
    (folder / "ds.json").write_text(ZERO.replace("{", '{"config": "train.yaml", ', 1), "utf-8")
    assert jobs("train.yaml", "ds.json", "other.yaml") == [
        ["other.yaml"],
        ["train.yaml", "ds.json"],
    ]


def test_a_file_that_is_given_twice_is_read_once(folder: Path) -> None:
    (folder / "link.yaml").symlink_to("other.yaml")
    assert paths_in(["other.yaml", "./other.yaml", "link.yaml", "-"]) == ("other.yaml", "-")
