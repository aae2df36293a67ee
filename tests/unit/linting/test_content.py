"""Files are read to the byte, and fixed ones are written as they were."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import InputError
from oomdoctor.linting.content import Stored, content_of, rewrite
from oomdoctor.linting.files import paths_in, read_file
from oomdoctor.linting.fixing import UNSAFE, fixed
from oomdoctor.linting.run import Wanted, lint

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "model_name_or_path: gpt2\noutput_dir: out\nper_device_train_batch_size: 2\n"
TEXT = f"{HEAD}run_name: café\nbf16: true\nfp16: true\n"
WANTED = Wanted(select=("fp16-and-bf16",), search=False)
ENCODINGS = {
    "utf-8": TEXT.encode(),
    "bom": b"\xef\xbb\xbf" + TEXT.encode(),
    "crlf": TEXT.replace("\n", "\r\n").encode(),
    "no-final-line-end": TEXT.rstrip("\n").encode(),
    "utf-16": TEXT.encode("utf-16"),
    "utf-16-be": b"\xfe\xff" + TEXT.replace("\n", "\r\n").encode("utf-16-be"),
    "long-line": (f"note: {'a' * 200_000}\n" + TEXT).encode(),
}
LOSSY = {
    "nul": TEXT.replace("out", "o\0t").encode(),
    "cp1252": TEXT.encode("cp1252"),
}


def fix(path: Path) -> None:
    outcome = fixed([read_file(str(path))], WANTED, allowed=UNSAFE)
    for changed in outcome.changed:
        outcome.write(changed)


@pytest.mark.parametrize("data", ENCODINGS.values(), ids=ENCODINGS)
def test_a_fix_changes_its_setting_and_no_other_byte(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "train.yaml"
    path.write_bytes(data)

    fix(path)

    codec = {b"\xfe": "utf-16-be", b"\xff": "utf-16-le"}.get(data[:1], "utf-8")
    kept, end = "\nfp16: ".encode(codec), "true".encode(codec)
    assert path.read_bytes() == data.replace(kept + end, kept + "false".encode(codec))


@pytest.mark.parametrize("data", LOSSY.values(), ids=LOSSY)
def test_what_cannot_be_read_to_the_byte_is_linted_and_never_written(
    tmp_path: Path, data: bytes
) -> None:
    path = tmp_path / "train.yaml"
    path.write_bytes(data)

    outcome = fixed([read_file(str(path))], WANTED, allowed=UNSAFE)

    assert [one.rule for one in outcome.report.findings] == ["fp16-and-bf16"]
    assert (outcome.changed, path.read_bytes()) == ((), data)
    assert "not read to the byte" in outcome.report.notes[-1]


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "link.yaml"
    real.write_text(TEXT, "utf-8")
    real.chmod(0o741)
    link.symlink_to(real.name)

    fix(link)

    assert (link.is_symlink(), real.stat().st_mode & 0o777) == (True, 0o741)
    assert "fp16: false" in real.read_text("utf-8")


def test_a_file_that_has_changed_since_it_was_read_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text("a: 2\n", "utf-8")

    with pytest.raises(InputError, match="has changed since"):
        rewrite(str(path), Stored("utf-8"), before="a: 1\n", after="a: 3\n")

    assert path.read_text("utf-8") == "a: 2\n"


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write: No such file"):
        rewrite(str(tmp_path / "x"), Stored("utf-8"), before="", after="a")


def test_fixing_twice_changes_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(TEXT, "utf-8")
    fix(path)
    once = path.read_bytes()

    fix(path)

    assert path.read_bytes() == once


def test_a_folder_is_searched_for_files_alone(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(TEXT, "utf-8")
    (tmp_path / "nowhere.yaml").symlink_to("gone.yaml")
    (tmp_path / "round").symlink_to(".")
    os.mkfifo(tmp_path / "pipe.yaml")

    assert paths_in([str(tmp_path)]) == (str(tmp_path / "a.yaml"),)


def test_standard_input_has_lines_like_a_file(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(TEXT, "utf-8")
    with path.open("rb") as stream:
        (one,) = lint(["-"], WANTED, stdin=stream).findings

    assert (one.path, one.line, one.source_line) == ("<stdin>", 6, "fp16: true")


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.touch()

    assert content_of(str(path)).notes == (f"{path}: the input is empty",)
