"""Patches: the smallest edit of the file that was given, checked by reading it back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from oomdoctor.configs.patch import patch
from oomdoctor.configs.reader import read_config
from oomdoctor.model.plan import Patch

if TYPE_CHECKING:
    from oomdoctor.configs.dialect import ConfigReading

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "configs"


def given(text: str, path: str) -> tuple[ConfigReading, ...]:
    return read_config(text, name=path, path=path)


def fixture(path: str) -> tuple[ConfigReading, ...]:
    return given((FIXTURES / path).read_text(), path)


def changes(made: Patch) -> tuple[list[str], list[str]]:
    """Return the lines that a diff takes out and those that it puts in."""
    assert made.diff is not None
    rows = made.diff.split("\n")[2:]
    out = [row[1:] for row in rows if row.startswith("-")]
    return out, [row[1:] for row in rows if row.startswith("+")]


def one(path: str, dialect: str, **settings: object) -> tuple[list[str], list[str]]:
    dotted = {key.replace("__", "."): value for key, value in settings.items()}
    (made,) = patch(fixture(path), {dialect: dotted})
    return changes(made)


def test_a_value_is_replaced_and_its_comment_stays() -> None:
    assert one("hf_trainer/train.yaml", "hf_trainer", model_name_or_path="distilgpt2") == (
        ["model_name_or_path: gpt2   # the small one"],
        ["model_name_or_path: distilgpt2   # the small one"],
    )


def test_a_nested_key_is_replaced_in_its_mapping() -> None:
    assert one(
        "hf_trainer/train.yaml", "hf_trainer", gradient_checkpointing_kwargs__use_reentrant=True
    ) == (["    use_reentrant: false"], ["    use_reentrant: true"])


def test_a_new_nested_key_comes_as_a_mapping_in_the_files_own_indentation() -> None:
    assert one(
        "hf_trainer/train.yaml", "hf_trainer", activation_checkpointing_kwargs__use_reentrant=False
    ) == ([], ["activation_checkpointing_kwargs:", "    use_reentrant: false"])


def test_a_word_that_would_be_read_as_a_switch_is_quoted() -> None:
    assert one("hf_trainer/train.yaml", "hf_trainer", eval_strategy="no") == (
        ["eval_strategy: steps"],
        ["eval_strategy: 'no'"],
    )


def test_a_list_is_replaced_as_a_whole() -> None:
    assert one("trl/sft.yaml", "trl", lora_target_modules=["q_proj"]) == (
        ["lora_target_modules: [q_proj, v_proj]"],
        ["lora_target_modules: [q_proj]"],
    )


def test_a_file_with_capital_switches_gets_capital_switches() -> None:
    assert one("torchtune/qlora.yaml", "torchtune", enable_activation_checkpointing=False) == (
        ["enable_activation_checkpointing: True"],
        ["enable_activation_checkpointing: False"],
    )


def test_a_key_of_an_aliased_mapping_is_left_alone() -> None:
    text = "x: &x {lr: 1, output_dir: o}\ntrain: *x\nper_device_train_batch_size: 1\n"
    (made,) = patch(given(text, "t.yaml"), {"hf_trainer": {"train.lr": 2}})

    assert made == Patch(dialect="hf_trainer", settings={"train.lr": 2})


def test_an_anchor_is_not_lost() -> None:
    text = "optim: &x adafactor\noutput_dir: *x\nper_device_train_batch_size: 1\n"
    (made,) = patch(given(text, "t.yaml"), {"hf_trainer": {"optim.name": "sgd"}})

    assert made == Patch(dialect="hf_trainer", settings={"optim.name": "sgd"})


def test_json_keeps_its_indentation() -> None:
    assert one(
        "deepspeed/zero3.json",
        "deepspeed",
        zero_optimization__stage=2,
        zero_optimization__offload_param__device="cpu",
    ) == (
        ['    "stage": 3,', '    "reduce_bucket_size": "auto"'],
        [
            '    "stage": 2,',
            '    "reduce_bucket_size": "auto",',
            '    "offload_param": {',
            '      "device": "cpu"',
            "    }",
        ],
    )


def test_json_on_one_line_stays_on_one_line() -> None:
    from oomdoctor.configs.json_edit import edit

    text = '{"zero_optimization": {"stage": 2}, "bf16": {}}'
    wanted = {"zero_optimization.stage": 3, "bf16.enabled": True, "x": [1]}

    assert edit(text, wanted) == (
        '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}, "x": [1]}'
    )


def test_a_script_gets_keyword_arguments_in_its_own_layout() -> None:
    assert one(
        "python/train.py", "trl", per_device_train_batch_size=1, gradient_checkpointing=True
    ) == (
        ["    per_device_train_batch_size=4,  # fits?"],
        ["    per_device_train_batch_size=1,  # fits?", "    gradient_checkpointing=True,"],
    )


def test_a_named_constructor_of_a_script_is_edited() -> None:
    assert one("python/train.py", "python", LoraConfig__r=16) == (
        ['model = get_peft_model(model, LoraConfig(r=64, target_modules="all-linear"))'],
        ['model = get_peft_model(model, LoraConfig(r=16, target_modules="all-linear"))'],
    )


def test_settings_of_loading_go_to_the_call_that_loads() -> None:
    (made,) = patch(fixture("python/train.py"), {"trl": {"attn_implementation": "sdpa"}})

    assert changes(made) == ([], ["    attn_implementation='sdpa',"])


def test_what_no_call_of_a_script_takes_is_a_setting_to_make() -> None:
    made = patch(fixture("python/train.py"), {"trl": {"use_peft": True}})

    assert made == (Patch(dialect="trl", settings={"use_peft": True}),)


def test_an_assignment_of_a_script_is_edited() -> None:
    (made,) = patch(
        fixture("python/train.py"), {"python": {"torch.backends.cudnn.benchmark": False}}
    )

    assert changes(made) == (
        ["torch.backends.cudnn.benchmark = True"],
        ["torch.backends.cudnn.benchmark = False"],
    )


def test_nested_settings_are_merged_into_what_is_there() -> None:
    wanted: dict[str, object] = {"zero_optimization": {"stage": 2}}
    (made,) = patch(fixture("deepspeed/zero3.json"), {"deepspeed": wanted})

    assert (made.settings, changes(made)[1]) == (wanted, ['    "stage": 2,'])


@pytest.mark.parametrize("dialect", ["hf_trainer", "trl", "axolotl", "torchtune", "deepspeed"])
def test_a_file_is_of_the_dialect_that_its_reading_names(dialect: str) -> None:
    from oomdoctor.configs.dialect import ConfigReading as Reading

    reading = Reading(source_id="s", dialect=dialect, facts=(), text="seed: 1\n", path="s.yaml")
    (made,) = patch((reading,), {dialect: {"a": {"b": 2}}})

    assert changes(made) == ([], ["a:", "  b: 2"])


def test_json_under_a_yaml_name_stays_json() -> None:
    text = '{\n  "zero_optimization": {\n    "stage": 2\n  }\n}\n'
    (made,) = patch(given(text, "ds.yaml"), {"deepspeed": {"bf16.enabled": True}})

    assert changes(made) == ([], ["  },", '  "bf16": {', '    "enabled": true'])


def test_flags_are_replaced_or_appended_to_the_training_command() -> None:
    assert one(
        "shell/launch.sh", "hf_trainer", per_device_train_batch_size=1, optim="adamw_bnb_8bit"
    ) == (
        ["  --per_device_train_batch_size ${BATCH} --bf16 \\", "  --learning_rate 1e-5"],
        [
            "  --per_device_train_batch_size 1 --bf16 \\",
            "  --learning_rate 1e-5 \\",
            "  --optim adamw_bnb_8bit",
        ],
    )


def test_a_bare_switch_of_a_server_is_taken_out() -> None:
    assert one("vllm/serve.sh", "vllm", enforce_eager=False) == (
        ["  --max-model-len 32768 --tensor-parallel-size 2 \\", "  --enforce-eager"],
        ["  --max-model-len 32768 --tensor-parallel-size 2"],
    )


def test_a_script_and_the_command_that_starts_it_give_one_patch_of_the_script() -> None:
    script = given("from trl import SFTConfig\nargs = SFTConfig(\n    fp16=True,\n)\n", "train.py")
    command = given("deepspeed --num_gpus 4 train.py\n", "run.sh")
    off = {"fp16": False}

    (made,) = patch((*script, *command), {"trl": off, "hf_trainer": off})

    assert changes(made) == (["    fp16=True,"], ["    fp16=False,"])


def test_the_environment_is_exported_by_a_script_and_options_are_joined() -> None:
    new = {"env": {"OMP_NUM_THREADS": "4"}}
    joined = {"env": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128"}}

    (first,) = patch(fixture("vllm/serve.sh"), new)
    (second,) = patch(fixture("shell/launch.sh"), joined)
    assert changes(first) == ([], ["export OMP_NUM_THREADS=4"])
    assert changes(second)[1] == [
        "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128"
    ]


def test_the_environment_is_a_setting_to_make_where_no_script_is_given() -> None:
    wanted = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}

    assert patch(fixture("trl/sft.yaml"), {"env": wanted}) == (
        Patch(dialect="env", settings=wanted),
    )


@pytest.mark.parametrize(
    ("path", "dialect", "settings"),
    [
        ("trl/sft.yaml", "trl", {"bf16": True}),
        ("deepspeed/zero3.json", "deepspeed", {"zero_optimization.stage": 3}),
        ("python/train.py", "trl", {"bf16": True, "max_length": 2048}),
        ("shell/launch.sh", "hf_trainer", {"gradient_checkpointing": True}),
        ("shell/launch.sh", "env", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    ],
)
def test_what_is_so_already_gives_no_patch(
    path: str, dialect: str, settings: dict[str, object]
) -> None:
    assert patch(fixture(path), {dialect: settings}) == ()


def test_other_frameworks_are_left_out_once_a_file_takes_the_settings() -> None:
    made = patch(
        fixture("axolotl/qlora.yml"),
        {
            "hf_trainer": {"per_device_train_batch_size": 1},
            "axolotl": {"micro_batch_size": 1},
            "llamafactory": {"per_device_train_batch_size": 1},
            "env": {"A": "1"},
        },
    )

    assert [p.dialect for p in made] == ["axolotl", "env"]


def test_without_files_all_settings_are_given() -> None:
    made = patch((), {"hf_trainer": {"a": 1}, "axolotl": {"b": 2}})

    assert made == (
        Patch(dialect="hf_trainer", settings={"a": 1}),
        Patch(dialect="axolotl", settings={"b": 2}),
    )


def test_trl_files_take_the_arguments_of_the_trainer_they_build_on() -> None:
    (made,) = patch(fixture("trl/sft.yaml"), {"hf_trainer": {"gradient_checkpointing": True}})

    assert made.file == "trl/sft.yaml"
    assert changes(made)[1] == ["gradient_checkpointing: true"]


def test_one_part_of_a_mixed_text_is_edited() -> None:
    (made,) = patch(fixture("notes/mixed.txt"), {"deepspeed": {"zero_optimization.stage": 3}})

    assert changes(made)[1] == [
        '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}'
    ]


def test_a_missing_line_end_is_marked_in_the_diff() -> None:
    text = "output_dir: o\nper_device_train_batch_size: 4"
    (made,) = patch(given(text, "t.yaml"), {"hf_trainer": {"per_device_train_batch_size": 1}})

    assert made.diff == (
        "--- a/t.yaml\n+++ b/t.yaml\n@@ -1,2 +1,2 @@\n output_dir: o\n"
        "-per_device_train_batch_size: 4\n\\ No newline at end of file\n"
        "+per_device_train_batch_size: 1\n\\ No newline at end of file\n"
    )
