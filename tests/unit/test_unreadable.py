"""Inputs that cannot be read: what can be read is diagnosed, and the rest is named."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import InputError
from oomdoctor.pipeline import diagnose
from tests.hang import no_hang

if TYPE_CHECKING:
    from pathlib import Path

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB."


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "crash.log"
    path.write_text(OOM)
    return path


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"PK\x03\x04" + bytes(2000))
    return path


def test_a_binary_among_logs_is_noted_and_the_logs_are_read(log: Path, weights: Path) -> None:
    found = diagnose([str(weights), str(log)])

    assert found.event is not None
    assert f"left out: {weights}: this is a zip archive" in "\n".join(found.notes)


def test_a_config_that_is_no_text_is_noted_and_the_log_is_read(log: Path, weights: Path) -> None:
    found = diagnose([str(log)], config=[str(weights)])

    assert found.event is not None
    assert found.notes[0].startswith(f"left out: {weights}")


def test_an_input_that_alone_cannot_be_read_is_an_error(weights: Path) -> None:
    with pytest.raises(InputError, match="zip archive"):
        diagnose([str(weights)])


def test_a_path_that_is_not_there_is_an_error_beside_a_log_too(log: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        diagnose([str(log), str(log.parent / "crahs.log")])


def test_a_file_given_twice_fails_once(log: Path) -> None:
    found = diagnose([str(log), str(log.parent), str(log)])

    assert found.facts["oom.events"].value == 1
    assert f"{log}: given twice, read once" in found.notes


def test_empty_files_of_a_directory_are_passed_over(log: Path) -> None:
    (log.parent / "empty.log").write_text("")

    assert [one.path for one in diagnose([str(log.parent)]).artifacts] == [str(log)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with a name")
def test_pipes_and_links_to_themselves_do_not_stop_a_directory(log: Path) -> None:
    os.mkfifo(log.parent / "pipe")
    (log.parent / "loop").symlink_to("loop")
    (log.parent / "self").symlink_to(".")
    with no_hang(seconds=20):
        found = diagnose([str(log.parent)])

    assert [one.path for one in found.artifacts] == [str(log)]


def test_a_directory_without_text_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no readable file"):
        diagnose([str(tmp_path)])


def test_standard_input_may_be_empty() -> None:
    assert diagnose("-", stdin=io.BytesIO(b"")).answer == "nothing_found"
