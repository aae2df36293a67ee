"""Notes on a table of another card, and on a kill in another input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.pipeline import diagnose

if TYPE_CHECKING:
    from pathlib import Path

MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
    " capacity of {capacity} GiB of which 300.00 MiB is free. Of the allocated memory 20.00 GiB is"
    " allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.\n"
)
TABLE = (
    "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
    "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
    "|=========================================+========================+======================|\n"
    "|   0  NVIDIA GeForce RTX 4090        Off |   00000000:01:00.0 Off |                  Off |\n"
    "| 30%   40C    P2             70W / 450W |   20100MiB /  24564MiB |      0%      Default |\n"
)
KILL = (
    "slurmstepd: error: Detected 1 oom_kill event in StepId=9.0. Some of the step tasks have been"
    " OOM Killed.\n"
)


def notes_of(folder: Path, **texts: str) -> tuple[str, ...]:
    paths = []
    for name, text in texts.items():
        path = folder / f"{name}.txt"
        path.write_text(text, encoding="utf-8")
        paths.append(str(path))
    return tuple(one for one in diagnose(paths).notes if "table (" in one or "as well" in one)


@pytest.mark.parametrize(("capacity", "told"), [("79.11", 1), ("23.64", 0)])
def test_a_table_of_another_card_than_the_message_is_noted(
    tmp_path: Path, capacity: str, told: int
) -> None:
    notes = notes_of(tmp_path, log=MESSAGE.format(capacity=capacity), smi=TABLE)

    assert len(notes) == told


def test_the_note_names_both_lines(tmp_path: Path) -> None:
    (note,) = notes_of(tmp_path, log=MESSAGE.format(capacity="79.11"), smi=TABLE)

    assert f"{tmp_path / 'smi.txt'}:5" in note
    assert f"{tmp_path / 'log.txt'}:1" in note


def test_a_kill_in_another_input_than_the_devices_failure_is_noted(tmp_path: Path) -> None:
    (note,) = notes_of(tmp_path, log="step 3\n" * 4 + MESSAGE.format(capacity="23.64"), job=KILL)

    assert " reports " in note
    assert note.endswith("as well: see which of the two came first")


def test_a_kill_alone_needs_no_note(tmp_path: Path) -> None:
    assert notes_of(tmp_path, job=KILL) == ()
