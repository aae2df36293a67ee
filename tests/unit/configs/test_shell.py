"""Shell scripts: flags in variables, documents in the script, edits of flags and variables."""

from __future__ import annotations

import pytest

from oomdoctor.configs import env_edit, shell_text
from oomdoctor.configs.cli_edit import edit, held
from oomdoctor.configs.patch import edited
from oomdoctor.configs.reader import read_config
from oomdoctor.configs.setting import Lines

SCRIPT = """\
#!/bin/bash
ARGS=(
    --per_device_train_batch_size 4   # rows
    --lora_target_modules q_proj "v_proj"
)
MORE=" --learning_rate 1e-4 \\
  --bf16 True "
cat > ds.json <<'EOF'
{
  "zero_optimization": {"stage": 2}
}
EOF
torchrun --nproc_per_node=8 train.py "${ARGS[@]}" $MORE \\
  --fsdp "full_shard auto_wrap" --evaluation_strategy steps \\
  --gradient_checkpointing_kwargs '{"use_reentrant": true, "x": 1}' \\
  --warmup_ratio=0.1 \\
  --last-one 1
"""


def test_flags_in_variables_and_documents_are_read_with_their_places() -> None:
    readings = read_config(SCRIPT, name="run.sh", path="run.sh")
    facts = {fact.key: fact for reading in readings for fact in reading.facts}
    places = {
        key: (facts[key].value, facts[key].quotes[0].line, facts[key].quotes[0].column)
        for key in ("train.micro_batch", "lora.targets", "train.amp", "dist.world_size")
    }

    assert places == {
        "train.micro_batch": (4, 3, 35),
        "lora.targets": ("q_proj,v_proj", 4, 27),
        "train.amp": ("bf16", 7, 10),
        "dist.world_size": (8, 13, 27),
    }
    assert [reading.dialect for reading in readings] == ["trl", "deepspeed", "hf_trainer"]


@pytest.mark.parametrize(
    ("key", "value", "before", "after"),
    [
        ("per_device_train_batch_size", 1, "size 4   # rows", "size 1   # rows"),
        ("lora_target_modules", ["a", "b c"], 'q_proj "v_proj"', "a 'b c'"),
        ("lora_target_modules", "!remove", '    --lora_target_modules q_proj "v_proj"\n', ""),
        ("bf16", False, "--bf16 True", "--bf16 False"),
        ("fsdp", "!remove", ' --fsdp "full_shard auto_wrap"', " "),
        ("fsdp", "hybrid_shard", '"full_shard auto_wrap"', "hybrid_shard"),
        ("evaluation_strategy", "!rename eval_strategy", "--evaluation_s", "--eval_s"),
        ("gradient_checkpointing_kwargs.use_reentrant", False, '": true', '": false'),
        ("gradient_checkpointing_kwargs.x", "!remove", ', "x": 1', ""),
        ("warmup_ratio", "!remove", "  --warmup_ratio=0.1 \\\n", ""),
        ("warmup_ratio", "!rename warmup_steps", "--warmup_ratio=", "--warmup_steps="),
        ("last_one", "!rename the_last", "--last-one", "--the-last"),
        ("last_one", "!remove", " \\\n  --last-one 1", ""),
        ("seed", 3, "--last-one 1", "--last-one 1 \\\n  --seed 3"),
        ("nothing", "!remove", "", ""),
    ],
)
@pytest.mark.parametrize("ended", ["\n", "\r\n"])
def test_an_edit_of_a_flag_changes_nothing_else(
    key: str, value: object, before: str, after: str, ended: str
) -> None:
    text = SCRIPT.replace("\n", ended)
    expected = SCRIPT.replace(before, after).replace("   --eval", "  --eval").replace("\n", ended)

    changed = edit(text, {key: value}, "hf_trainer")

    assert changed == expected
    assert held(changed, key, "hf_trainer")[0] is not str(value).startswith("!")


def test_overrides_without_dashes_are_edited() -> None:
    text = "tune run --nproc_per_node 2 full --config a.yaml batch_size=4 optimizer.lr=1e-4\n"
    wanted = {"batch_size": "!remove", "optimizer.lr": 2e-5, "seed": 3}

    assert edit(text, wanted, "torchtune") == (
        "tune run --nproc_per_node 2 full --config a.yaml optimizer.lr=2e-05 seed=3\n"
    )


def test_what_the_launcher_takes_stands_before_the_script() -> None:
    text = "accelerate launch --num_processes 2 train.py --bf16 True\n"

    assert edit(text, {"mixed_precision": "bf16", "num_processes": 4}, "accelerate") == (
        "accelerate launch --mixed_precision bf16 --num_processes 4 train.py --bf16 True\n"
    )


def test_a_document_in_a_script_is_edited() -> None:
    readings = read_config(SCRIPT, name="run.sh", path="run.sh")

    assert edited(readings, "deepspeed", {"zero_optimization": {"stage": 3}}) == SCRIPT.replace(
        '"stage": 2', '"stage": 3'
    )


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("export A=1\npython t.py\n", "!remove", "python t.py\n"),
        ("A=1 B=2 python t.py\n", "!remove", "B=2 python t.py\n"),
        ("export A=1\r\n", "!rename C", "export C=1\r\n"),
        ("python t.py\r\n", "x y", "export A='x y'\r\npython t.py\r\n"),
        ("python t.py\n", "!remove", "python t.py\n"),
    ],
)
def test_variables_are_set_taken_out_and_renamed(before: str, value: str, after: str) -> None:
    assert env_edit.set_variables(before, {"A": value}) == after


DIFFUSION = (
    "accelerate launch t.py --pretrained_model_name_or_path a --resolution 512"
    " --train_batch_size 1 --gradient_accumulation_steps 4 --optimizer adamw"
)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("torchrun tune.py --base_model a --micro_batch_size 4 --val_set_size 9", "shell"),
        ("torchrun tune.py --base_model a --micro_batch_size 4 --optim a", "shell"),
        (DIFFUSION, "diffusers"),
        ("axolotl train a.yml --base_model a --micro_batch_size 4", "axolotl"),
        ("accelerate launch -m axolotl.cli.train a.yml --micro_batch_size 4", "axolotl"),
    ],
)
def test_flags_of_a_script_are_of_no_dialect_that_only_files_have(
    command: str, expected: str
) -> None:
    (reading,) = read_config(command + "\n", name="run.sh", path="run.sh")

    assert reading.dialect == expected


OWN = """\
torchrun --nproc_per_node 2 ours.py --model_name_or_path m/x --output_dir o --max_length 64 \\
  --per_device_train_batch_size 1 --learning_rate 1e-4 --num_train_epochs 1 --bf16 True \\
  --logging_steps 1 --save_strategy epoch %s
"""


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--use_peft_lora True --use_4bit_quantization True", ("stated", True, "bnb4")),
        ("--lora_r 8 --lora_alpha 16", ("assumed", True, None)),
        ("--use_peft_lora False", ("stated", False, None)),
        ("", ("assumed", False, None)),
        ("--use_peft True", ("stated", True, None)),
    ],
)
def test_that_a_script_of_ones_own_trains_no_adapter_is_only_supposed(
    flags: str, expected: tuple[str, bool, str | None]
) -> None:
    (reading,) = read_config(OWN % flags, name="run.sh", path="run.sh")
    facts = {fact.key: fact for fact in reading.facts}
    on, quant = facts["lora.on"], facts.get("quant.kind")

    assert (on.origin.value, on.value, quant.value if quant else None) == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("serve m --port 1 > a.log 2>&1 &\n", "serve m --port 1 > a.log 2>&1 --max_num_seqs 4 &\n"),
        ("vllm serve m &> a.log\n", "vllm serve m &> a.log --max_num_seqs 4\n"),
        ("vllm serve m & echo on\n", "vllm serve m --max_num_seqs 4 & echo on\n"),
    ],
)
def test_a_flag_is_added_to_a_command_whose_streams_are_joined(before: str, after: str) -> None:
    found = edit(before, {"max_num_seqs": 4}, "vllm")

    assert found is not None
    assert found.replace("max-num", "max_num") == after


@pytest.mark.parametrize("end", [" > a.log 2>&1 &", " 2>&1 | tee a.log", " &> a.log", " >> a.log"])
def test_where_the_output_goes_is_no_value(end: str) -> None:
    (reading,) = read_config(f"vllm serve m --dtype half{end}\n", name="a.sh", path="a.sh")
    (settings,) = [fact.value for fact in reading.facts if fact.key == "job.settings"]

    assert settings == "dtype = half"


def test_a_placeholder_in_angle_brackets_is_a_value() -> None:
    (reading,) = read_config("vllm serve m --dtype <type> --seed 1\n", name="a.sh", path="a.sh")
    (settings,) = [fact.value for fact in reading.facts if fact.key == "job.settings"]

    assert settings == "dtype = <type>\nseed = 1"


@pytest.mark.parametrize(("flags", "size"), [("", 1), (" --multiprocessing-distributed", None)])
def test_a_world_of_one_that_starts_a_rank_per_card_counts_nodes(
    flags: str, size: int | None
) -> None:
    text = f"python main.py --dist-url tcp://localhost:29500 --world-size 1 --rank 0{flags}\n"
    facts = {fact.key: fact.value for one in read_config(text, name="run.sh") for fact in one.facts}

    assert facts.get("dist.world_size") == size


def test_words_beyond_the_most_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    plain = shell_text._without_directive

    def counted(line: str) -> str:
        looked.append(line)
        return plain(line)

    monkeypatch.setattr(shell_text, "_without_directive", counted)
    lines = Lines.of_text("run.sh", "{\n" * (2 * shell_text.MAX_WORDS))

    assert sum(1 for _ in shell_text.commands(lines)) == shell_text.MAX_WORDS
    assert len(looked) == shell_text.MAX_WORDS
