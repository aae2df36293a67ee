"""Names for redaction are learned while the inputs are read, and each input is read once."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence.ends import END_BYTES, read_ends
from oomdoctor.evidence.hearing import heard_by, hush
from oomdoctor.evidence.source import read_source, source_of_text
from oomdoctor.pipeline import diagnose
from oomdoctor.render.json import to_json
from oomdoctor.render.redact import Names

if TYPE_CHECKING:
    from pathlib import Path

    from oomdoctor.evidence.source import Source

LOG = """\
lena@gpu-box-7.lab:~$ python train.py
Traceback (most recent call last):
  File "/job/lena/train.py", line 7, in <module>
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""


class _Once(BytesIO):
    """A stream that cannot be read twice."""

    def seekable(self) -> bool:
        return False


def test_a_name_in_a_line_that_nothing_quotes_is_taken_out_of_standard_input() -> None:
    names = Names()
    with names.learned():
        diagnosis = diagnose("-", stdin=_Once(LOG.encode()))
    assert "lena" in to_json(diagnosis)
    assert "lena" not in to_json(names.out_of(diagnosis))


def test_a_file_that_this_process_did_not_read_is_read_for_its_names(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG, encoding="utf-8")
    diagnosis = diagnose(str(tmp_path / "a.log"))
    assert "lena" not in to_json(Names().out_of(diagnosis))


@pytest.mark.parametrize("name", ["first line", "last line"])
def test_of_a_large_file_head_and_tail_are_read_again(tmp_path: Path, name: str) -> None:
    path = tmp_path / "large.log"
    path.write_text("first line\n" + "step\n" * 500_000 + "last line\n", encoding="utf-8")
    source = read_ends(str(path))
    assert name in source.text
    assert source.artifact.size_bytes == 2 * END_BYTES + 1


def test_a_small_file_is_read_whole_again(tmp_path: Path) -> None:
    path = tmp_path / "small.log"
    path.write_text(LOG, encoding="utf-8")
    assert read_ends(str(path)).text == LOG


def test_who_listens_hears_of_each_source_until_it_stops(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(LOG, encoding="utf-8")
    heard: list[Source] = []
    with heard_by(heard.append):
        read_source(str(path))
        source_of_text("step 1\n", name="<text>")
    read_source(str(path))
    assert [str(path), "<text>"] == [source.artifact.id for source in heard]


def test_a_process_of_its_own_tells_nobody() -> None:
    heard: list[Source] = []
    with heard_by(heard.append):
        hush()
        source_of_text("step 1\n", name="<text>")
    assert heard == []
