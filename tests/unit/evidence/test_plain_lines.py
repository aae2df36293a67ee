"""Lines that are passed over when a log is cleaned come out as if they had been cleaned."""

from __future__ import annotations

import pytest

from oomdoctor.evidence import clean as cleaning
from oomdoctor.evidence.source import source_of_text

TEXT = """\
Killed
CUDA out of memory
CRITICAL [x.py:470] lost
C text behind a level of one letter
E0304 10:00:00.123 1234 file.cc:12] text of glog
ERROR [x.py:470] Traceback (most recent call last):
ERROR [x.py:470]   File "a.py", line 1, in f
Failed in between
ERROR [x.py:470] ValueError: no
May  2 10:00:00 node python[77]: text
Rank 3: text
rank 3: text
{'loss': 0.5, 'epoch': 0.1}
{"time": "2026-03-04T05:06:07Z", "message": "inside"}
  5%|#   | 5/99 [00:01<00:09, 9.9it/s]Traceback (most recent call last):
  lost[0m
plain [rank2]: two writers
"""


def test_a_plain_line_is_what_cleaning_would_have_made_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = source_of_text(TEXT)
    quick = cleaning.clean(source)
    monkeypatch.setattr(cleaning, "_is_plain", lambda *_, **__: False)
    assert cleaning.clean(source) == quick


@pytest.mark.parametrize("raw", ["Killed", "", "    loss.backward()", "{'loss': 0.5}", "Failed"])
def test_most_lines_are_plain(raw: str) -> None:
    assert cleaning._is_plain(raw, idle=True)


@pytest.mark.parametrize("raw", ["[rank0]: x", "May  2 x", "ERROR x", "Rank 3: x", "(pid=7) x"])
def test_a_line_that_may_have_a_prefix_is_not_plain(raw: str) -> None:
    assert not cleaning._is_plain(raw, idle=True)
