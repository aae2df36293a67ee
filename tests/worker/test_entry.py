"""The user's own function: how it is found, called, and run for two steps."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from oomdoctor.memory.stream_replay import replay
from oomdoctor.model.job import EntrySpec, Job, ModelSpec
from oomdoctor.worker.errors import UnsupportedError
from oomdoctor.worker.fake.trace import trace
from oomdoctor.worker.run.entry import function_of, parts_of, value_of
from tests.worker.fake.cards import A100

if TYPE_CHECKING:
    from pathlib import Path

CODE = """
import torch

def make(device, width=8):
    model = torch.nn.Linear(width, width, bias=False, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    def step():
        model(torch.ones(2, width).cuda()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer, step

def alone():
    return "nothing"

def fails():
    raise ValueError("too small\\nand more")

def interrupts():
    raise KeyboardInterrupt

def fails_later():
    def step():
        raise SystemExit(3)
    return None, None, step
"""
WIDTH = 256
WEIGHT = WIDTH * WIDTH * 4


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write the user's code, and forget it afterwards."""
    (tmp_path / "own_code.py").write_text(CODE, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "own_code", raising=False)
    return str(tmp_path)


def job(place: str, folder: str, **arguments: str) -> Job:
    entry = EntrySpec(place=place, folder=folder, arguments=arguments)
    model = ModelSpec(name=place, config={}, source="test")
    return Job(model=model, framework="torch", entry=entry)


@pytest.mark.parametrize("place", ["own_code:make", "own_code.py:make"])
def test_two_steps_of_the_users_code_are_traced(folder: str, place: str) -> None:
    stream = trace(job(place, folder, width=str(WIDTH)), A100)

    phases = {one.name: one.allocated_bytes for one in replay(stream).phases}
    kinds = {one.category for one in stream.allocations if one.size == WEIGHT}
    assert (phases["load"], list(phases)) == (WEIGHT, ["load", "step 1", "step 2"])
    assert phases["step 2"] >= 3 * WEIGHT
    assert {"weights", "gradient", "optimizer"} <= kinds


@pytest.mark.parametrize(
    ("place", "arguments", "text"),
    [
        ("own_code:absent", {}, "no function absent"),
        ("absent_code:make", {}, "cannot be imported"),
        ("absent.py:make", {}, "no file"),
        ("own_code", {}, "module:function"),
        ("own_code:make", {"depth": "2"}, "no argument depth"),
        ("own_code:alone", {}, "returned no step"),
        ("own_code:fails", {}, r"raised ValueError: too small \(.*own_code.py:17\)$"),
        ("own_code:interrupts", {}, r"raised KeyboardInterrupt \(.*own_code.py:20\)$"),
        ("own_code:fails_later", {}, r"'s step raised SystemExit: 3 \(.*own_code.py:24\)$"),
        ("../own_code:make", {}, "cannot be imported: TypeError"),
    ],
)
def test_what_cannot_be_run_is_named(
    folder: str, place: str, arguments: dict[str, str], text: str
) -> None:
    with pytest.raises(UnsupportedError, match=text):
        trace(job(place, folder, **arguments), A100)


@pytest.mark.parametrize(
    ("text", "value"),
    [("2", 2), ("0.5", 0.5), ("True", True), ("none", None), ("bf16", "bf16"), ("1e-3", 1e-3)],
)
def test_arguments_are_numbers_where_they_read_as_such(text: str, value: object) -> None:
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)


def test_parts_come_as_three_values_an_object_or_a_mapping() -> None:
    def step() -> None: ...

    values: dict[str, Any] = {"model": torch.nn.Identity(), "optimizer": None, "step": step}

    shapes = (tuple(values.values()), SimpleNamespace(**values), values)
    assert [parts_of(one, "here").step for one in shapes] == [step] * 3


def test_a_function_of_a_folder_is_found(folder: str) -> None:
    entry = EntrySpec(place="own_code:make", folder=folder)

    assert function_of(entry).__name__ == "make"
