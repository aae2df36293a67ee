"""Each dialect and each field it can write: read, located, edited, taken out, renamed, put back."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from oomdoctor.configs.patch import edited
from oomdoctor.configs.reader import read_config
from tests.unit.configs import matrix_more as more
from tests.unit.configs import matrix_table as table
from tests.unit.configs import matrix_text as text_of
from tests.unit.configs.matrix_text import Raw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.configs.dialect import ConfigReading
    from oomdoctor.model.core import Fact
    from tests.unit.configs.matrix_table import Row


class Case(NamedTuple):
    """A file of a dialect: its name, its text, the rows that it holds.

    `fixed` says that keys cannot go: the defaults of a script's own flags.
    """

    name: str
    shown: str
    dialect: str
    text: str
    rows: Sequence[Row]
    fixed: bool = False


def values(rows: Sequence[Row], **others: Any) -> dict[str, Any]:
    return {**others, **{row.key: row.old for row in rows}}


def called(rows: Sequence[Row], target: str, **others: Any) -> dict[str, dict[str, Any]]:
    """Sort settings by the call that takes them, under the names that they have there."""
    from oomdoctor.configs.python_takers import ADAPTER

    calls: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = ADAPTER.get(row.key, row.key) if row.where == "LoraConfig" else row.key
        calls.setdefault(row.where or target, {})[name.removeprefix("trainer.")] = row.old
    calls[target].update(others)
    return calls


T = (*table.TRAINER, table.REENTRANT)
HF = {"model_name_or_path": "org/one-7b"}
TRL = (*T, *table.TRL, *table.ADAPTER, *table.LOADING)
IN_CODE = (*T, *table.TRL, *table.IN_CODE)
PLAIN = tuple(row for row in T if row.key != "output_dir")
FULL = {"use_peft": True, **HF}
TRLS = "from trl import SFTConfig"
LAUNCH = "accelerate launch --num_machines 1 train.py"
LLM = "from vllm import LLM"
TITAN = tuple(r for r in more.TORCHTITAN if r.fact != "eval.steps")
STAY = ("job.task", "lora.on")  # other settings say the same
CASES = (
    Case("hf.yaml", "hf_trainer", "hf_trainer", text_of.as_yaml(values(T, **HF)), T),
    Case("hf.json", "hf_trainer", "hf_trainer", text_of.as_json(values(T, **HF)), T),
    Case(
        "hf.sh", "hf_trainer", "hf_trainer", text_of.as_flags(values(T, **HF), "torchrun t.py"), T
    ),
    Case(
        *("hf.py", "python", "hf_trainer"),
        text_of.as_python(called(T, "TrainingArguments"), "import transformers"),
        T,
    ),
    Case("trl.yaml", "trl", "trl", text_of.as_yaml(values(TRL, **HF)), TRL),
    Case("trl.sh", "trl", "trl", text_of.as_flags(values(TRL, **HF), "trl sft"), TRL),
    Case("trl.py", "python", "trl", text_of.as_python(called(IN_CODE, "SFTConfig"), TRLS), IN_CODE),
    Case(
        *("trl.ipynb", "python", "trl"),
        text_of.as_notebook(text_of.as_python(called(IN_CODE, "SFTConfig"), TRLS)),
        IN_CODE,
    ),
    Case(
        "axolotl.yml", "axolotl", "axolotl", text_of.as_yaml(values(table.AXOLOTL)), table.AXOLOTL
    ),
    Case(
        *("lf.yaml", "llamafactory", "llamafactory"),
        text_of.as_yaml(values(table.LLAMAFACTORY, template="x", **HF)),
        table.LLAMAFACTORY,
    ),
    Case(
        *("lf.sh", "llamafactory", "llamafactory"),
        text_of.as_flags(values(table.LLAMAFACTORY, **HF), "llamafactory-cli train"),
        table.LLAMAFACTORY,
    ),
    Case(
        *("u.py", "unsloth", "unsloth"),
        text_of.as_python(called(more.UNSLOTH, "SFTConfig"), "import unsloth\n" + TRLS),
        more.UNSLOTH,
    ),
    Case(
        *("ds.json", "deepspeed", "deepspeed"),
        text_of.as_json(values(table.DEEPSPEED)),
        table.DEEPSPEED,
    ),
    Case(
        *("acc.yaml", "accelerate", "accelerate"),
        text_of.as_yaml(
            values(table.ACCELERATE, compute_environment="X", distributed_type="DEEPSPEED")
        ),
        table.ACCELERATE,
    ),
    Case("fsdp.json", "fsdp", "fsdp", text_of.as_json(values(table.FSDP)), table.FSDP),
    Case(
        *("fsdp.yaml", "fsdp", "fsdp"),
        "\n".join(["# head", *text_of.yaml_rows(values(table.FSDP), 0), "# tail", ""]),
        table.FSDP,
    ),
    Case(
        "tune.yaml",
        "torchtune",
        "torchtune",
        text_of.as_yaml(values(more.TORCHTUNE)),
        more.TORCHTUNE,
    ),
    Case(
        *("titan.toml", "torchtitan", "torchtitan"),
        text_of.as_toml(values(more.TORCHTITAN, **{"model.name": "x"})),
        more.TORCHTITAN,
    ),
    Case("titan.py", "torchtitan", "torchtitan", text_of.as_sections(values(TITAN)), TITAN),
    Case(
        *("titan.sh", "torchtitan", "torchtitan"),
        "torchrun -m torchtitan.train "
        + " ".join(f"--{row.key} {row.old}" for row in more.TORCHTITAN if row.old is not True)
        + "  # end\n",
        tuple(row for row in more.TORCHTITAN if row.old is not True),
    ),
    Case(
        *("light.yaml", "lightning", "lightning"),
        text_of.as_yaml(values(more.LIGHTNING, **{"model.class_path": "m.Net"})),
        more.LIGHTNING,
    ),
    Case(
        *("light.py", "python", "lightning"),
        text_of.as_python(called(more.LIGHTNING[:6], "Trainer"), "import lightning"),
        more.LIGHTNING[:6],
    ),
    Case(
        "gpt.py", "nanogpt", "nanogpt", text_of.as_assignments(values(more.NANOGPT)), more.NANOGPT
    ),
    Case(
        *("dream.sh", "diffusers", "diffusers"),
        text_of.as_flags(values((*more.DIFFUSERS, *more.SWITCHES), instance_prompt="a"), LAUNCH),
        more.DIFFUSERS,
    ),
    Case(
        *("dream.py", "diffusers", "diffusers"),
        text_of.as_defaults(values(more.DIFFUSERS), "import argparse, diffusers"),
        *(more.DIFFUSERS, True),
    ),
    Case(
        *("vllm.sh", "vllm", "vllm"),
        text_of.as_flags(values(more.VLLM), "vllm serve org/one-7b", dashes=True),
        more.VLLM,
    ),
    Case("vllm.yaml", "vllm", "vllm", text_of.as_yaml(values(more.VLLM, model="org/x")), more.VLLM),
    Case("vllm.py", "python", "vllm", text_of.as_python(called(more.VLLM, "LLM"), LLM), more.VLLM),
    Case(
        *("sglang.sh", "sglang", "sglang"),
        text_of.as_flags(values(more.SGLANG), "python -m sglang.launch_server", dashes=True),
        more.SGLANG,
    ),
    Case("sglang.yaml", "sglang", "sglang", text_of.as_yaml(values(more.SGLANG)), more.SGLANG),
)
WAYS = (("\n", True), ("\r\n", False), ("\n", False), ("\r\n", True))
"""Line end, and whether the last line has one; each row is written in one of these ways."""
ROWS = [(case, row) for case in CASES for row in case.rows]
MATRIX = [(case, row, *WAYS[at % len(WAYS)]) for at, (case, row) in enumerate(ROWS)]
IDS = [f"{case.name}-{row.key}" for case, row in ROWS]
MARKS = "case", "row", "ended", "closed"


@cache
def given(text: str, name: str) -> tuple[ConfigReading, ...]:
    return read_config(text, name=name, path=name)


def fact_of(text: str, case: Case, row: Row) -> Fact | None:
    """Return what a text says of a field: its fact, or its line of all settings."""
    facts = [fact for reading in given(text, case.name) for fact in reading.facts]
    return next((fact for fact in facts if fact.key == row.fact), None)


def said(text: str, case: Case, row: Row) -> Any:
    fact = fact_of(text, case, row)
    return None if fact is None else fact.value


def same(value: Any, expected: Any) -> bool:
    if isinstance(expected, str) and expected.startswith("output_dir"):
        return expected in str(value)
    if expected is None:  # not said, or said to be off
        return value in (None, False)
    return bool(value == expected)


def region(before: str, after: str) -> tuple[int, int, str]:
    """Return which stretch of a text another one changes, and what stands there instead."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    tail = 0
    room = min(len(before), len(after)) - start
    while tail < room and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return start, len(before) - tail, after[start : len(after) - tail]


def written(case: Case, ended: str, *, closed: bool = True) -> str:
    text = case.text if closed else case.text.rstrip("\n")
    return text.replace("\n", ended)


def change(text: str, case: Case, key: str, value: object) -> str:
    after = edited(given(text, case.name), case.dialect, {key: value})
    assert after is not None, f"{key} cannot be edited"
    return after


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_dialect_is_recognised(case: Case) -> None:
    assert given(written(case, "\r\n"), case.name)[0].dialect == case.shown


@pytest.mark.parametrize(MARKS, MATRIX, ids=IDS)
def test_a_field_is_read_located_and_edited(case: Case, row: Row, ended: str, closed: bool) -> None:
    before = written(case, ended, closed=closed)
    fact = fact_of(before, case, row)

    after = change(before, case, row.key, row.new)

    assert fact is not None
    assert same(fact.value, row.said(changed=False))
    assert same(said(after, case, row), row.said(changed=True))
    start, end, new = region(before, after)
    assert "\n" not in new.replace(ended, "") or ended == "\n"
    if row.fact != "job.settings" and "job.settings" not in row.fact:
        places = [place(before, quote) for quote in fact.quotes]
        switch = not new and before[start:end].strip(" \t\\\r\n-") == fact.quotes[0].text[2:]
        assert switch or any(first - 2 <= start and end <= last + 2 for first, last in places)


def place(text: str, quote: Any) -> tuple[int, int]:
    """Return the stretch of a text that a quote names, after seeing that it stands there."""
    rows = text.split("\n")
    row = rows[quote.line - 1]
    assert row[quote.column - 1 : quote.end_column - 1] == quote.text
    at = sum(len(one) + 1 for one in rows[: quote.line - 1])
    return at + quote.column - 1, at + quote.end_column - 1


@pytest.mark.parametrize(MARKS, MATRIX, ids=IDS)
def test_a_field_is_taken_out_and_put_back(case: Case, row: Row, ended: str, closed: bool) -> None:
    before = written(case, ended, closed=closed)
    if case.fixed:
        assert edited(given(before, case.name), case.dialect, {row.key: "!remove"}) is None
        return

    without = change(before, case, row.key, "!remove")
    again = change(without, case, row.key, str(row.old) if isinstance(row.old, Raw) else row.old)

    assert region(before, without)[2].strip()[:2] in ("", "{}")
    assert not same(said(without, case, row), row.said(changed=False)) or row.fact in STAY
    assert same(said(again, case, row), row.said(changed=False))
    start, end, new = region(without, again)
    assert without[start:end] in ("", " {}", "{}", "{ }")
    assert ended == "\n" or new.count("\r") == new.count("\n")


@pytest.mark.parametrize(MARKS, MATRIX, ids=IDS)
def test_a_field_is_renamed_in_its_place(case: Case, row: Row, ended: str, closed: bool) -> None:
    before = written(case, ended, closed=closed)
    if case.fixed:
        assert edited(given(before, case.name), case.dialect, {row.key: "!rename zz_new"}) is None
        return

    after = change(before, case, row.key, "!rename zz_new")

    start, end, new = region(before, after)
    old = row.key.rpartition(".")[2]
    assert len(before) - len(after) == (end - start) - len(new)
    assert after.replace("zz_new", "", 1).replace("zz-new", "", 1) != after
    assert abs(len(before) - len(after)) <= abs(len(old) - len("zz_new")) + len("lora_target_")
