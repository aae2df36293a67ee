"""Texts, files and folders: what is read, in which order, and what is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor import inputs, side_by_side
from oomdoctor.errors import InputError
from oomdoctor.gathering import joined_texts
from oomdoctor.inputs import items_of
from oomdoctor.model.core import Fact, Quote
from oomdoctor.pipeline import gather

if TYPE_CHECKING:
    from pathlib import Path

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


def paths(folder: Path) -> list[str]:
    notes: list[str] = []
    return [(item.path or "")[len(str(folder)) + 1 :] for item in items_of(str(folder), notes)]


def test_folders_are_read_to_their_depth_in_the_order_of_numbers(tmp_path: Path) -> None:
    for name in ("a/10/err.log", "a/2/err.log", "train.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x: 1\n")

    assert paths(tmp_path) == ["a/2/err.log", "a/10/err.log", "train.yaml"]


def test_weights_caches_and_hidden_files_are_left_out_with_a_note(tmp_path: Path) -> None:
    for name in ("model.safetensors", "x.pt", ".git/HEAD", "__pycache__/a.pyc", "run/tool.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "crash.log").write_text(OOM)
    notes: list[str] = []

    found = items_of(str(tmp_path), notes)

    assert [item.path for item in found] == [str(tmp_path / "crash.log")]
    assert [note.rpartition(": ")[2] for note in notes] == [
        "1 .pt, 1 .py, 1 .safetensors, 1 __pycache__/"
    ]


def test_a_file_in_a_folder_and_by_name_is_read_once(tmp_path: Path) -> None:
    log = tmp_path / "crash.log"
    log.write_text(OOM)
    notes: list[str] = []

    found = items_of([str(log), str(tmp_path)], notes)

    assert len(found) == 1
    assert notes == [f"{log}: given twice, read once"]


def test_large_inputs_read_side_by_side_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in range(3):
        (tmp_path / f"rank_{rank}.log").write_text(f"step {rank}\n" + OOM * (rank == 1))
    alone = gather(str(tmp_path))
    monkeypatch.setattr("oomdoctor.pipeline.LARGE_BYTES", 1)

    together = gather(str(tmp_path))

    assert alone.failures == together.failures
    assert alone.facts == together.facts
    assert alone.logs == together.logs


def test_a_file_that_kills_its_reader_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = tmp_path / "good.log", tmp_path / "bad.log"
    good.write_text(OOM)
    bad.write_text(OOM)
    read = side_by_side.read_path

    def deadly(path: str, *, most_text: int = 0) -> object:
        if path == str(bad):
            import os

            os._exit(9)
        return read(path, most_text=most_text)

    monkeypatch.setattr(side_by_side, "read_path", deadly)

    found = side_by_side.read_side_by_side({str(bad): 1, str(good): 1}, most_text=0)

    assert isinstance(found[str(bad)], InputError)
    assert not isinstance(found[str(good)], InputError)


def test_a_file_that_main_memory_has_no_room_for_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = tmp_path / "good.log", tmp_path / "bad.log"
    good.write_text(OOM)
    bad.write_text(OOM)
    read = side_by_side.read_path

    def greedy(path: str, *, most_text: int = 0) -> object:
        if path == str(bad):
            raise MemoryError
        return read(path, most_text=most_text)

    monkeypatch.setattr(side_by_side, "read_path", greedy)

    found = side_by_side.read_side_by_side({str(bad): 1, str(good): 1}, most_text=0)

    assert isinstance(found[str(bad)], InputError)
    assert not isinstance(found[str(good)], InputError)


def test_the_text_of_many_logs_stays_bounded_and_keeps_the_first_whole() -> None:
    def text(name: str) -> Fact:
        quotes = tuple(Quote(artifact=name, line=at, text="x" * 40) for at in range(2000))
        return Fact(key="log.text", value="\n".join("x" * 40 for _ in quotes), quotes=quotes)

    (joined,) = joined_texts([text(f"rank{rank}.log") for rank in range(64)])

    assert [quote.artifact for quote in joined.quotes[:2000]] == ["rank0.log"] * 2000
    assert len(joined.quotes) == str(joined.value).count("\n") + 1
    assert len(joined.quotes) <= 6000
    assert {quote.artifact for quote in joined.quotes} == {f"rank{n}.log" for n in range(64)}


def test_a_folder_without_end_is_looked_at_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        (tmp_path / f"{number}" / "deeper").mkdir(parents=True)
        (tmp_path / f"{number}" / "deeper" / "rank.log").write_text(OOM)
    monkeypatch.setattr(inputs, "MOST_ENTRIES", 30)

    assert 0 < len(paths(tmp_path)) < 15


def test_a_folder_that_is_left_out_whole_says_why(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_text("x")

    with pytest.raises(InputError, match=r"left out: 1 \.safetensors"):
        items_of(str(tmp_path), [])
