"""Switches that exclude each other are compared within one place of a config."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config

HALVES = "precision.both_halves"
BITS = "quant.both_bits"


def places(text: str, name: str, key: str) -> list[tuple[object, int]]:
    return [
        (fact.value, fact.quotes[0].line)
        for reading in read_config(text, name=name)
        for fact in reading.facts
        if fact.key == key
    ]


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("bf16: true\nfp16: true\n", HALVES, [(True, 2)]),
        ("fp16: true\nlearning_rate: 1e-4\nbf16: true\n", HALVES, [(True, 3)]),
        ("fp16: true\nbf16: false\n", HALVES, [(False, 2)]),
        ("fp16: true\n", HALVES, []),
        ("fp16: true\nbf16: auto\n", HALVES, [(False, 2)]),
        ("load_in_4bit: true\nload_in_8bit: true\n", BITS, [(True, 2)]),
        ("load_in_4bit: true\nload_in_8bit:\n", BITS, [(False, 2)]),
        ("student: {fp16: true}\nteacher: {bf16: true}\n", HALVES, []),
        ("train:\n  fp16: true\n  bf16: true\n", HALVES, [(True, 3)]),
    ],
)
def test_two_switches_are_compared_where_they_stand_together(
    text: str, key: str, expected: list[tuple[object, int]]
) -> None:
    assert places(text, "train.yaml", key) == expected


def test_sections_of_deepspeed_count_as_switches() -> None:
    text = '{"fp16": {"enabled": true},\n"zero_optimization": {},\n"bf16": {"enabled": true}}'

    assert places(text, "ds.json", HALVES) == [(True, 3)]


def test_flags_of_a_command_are_compared() -> None:
    text = (
        "torchrun train.py --output_dir o --per_device_train_batch_size 1 --fp16 True --bf16 True\n"
    )

    assert places(text, "run.sh", HALVES) == [(True, 1)]
