"""Where a row stands is told by its line, and what cannot be read is told, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet

from oomdoctor.data import work
from oomdoctor.data.files import files_of, kind_of
from oomdoctor.data.measure import count_files
from oomdoctor.data.work import Setup
from oomdoctor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.data.tally import Tally

    WriteLines = Callable[..., str]


def counted(tokenizer: str, *paths: str) -> Tally:
    return count_files(files_of(paths, []), Setup(tokenizer), processes=1)


def test_rows_of_a_table_are_numbered_from_one(tokenizer: str, tmp_path: Path) -> None:
    table = pa.table({"text": ["a", "b", "the cat " * 50, "c"]})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=2)

    assert counted(tokenizer, str(tmp_path / "rows.parquet")).longest[0].line == 3


def test_objects_of_an_array_are_named_by_their_line(tokenizer: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('[\n {"text": "a"},\n\n {"text":\n "the cat sat on"},\n {"label": 2}\n]')

    found = counted(tokenizer, str(path))

    assert found.longest[0].line == 4
    assert found.first_faults[0].line == 6


def test_a_long_array_is_read_a_window_at_a_time(
    tokenizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oomdoctor.data.json_array.READ_CHARACTERS", 16)
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([{"text": "the cat"}] * 40))

    assert counted(tokenizer, str(path)).rows == 40


@pytest.mark.parametrize(
    ("text", "line"), [('[\n{"text": "a"},\n{"text": }\n]', 3), ('[\n{"text": "a"}', 2)]
)
def test_a_broken_array_is_told_with_its_line(
    tokenizer: str, tmp_path: Path, text: str, line: int
) -> None:
    path = tmp_path / "rows.json"
    path.write_text(text)

    with pytest.raises(InputError) as caught:
        counted(tokenizer, str(path))

    assert caught.value.location is not None
    assert line == caught.value.location.line


def test_a_split_that_lacks_names_those_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train"]}')

    with pytest.raises(InputError, match="it has: train"):
        files_of([str(tmp_path)], [], split="dev")


def test_files_of_a_folder_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("part-10.jsonl", "part-2.jsonl", "README.md", "dataset_info.json"):
        (tmp_path / name).write_text('{"text": "a"}\n')

    names = [Path(file.path).name for file in files_of([str(tmp_path)], [])]

    assert names == ["part-2.jsonl", "part-10.jsonl"]


def test_a_folder_without_data_says_what_it_looked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no data in this folder[\s\S]*parquet"):
        files_of([str(tmp_path)], [])


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("a", b"PAR1\x15", "parquet"),
        ("a", b"ARROW1\x00\x00", "arrow"),
        ("a", b"\xff\xff\xff\xff\x10", "arrow"),
        ("a.json", b'[{"text": 1}]', "json"),
        ("a.json", b'{"text": 1}\n{"text": 2}\n', "lines"),
        ("a.json", b'{\n  "data": [\n', "json"),
        ("a.json", b'{"text": broken}\n{"text": 2}\n', "lines"),
        ("a.jsonl", b"[1, 2]\n", "lines"),
        ("a.txt", b"once upon a time\n", "text"),
    ],
)
def test_a_file_is_recognised_by_what_it_holds(name: str, head: bytes, kind: str) -> None:
    assert kind == kind_of(name, head, size=len(head))


def test_a_line_that_is_too_long_is_a_fault_and_the_next_is_read(
    tokenizer: str, write_lines: WriteLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "LONGEST_LINE", 200)
    path = write_lines([{"text": "a"}, {"text": "b" * 500}, {"text": "c"}])

    found = counted(tokenizer, path)

    assert found.rows == 2
    assert [(one.line, one.reason) for one in found.first_faults] == [
        (2, "a line of more than 64 MiB")
    ]


def test_bytes_that_are_no_text_are_a_fault(tokenizer: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"text": "a"}\n{"text": "\xff\xfe"}\n{"text": ""}\n')

    found = counted(tokenizer, str(path))

    assert [(one.line, one.reason) for one in found.first_faults] == [
        (2, "not UTF-8"),
        (3, "no tokens in it"),
    ]


def test_a_broken_table_is_told(tokenizer: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"PAR1 and nothing that follows PAR1")

    with pytest.raises(InputError, match="cannot be read as parquet"):
        counted(tokenizer, str(path))


def test_a_file_that_is_not_there_is_told() -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        files_of(["nowhere.jsonl"], [])
