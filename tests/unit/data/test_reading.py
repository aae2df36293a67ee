"""Every format of file gives the same rows, with the places where they stand."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet

from oomdoctor.data import cutting
from oomdoctor.data.files import files_of
from oomdoctor.data.measure import count_files
from oomdoctor.data.pieces import size_of
from oomdoctor.data.work import Setup

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


def test_a_piece_of_a_table_holds_its_own_rows_alone(tmp_path: Path) -> None:
    texts = ["x" * 1000] * 20_000
    parquet.write_table(pa.table({"text": texts}), tmp_path / "rows.parquet")
    (file,) = files_of([str(tmp_path / "rows.parquet")], [])

    pieces = list(cutting.pieces_of(file, field=None, stdin=None))

    assert len(pieces) > 20
    # such a text is packed to nothing; what is told of progress is the file's own size
    assert 0.9 * file.size <= sum(map(size_of, pieces)) <= file.size
    assert max(len(pickle.dumps(piece)) for piece in pieces) < 2 * 512 * 1000


def test_large_rows_make_small_pieces() -> None:
    assert cutting._rows_of_piece(512, 512 * 100) == 512
    assert cutting._rows_of_piece(100, 100 * 1024**2) == 4
    assert cutting._rows_of_piece(2, 1024**3) == 1
    assert cutting._rows_of_piece(3, 0) == 3


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
