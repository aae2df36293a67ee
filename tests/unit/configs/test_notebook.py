"""Notebooks: cells are read as Python, commands and files; edits leave the JSON as it is."""

from __future__ import annotations

import json

import pytest

from oomdoctor.configs.patch import edited, patch
from oomdoctor.configs.reader import read_config
from oomdoctor.errors import InputError

CELLS = [
    {"cell_type": "markdown", "source": ["TrainingArguments(bf16=True)"]},
    {
        "cell_type": "code",
        "source": [
            "!accelerate launch --num_processes 2 \\\n",
            "   train.py\n",
            "%env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n",
            "from trl import SFTConfig\n",
            "LENGTH = 512",
        ],
    },
    {
        "cell_type": "code",
        "source": ["%%writefile ds.json\n", '{"zero_optimization": {"stage": 3}}\n'],
    },
    {
        "cell_type": "code",
        "source": [
            "%%time\n",
            "args = SFTConfig(\n",
            '    output_dir="öut",  # \\ "q"\n',
            "    max_length=LENGTH,\n",
            "    bf16=True,\n",
            ")",
        ],
    },
    {"cell_type": "code", "source": "if LENGTH:\n    !ls\nmore = LoraConfig(r=16)\n"},
]


def notebook(*, indent: int | None = 1, ascii_only: bool = True) -> str:
    return json.dumps({"cells": CELLS, "nbformat": 4}, indent=indent, ensure_ascii=ascii_only)


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_cells_are_read_with_places_in_the_file(indent: int | None, ascii_only: bool) -> None:
    text = notebook(indent=indent, ascii_only=ascii_only)
    readings = read_config(text, name="a.ipynb")
    facts = {fact.key: fact for reading in readings for fact in reading.facts}
    rows = text.split("\n")

    said = {key: facts[key].value for key in WANTED}
    assert said == WANTED
    assert [reading.dialect for reading in readings] == ["python", "shell", "deepspeed", "shell"]
    for fact in facts.values():
        for quote in fact.quotes:
            assert quote.column is not None
            assert quote.end_column is not None
            assert rows[quote.line - 1][quote.column - 1 : quote.end_column - 1] == quote.text
    assert facts["train.amp"].quotes[0].text == "True"
    assert facts["train.seq_len"].quotes[0].text == "LENGTH"


WANTED = {
    "train.amp": "bf16",
    "train.seq_len": 512,
    "lora.rank": 16,
    "job.task": "sft",
    "dist.world_size": 2,
    "alloc.expandable_segments": True,
    "dist.kind": "zero3",
}


@pytest.mark.parametrize(
    ("wanted", "cell", "before", "after"),
    [
        ({"bf16": False}, 3, "    bf16=True,\n", "    bf16=False,\n"),
        ({"bf16": "!remove"}, 3, "    bf16=True,\n", ""),
        ({"max_length": "!rename max_seq_length"}, 3, "    max_length", "    max_seq_length"),
        ({"packing": True}, 3, "bf16=True,\n", "bf16=True,\n    packing=True,\n"),
        ({"output_dir": 'a"b'}, 3, '"öut"', "'a\"b'"),
        ({"lora_r": 8}, 4, "r=16", "r=8"),
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("ended", ["\n", "\r\n"])
def test_an_edit_changes_the_code_of_its_cell_only(
    wanted: dict[str, object], cell: int, before: str, after: str, indent: int | None, ended: str
) -> None:
    text = notebook(indent=indent).replace("\n", ended) + ended

    new = edited(read_config(text, name="a.ipynb", path="a.ipynb"), "trl", wanted)

    assert new is not None
    expected = json.loads(text)
    source = expected["cells"][cell]["source"]
    code = "".join(source).replace(before, after)
    expected["cells"][cell]["source"] = code.splitlines(keepends=True) if cell == 3 else code
    assert json.loads(new) == expected
    assert new.count("\r") == new.count("\n") * (ended == "\r\n")


def test_two_cells_are_edited_at_once() -> None:
    text = notebook()
    wanted: dict[str, object] = {"lora_r": 8, "bf16": False}
    (made,) = patch(read_config(text, name="a.ipynb", path="a.ipynb"), {"trl": wanted})

    assert made.diff is not None
    assert [row for row in made.diff.split("\n")[2:] if row[:1] in ("-", "+")] == [
        '-    "    bf16=True,\\n",',
        '+    "    bf16=False,\\n",',
        '-   "source": "if LENGTH:\\n    !ls\\nmore = LoraConfig(r=16)\\n"',
        '+   "source": "if LENGTH:\\n    !ls\\nmore = LoraConfig(r=8)\\n"',
    ]


def test_a_broken_notebook_is_an_error_with_its_place() -> None:
    with pytest.raises(InputError) as caught:
        read_config('{"cells": [}', name="a.ipynb")

    assert caught.value.location is not None
    assert (caught.value.location.line, caught.value.location.column) == (1, 12)


def test_a_notebook_without_code_says_nothing() -> None:
    assert read_config('{"cells": [], "nbformat": 4}', name="a.ipynb") == ()


@pytest.mark.parametrize(
    "source", ['["\\ud83d", "x\\ud83d\\ude00"]', "5", "[1, {}]", '"a\\u00e9b"']
)
def test_odd_sources_are_read_without_a_fault(source: str) -> None:
    text = '{"cells": [{"cell_type": "code", "source": SOURCE}, 3]}'.replace("SOURCE", source)

    for reading in read_config(text, name="a.ipynb"):
        assert reading.dialect == "python"
