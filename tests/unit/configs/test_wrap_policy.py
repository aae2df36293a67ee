"""FSDP's wrap policy as configs spell it."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config

ACCELERATE = """compute_environment: LOCAL_MACHINE
distributed_type: FSDP
num_processes: 8
fsdp_config:
  fsdp_version: 1
  fsdp_auto_wrap_policy: {}
"""


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("NO_WRAP", [False]),
        ("TRANSFORMER_BASED_WRAP", [True]),
        ("SIZE_BASED_WRAP", [True]),
        ("null", []),
    ],
)
def test_no_wrap_is_one_unit(policy: str, expected: list[bool]) -> None:
    readings = read_config(ACCELERATE.format(policy), name="fsdp.yaml", path=None)

    actual = [fact.value for one in readings for fact in one.facts if fact.key == "dist.auto_wrap"]

    assert expected == actual
