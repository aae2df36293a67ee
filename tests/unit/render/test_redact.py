"""Nothing that names people, machines or secrets is shared by accident."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from oomdoctor.render.json import to_json
from oomdoctor.render.redact import Names
from tests.hang import no_hang

if TYPE_CHECKING:
    from oomdoctor.model.plan import Diagnosis


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/lena/x.py and /home/lena/y", "/home/USER1/x.py and /home/USER1/y"),
        ("/home/lena/x /Users/max/y", "/home/USER1/x /Users/USER2/y"),
        ("C:\\Users\\lena\\x", "C:\\Users\\USER1\\x"),
        ("lena@gpu-box-7.lab:~$ python", "USER1@HOST1-7:~$ python"),
        ("gpu-box-7:4711:4820 [0] NCCL WARN x", "HOST1-7:4711:4820 [0] NCCL WARN x"),
        ("at 10.12.0.7 port 29500", "at ADDRESS1 port 29500"),
        ("HF_TOKEN=hf_abcdefghijklmnopqrst", "HF_TOKEN=SECRET1"),
        ('"api_key": "s3cr3t-value"', '"api_key": "SECRET1"'),
        ("/opt/venv/lib/python3.11/site-packages/x", "/opt/venv/lib/python3.11/site-packages/x"),
        ("driver 550.127.05, torch 2.5.1+cu124", "driver 550.127.05, torch 2.5.1+cu124"),
        ("Tried to allocate 2.32 GiB", "Tried to allocate 2.32 GiB"),
        ("pad_token: eos", "pad_token: eos"),
        ("max_new_tokens=4096", "max_new_tokens=4096"),
    ],
)
def test_names_and_secrets_become_placeholders(
    nothing: Diagnosis, text: str, expected: str
) -> None:
    assert Names().out_of(replace(nothing, headline=text)).headline == expected


def test_every_text_of_an_answer_is_redacted(full: Diagnosis) -> None:
    path = "/home/lena/crash.log"
    assert full.event is not None
    quote = replace(full.event.line_quote, artifact=path, text=path)
    first, *others = full.causes
    told = replace(
        full,
        event=replace(full.event, line_quote=quote),
        causes=(replace(first, quotes=(quote,)), *others),
        notes=(path,),
    )

    assert "lena" not in to_json(Names().out_of(told))


def test_an_answer_without_names_stays_as_it_is(full: Diagnosis) -> None:
    assert to_json(Names().out_of(full)) == to_json(full)


@pytest.mark.parametrize("part", ["x.b", "token=", "a-", "http://"])
def test_long_lines_are_redacted_in_time(nothing: Diagnosis, part: str) -> None:
    text = part * (60_000 // len(part))
    with no_hang(seconds=20):
        shown = Names().out_of(replace(nothing, headline=text)).headline
    assert shown == text
