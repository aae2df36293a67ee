"""`estimate --entry`: what may stand beside it, and that nothing else makes a job run code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from oomdoctor.cli.main import cli

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--entry", "mine:make", "--model", "gpt2"], "--model cannot stand beside it"),
        (["--entry", "mine:make", "--what-if", "batch=2"], "--what-if cannot stand beside it"),
        (["--entry", "mine:make", "--engine", "formula"], "the formula knows nothing"),
        (["--entry", "mine"], "MODULE:FUNCTION"),
        (["--entry", "mine:"], "MODULE:FUNCTION"),
        (["--entry", "mine:make", "--entry-args", "width"], "NAME=VALUE"),
        (["--entry", "mine:make", "--entry-args", "1=2"], "NAME=VALUE"),
        (["--entry-args", "a=1"], "without --entry"),
    ],
)
def test_what_does_not_fit_an_entry_is_refused(arguments: list[str], text: str) -> None:
    result = CliRunner().invoke(cli, ["estimate", *arguments])

    assert result.exit_code == 2
    assert text in result.output


def test_a_config_cannot_name_code_that_is_to_run(tmp_path: Path) -> None:
    shape = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
    entry = {"place": "mine:make", "folder": str(tmp_path), "arguments": {}}
    config = {"model_type": "llama", "vocab_size": 100, "intermediate_size": 64, **shape}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**config, "entry": entry}), encoding="utf-8")
    asked = ["estimate", "--model", str(path), "--engine", "formula", "-f", "json", "--no-limits"]

    result = CliRunner().invoke(cli, asked)

    assert result.exit_code == 0, (result.output, result.exception)
    assert json.loads(result.output)["job"]["entry"] is None
