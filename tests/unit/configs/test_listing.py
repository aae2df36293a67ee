"""The list of all settings: one line and one quote per setting, whatever the syntax."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config


def listed(text: str, name: str) -> list[str]:
    facts = [fact for reading in read_config(text, name=name) for fact in reading.facts]
    (fact,) = [fact for fact in facts if fact.key == "job.settings"]
    lines = str(fact.value).split("\n")
    assert len(lines) == len(fact.quotes)
    return lines


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "train.yaml",
            "bf16: True\nfp16: null\npeft:\n  targets: [q_proj, v_proj]\n  r: 8\n",
            [
                "bf16 = true",
                "fp16 = null",
                "peft.targets = q_proj,v_proj",
                "peft.r = 8",
            ],
        ),
        ("ds.json", '{"zero_optimization": {"stage": 2}}', ["zero_optimization.stage = 2"]),
        (
            "train.py",
            "from trl import SFTConfig\nargs = SFTConfig(max_length=2 * 512, bf16=False)\n",
            ["sftconfig.max_length = 1024", "sftconfig.bf16 = false"],
        ),
        (
            "run.sh",
            "accelerate launch --num_processes 2 train.py --bf16 --max_steps=10\n",
            ["accelerate.num_processes = 2", "bf16 = true", "max_steps = 10"],
        ),
    ],
)
def test_every_setting_stands_on_a_line_of_its_own(
    name: str, text: str, expected: list[str]
) -> None:
    assert expected == listed(text, name)


def test_a_line_is_quoted_where_the_value_stands() -> None:
    (reading,) = read_config("a: 1\nlr_scheduler_type: constant\n", name="x.yaml")
    (fact,) = [fact for fact in reading.facts if fact.key == "job.settings"]
    assert (
        fact.quotes[1].text,
        fact.quotes[1].line,
        fact.quotes[1].column,
    ) == ("constant", 2, 20)


def test_a_value_of_several_lines_takes_one() -> None:
    assert listed("notes: |\n  first\n  second\n", "x.yaml") == ["notes = first second"]
