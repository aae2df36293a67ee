"""FSDP1's prefetch as configs spell it, and what a job makes of it."""

from __future__ import annotations

import json

import pytest

from oomdoctor.configs.reader import read_config

ACCELERATE = """compute_environment: LOCAL_MACHINE
distributed_type: FSDP
num_processes: 8
fsdp_config:
  fsdp_version: 1
  {}: {}
"""


def told(text: str, name: str) -> list[object]:
    readings = read_config(text, name=name, path=None)
    return [fact.value for one in readings for fact in one.facts if fact.key == "dist.prefetches"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("BACKWARD_PRE", [True]),
        ("BACKWARD_POST", [True]),
        ("NO_PREFETCH", [False]),
        ("somehow", []),
    ],
)
@pytest.mark.parametrize("key", ["fsdp_backward_prefetch", "fsdp_backward_prefetch_policy"])
def test_accelerate_says_whether_weights_are_gathered_ahead(
    key: str, value: str, expected: list[bool]
) -> None:
    assert expected == told(ACCELERATE.format(key, value), "fsdp.yaml")


def test_a_file_of_fsdp_options_says_it_too() -> None:
    text = json.dumps({"backward_prefetch": "backward_pre", "transformer_layer_cls_to_wrap": ["A"]})

    assert told(text, "fsdp.json") == [True]
