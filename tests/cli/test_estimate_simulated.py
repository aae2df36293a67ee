"""`oomdoctor estimate` with a real trace; only where torch and transformers are installed."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

MISSING = [name for name in ("torch", "transformers", "peft") if find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"without {', '.join(MISSING)}"),
]
NETWORK = """\
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 256,
 "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 8000,
 "intermediate_size": 512, "max_position_embeddings": 4096, "tie_word_embeddings": false}
"""


def estimated(run_python: RunPython, folder: Path, *flags: str) -> dict[str, object]:
    (folder / "config.json").write_text(NETWORK, encoding="utf-8")
    command = ("-m", "oomdoctor", "estimate", "--model", "config.json", "--method", "lora")
    done = run_python(*command, "-f", "json", *flags, cwd=folder, stdin=b"")
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_the_models_own_code_is_traced(run_python: RunPython, tmp_path: Path) -> None:
    made = estimated(run_python, tmp_path, "--seq", "256", "--batch", "2", "--gpu", "24GiB")
    assert (made["engine"], made["fallback"]) == ("simulate", None)
    owners = made["owners"]
    assert isinstance(owners, list)
    assert any("layers.*" in one["module"] for one in owners)
    assert isinstance(made["limits"], list)
    assert len(made["limits"]) == 2


def test_computed_cells_are_those_that_a_trace_gives(run_python: RunPython, tmp_path: Path) -> None:
    flags = ("--seq", "256", "--batch", "1", "--no-limits", "--table")
    table = estimated(
        run_python, tmp_path, *flags, "--batches", "1,2,3", "--lengths", "256,320,512"
    )["table"]
    assert isinstance(table, dict)
    assert table["error"] < 0.001
    assert sum(one["traced"] for one in table["cells"]) == 2
