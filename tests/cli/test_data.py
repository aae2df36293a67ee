"""`oomdoctor data` as people type it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

UNKNOWN = "[UNK]"
CONFIG = "max_length: 6\nper_device_train_batch_size: 2\noutput_dir: out\ndataset_name: d\n"
WITHOUT = """
import sys
sys.modules[sys.argv[1]] = None
from oomdoctor.cli.main import run
sys.exit(run(sys.argv[2:]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tokenizer of one token per word, five rows and a broken one, and a config."""
    machine = Tokenizer(models.WordLevel({"a": 0, UNKNOWN: 1}, unk_token=UNKNOWN))
    machine.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    (tmp_path / "model").mkdir()
    machine.save(str(tmp_path / "model" / "tokenizer.json"))
    rows = [json.dumps({"text": "a " * size}) for size in (1, 2, 3, 4, 9)]
    (tmp_path / "train.jsonl").write_text("\n".join([*rows, "{broken"]) + "\n", encoding="utf-8")
    (tmp_path / "train.yaml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def data(
    run_python: RunPython, folder: Path, *arguments: str, stdin: bytes = b""
) -> CompletedProcess[bytes]:
    command = ("-m", "oomdoctor", "data", *arguments, "--tokenizer", "model")
    return run_python(*command, cwd=folder, stdin=stdin)


def test_the_answer_comes_first_then_lengths_padding_packing_and_the_peak(
    run_python: RunPython, folder: Path
) -> None:
    done = data(run_python, folder, "train.jsonl", "--config", "train.yaml")

    shown = done.stdout.decode()
    assert done.returncode == 0
    assert shown.startswith("train.jsonl: 5 rows, 19 tokens\n  1 row (20 %) exceed")
    titles = ("Lengths", "Longest rows", "Padding", "Packing", "The batch that will be the peak")
    places = [shown.index(f"\n{title}\n") for title in titles]
    assert places == sorted(places)
    assert "train.jsonl:5" in shown
    assert done.stderr.decode() == "warning: 1 rows could not be counted\n"


def test_json_has_the_figures(run_python: RunPython, folder: Path) -> None:
    done = data(run_python, folder, "train.jsonl", "--config", "train.yaml", "-f", "json", "-q")

    told = json.loads(done.stdout)
    assert done.stderr == b""
    assert told["schema_version"] == 1
    assert told["truncation"] == {
        "sequences": 1,
        "sequences_share": 0.2,
        "tokens": 3,
        "tokens_share": 0.157895,
    }
    assert told["longest"][0] == {
        "name": "train.jsonl",
        "line": 5,
        "tokens": 9,
        "characters": 18,
        "layout": "text",
    }
    assert told["bad_rows"] == {"count": 1, "reasons": {"not JSON": 1}}
    assert told["first_bad_rows"][0]["line"] == 6
    assert told["peak"]["largest"]["tokens"] == 12


@pytest.mark.parametrize(
    ("style", "start"), [("html", "<!doctype html>"), ("markdown", "## train.jsonl")]
)
def test_other_formats_go_to_a_file(
    run_python: RunPython, folder: Path, style: str, start: str
) -> None:
    done = data(run_python, folder, "train.jsonl", "-f", style, "-o", "page")

    assert done.returncode == 0
    assert "written to page" in done.stderr.decode()
    assert (folder / "page").read_text(encoding="utf-8").lstrip().startswith(start)


def test_standard_input_is_data_too(run_python: RunPython, folder: Path) -> None:
    rows = (folder / "train.jsonl").read_bytes()

    done = data(run_python, folder, "-", "-f", "json", stdin=rows)

    assert json.loads(done.stdout)["rows"] == 5


def test_facts_outrank_the_config(run_python: RunPython, folder: Path) -> None:
    arguments = ("train.jsonl", "--config", "train.yaml", "--fact", "train.seq_len=3", "-f", "json")

    done = data(run_python, folder, *arguments)

    assert json.loads(done.stdout)["limit"] == {"source": "stated with --fact", "value": 3}


def test_a_field_and_a_number_of_processes_can_be_given(
    run_python: RunPython, folder: Path
) -> None:
    (folder / "odd.jsonl").write_text('{"story": "a a a"}\n' * 3, encoding="utf-8")

    done = data(
        run_python, folder, "odd.jsonl", "--field", "story", "--processes", "2", "-f", "json"
    )

    assert json.loads(done.stdout)["tokens"] == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.jsonl",), "nowhere.jsonl: no such file or folder"),
        ((), "no input"),
        (("train.yaml", "--field", "x"), "no row could be counted"),
    ],
)
def test_a_mistake_is_told_with_exit_2(
    run_python: RunPython, folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    (folder / "train.yaml").write_text('{"a": 1}\n{"a": 2}\n', encoding="utf-8")

    done = data(run_python, folder, *arguments)

    assert done.returncode == 2
    assert message in done.stderr.decode()


@pytest.mark.parametrize(
    ("module", "file"), [("tokenizers", "train.jsonl"), ("pyarrow", "rows.parquet")]
)
def test_a_package_that_lacks_is_named_with_what_installs_it(
    run_python: RunPython, folder: Path, module: str, file: str
) -> None:
    (folder / "rows.parquet").write_bytes(b"PAR1")
    command = ("-c", WITHOUT, module, "data", file, "--tokenizer", "model")

    done = run_python(*command, cwd=folder)

    assert done.returncode == 2
    assert f"needs the package {module}" in done.stderr.decode()
    assert "pip install 'oomdoctor[data]'" in done.stderr.decode()
