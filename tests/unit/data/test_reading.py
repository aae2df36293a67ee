"""Every format of file gives the same rows, with the places where they stand."""

from __future__ import annotations

import bz2
import gzip
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet

from oomdoctor.data import cutting, work
from oomdoctor.data.files import DataFile, files_of, kind_of
from oomdoctor.data.measure import count_files
from oomdoctor.data.work import Setup
from oomdoctor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from oomdoctor.data.tally import Tally

    WriteLines = Callable[..., str]

ROWS = [{"text": "the cat " * (at % 7 + 1)} for at in range(40)]


def counted(tokenizer: str, *paths: str, split: str | None = None, processes: int = 1) -> Tally:
    return count_files(files_of(paths, [], split=split), Setup(tokenizer), processes=processes)


@pytest.fixture
def expected(tokenizer: str, write_lines: WriteLines) -> Tally:
    """What the rows come to as JSON lines."""
    return counted(tokenizer, write_lines(ROWS, "expected.jsonl"))


def as_table() -> pa.Table:
    return pa.table({"text": [row["text"] for row in ROWS], "score": list(range(len(ROWS)))})


def write_arrow_stream(path: Path) -> None:
    table = as_table()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)


def write_arrow_file(path: Path) -> None:
    table = as_table()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)


WRITERS: dict[str, Callable[[Path], None]] = {
    "rows.json": lambda path: path.write_text(json.dumps(ROWS)) and None,
    "pretty.json": lambda path: path.write_text(json.dumps(ROWS, indent=2)) and None,
    "inside.json": lambda path: path.write_text(json.dumps({"v": 1, "data": ROWS})) and None,
    "rows.parquet": lambda path: parquet.write_table(as_table(), path, row_group_size=9),
    "stream.arrow": write_arrow_stream,
    "file.arrow": write_arrow_file,
    "rows.jsonl.gz": lambda path: path.write_bytes(gzip.compress(_lines())) and None,
    "rows.jsonl.bz2": lambda path: path.write_bytes(bz2.compress(_lines())) and None,
    "rows.txt": lambda path: path.write_text("".join(f"{row['text']}\n" for row in ROWS)) and None,
    "crlf.jsonl": lambda path: path.write_bytes(_lines().replace(b"\n", b"\r\n")) and None,
    "bom.jsonl": lambda path: path.write_bytes(b"\xef\xbb\xbf" + _lines()) and None,
    "without-suffix": lambda path: path.write_bytes(_lines()) and None,
    "last-line-open.jsonl": lambda path: path.write_bytes(_lines().rstrip()) and None,
}


def _lines() -> bytes:
    return "".join(json.dumps(row) + "\n" for row in ROWS).encode()


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_holds_the_same_rows(
    tokenizer: str, tmp_path: Path, expected: Tally, name: str
) -> None:
    path = tmp_path / name
    WRITERS[name](path)

    found = counted(tokenizer, str(path))

    assert found.rows == len(ROWS)
    assert not found.faults
    if name == "rows.txt":  # blanks at the ends of lines are no text
        assert expected.lengths.total() == found.lengths.total()
    else:
        assert expected.lengths == found.lengths


def test_standard_input_is_read_as_lines(tokenizer: str, expected: Tally) -> None:
    files = files_of(["-"], [])

    found = count_files(files, Setup(tokenizer), processes=1, stdin=io.BytesIO(_lines()))

    assert expected.lengths == found.lengths


@pytest.mark.parametrize("size", [1, 37, 100, 4096])
def test_pieces_change_nothing(
    tokenizer: str, write_lines: WriteLines, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    rows: list[object] = [*ROWS, "not json", "", {"text": "the " * 99}, {"label": 1}, *ROWS]
    path = write_lines(rows)
    whole = counted(tokenizer, path)

    monkeypatch.setattr(cutting, "PIECE_BYTES", size)
    pieces = counted(tokenizer, path)

    assert whole.lengths == pieces.lengths
    assert whole.longest[0] == pieces.longest[0]
    assert whole.longest[0].line == 43
    assert [(one.line, one.reason) for one in pieces.first_faults] == [
        (41, "not JSON"),
        (44, "no text field among label"),
    ]


def test_two_processes_count_what_one_does(
    tokenizer: str, write_lines: WriteLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[object] = [*ROWS * 20, "not json"]
    path = write_lines(rows)
    monkeypatch.setattr(cutting, "PIECE_BYTES", 2000)
    monkeypatch.setattr("oomdoctor.data.measure.SMALL_BYTES", 0)

    one, two = (counted(tokenizer, path, processes=count) for count in (1, 2))

    assert one.lengths == two.lengths
    assert one.longest == two.longest
    assert one.first_faults == two.first_faults


def test_progress_reaches_the_whole(tokenizer: str, write_lines: WriteLines) -> None:
    path = write_lines(ROWS)
    told: list[tuple[int, int | None]] = []

    count_files(
        files_of([path], []),
        Setup(tokenizer),
        processes=1,
        progress=lambda done, total: told.append((done, total)),
    )

    size = Path(path).stat().st_size
    assert told[-1] == (size, size)


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
    path.write_text(json.dumps(ROWS))

    assert counted(tokenizer, str(path)).rows == len(ROWS)


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


def test_what_save_to_disk_wrote_is_read_by_its_state(
    tokenizer: str, tmp_path: Path, expected: Tally
) -> None:
    for split in ("train", "test"):
        folder = tmp_path / "saved" / split
        folder.mkdir(parents=True)
        write_arrow_stream(folder / "data-00000-of-00001.arrow")
        write_arrow_stream(folder / "cache-0123.arrow")
        state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}
        (folder / "state.json").write_text(json.dumps(state))
        (folder / "dataset_info.json").write_text("{}")
    (tmp_path / "saved" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    notes: list[str] = []

    files = files_of([str(tmp_path / "saved")], notes)

    assert expected.lengths == count_files(files, Setup(tokenizer), processes=1).lengths
    assert "split train was read, not test" in notes[0]
    other = files_of([str(tmp_path / "saved")], [], split="test")
    assert [Path(file.path).parent.name for file in other] == ["test"]


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


def test_a_chat_is_counted_with_its_template(
    make_tokenizer: Callable[..., Path], write_lines: WriteLines
) -> None:
    template = "{% for m in messages %}<|user|>{{ m.content }}<|end|>{% endfor %}"
    folder = make_tokenizer(config={"chat_template": template})
    path = write_lines([{"messages": [{"role": "user", "content": "the cat"}] * 3}])

    plain = count_files(files_of([path], []), Setup(str(folder), template=False), processes=1)
    filled = count_files(files_of([path], []), Setup(str(folder)), processes=1)

    # three times two tokens of the template, instead of two line ends
    assert filled.longest[0].tokens == plain.longest[0].tokens - 2 + 6


def test_files_are_plain_values() -> None:
    assert DataFile("a", "lines", 3) == DataFile(path="a", kind="lines", size=3, packed=None)
