"""Misspelt keys are told with their place and the key that is meant; known keys never are."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config
from oomdoctor.configs.spelling import misspelt

HF = "model_name_or_path: x\noutput_dir: o\nper_device_train_batch_size: 1\n"
AXOLOTL = "base_model: x\ndatasets: [{path: a, typ: b}]\nmicro_batch_size: 1\n"
ACC = "compute_environment: X\ndistributed_type: FSDP\n"
TITAN = "[job]\ndump_folder='x'\n[training]\nlocal_batch_size = 1\n"
ZERO = '{"zero_optimization": {"stage": 2, %s}}'
TRAINER = "from transformers import TrainingArguments\nTrainingArguments(%s)\n"

LAUNCH = """\
torchrun t.py --learning_rate 1 --save_strategy no \\
 --per-device-train-batch-sise 4
"""


def found(name: str, text: str) -> list[tuple[str, str, int, int | None, str]]:
    return [
        (one.key, one.suggestion, one.quote.line, one.quote.column, one.quote.text)
        for reading in read_config(text, name=name, path=name)
        for one in misspelt(reading)
    ]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.yaml", HF + "learnig_rate: 1\n", ("learnig_rate", "learning_rate", 4, 1)),
        ("a.yaml", HF + "'eval_stratgey': no\n", ("eval_stratgey", "eval_strategy", 4, 2)),
        ("a.yaml", HF + "gradient_checkpoiting: 1\n", ("gradient_checkpoiting", None, 4, 1)),
        ("a.yaml", HF + "save_step: 1\n", ("save_step", "save_steps", 4, 1)),
        ("a.yaml", AXOLOTL + "sample_packng: true\n", ("sample_packng", "sample_packing", 4, 1)),
        (
            "a.yaml",
            f"{AXOLOTL}fsdp_config:\n  offload_parms: true\n",
            ("fsdp_config.offload_parms", "offload_params", 5, 3),
        ),
        ("a.yaml", ACC + "num_procesess: 2\n", ("num_procesess", "num_processes", 3, 1)),
        (
            "ds.json",
            ZERO % '"overlap_com": true',
            ("zero_optimization.overlap_com", "overlap_comm", 1, 37),
        ),
        (
            "ds.json",
            ZERO % '"stage3_param_persitance_threshold": 1',
            (
                "zero_optimization.stage3_param_persitance_threshold",
                "stage3_param_persistence_threshold",
                1,
                37,
            ),
        ),
        ("t.toml", TITAN + "seq_lenn = 1\n", ("training.seq_lenn", "seq_len", 5, 1)),
        (
            "a.sh",
            LAUNCH,
            ("per_device_train_batch_sise", "per_device_train_batch_size", 2, 4),
        ),
        (
            "a.py",
            TRAINER % "output_dir='o',\n  learnig_rate=1e-4",
            ("trainingarguments.learnig_rate", "learning_rate", 3, 3),
        ),
    ],
)
def test_a_near_miss_is_told_with_its_place(
    name: str, text: str, expected: tuple[str, str | None, int, int]
) -> None:
    key, meant, line, column = expected
    ((told, suggestion, at, start, written),) = found(name, text)

    assert (told, at, start) == (key, line, column)
    assert suggestion == (meant or "gradient_checkpointing")
    assert written.replace("-", "_").lower() == key.rpartition(".")[2]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", HF + "learning_rate: 1\nevaluation_strategy: no\nwarmup_ratio: 0.1\n"),
        ("a.yaml", HF + "my_own_key: 1\nlr: 1\nadam_beta4: 0.9\nbs: 1\n"),
        ("a.yaml", AXOLOTL + "deepspeed: x.json\nwandb_projekt_of_ours: x\n"),
        ("ds.json", ZERO % '"offload_param": {"device": "cpu", "nvme_path": "x"}'),
        ("a.py", TRAINER % "output_dir='o', **{'x': 1}"),
        ("ds.json", ZERO % '"stage3_max_live_parameters": 1, "mics_shard_size": 1'),
        ("a.yaml", "learnig_rate: 1\n"),
        ("a.sh", "torchrun ours.py --learning_rate 1 --save_strategy no --dataset_split a\n"),
        ("a.sh", "torchrun ours.py --base_model a --micro_batch_size 1 --dataset_paths b\n"),
    ],
)
def test_known_keys_and_far_ones_are_left_alone(name: str, text: str) -> None:
    assert found(name, text) == []
