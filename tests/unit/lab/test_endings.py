"""How a process ended, in words."""

from __future__ import annotations

import signal

import pytest

from oomdoctor.lab.endings import signal_name


@pytest.mark.parametrize(
    ("number", "name"),
    [(9, "SIGKILL"), (int(signal.SIGRTMIN) + 1, f"signal {int(signal.SIGRTMIN) + 1}")],
)
def test_a_signal_without_a_name_has_its_number(number: int, name: str) -> None:
    assert signal_name(number) == name
