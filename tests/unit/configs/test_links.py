"""Files of a job that name each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.configs.links import linked
from oomdoctor.configs.reader import read_config

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = "model_name_or_path: {model}\noutput_dir: o\nper_device_train_batch_size: 1\n"

ACCELERATE = """\
compute_environment: X
distributed_type: DEEPSPEED
num_processes: 2
deepspeed_config:
  deepspeed_config_file: ds.json
"""
LAUNCH = """\
CFG=train.yaml
accelerate launch --config_file acc.yaml \\
  train.py --config $CFG --data data.json
"""
SCRIPT = """\
from transformers import TrainingArguments
TrainingArguments(output_dir="o", deepspeed="ds.json")
"""


def names(folder: Path, name: str, text: str) -> list[str]:
    """Return which files a text of a name links, as names below the folder."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    found = linked(read_config(text, name=str(path), path=str(path)))
    return [str(one).removeprefix(f"{folder}/") for one in found]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("ds.json", "acc.yaml", "train.yaml", "train.py", "data.json", "cfg.toml"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path.parent)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.yaml", TRAIN.format(model="x") + "deepspeed: ds.json\n", ["ds.json"]),
        ("a.yaml", TRAIN.format(model="./model") + "seed: 1\n", ["model/config.json"]),
        ("a.yaml", TRAIN.format(model="x") + "train_file: data.json\n", []),
        ("a.yaml", TRAIN.format(model="x") + "deepspeed: gone.json\n", []),
        (
            "a.yaml",
            ACCELERATE,
            ["ds.json"],
        ),
        (
            "run.sh",
            LAUNCH,
            ["train.yaml", "acc.yaml", "train.py"],
        ),
        ("run.sh", "llamafactory-cli train train.yaml\n", ["train.yaml"]),
        (
            "run.sh",
            "deepspeed --num_gpus 8 train.py --deepspeed ds.json\n",
            ["ds.json", "train.py"],
        ),
        ("run.sh", "./run_train.sh --job.config_file cfg.toml\n", ["cfg.toml"]),
        (
            "b.py",
            SCRIPT,
            ["ds.json"],
        ),
        ("sub/a.yaml", TRAIN.format(model="x") + "deepspeed: ../ds.json\n", ["ds.json"]),
    ],
)
def test_a_file_names_others_of_its_job(
    job: Path, name: str, text: str, expected: list[str]
) -> None:
    assert names(job, name, text) == expected


def test_a_name_is_seen_from_the_working_directory_as_well(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(job)

    text = TRAIN.format(model="x") + "deepspeed: ds.json\n"
    assert names(job, "sub/a.yaml", text) == ["ds.json"]


def test_a_file_does_not_name_itself(job: Path) -> None:
    assert names(job, "train.yaml", TRAIN.format(model="x") + "config: train.yaml\n") == []
