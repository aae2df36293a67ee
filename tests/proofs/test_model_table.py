"""Every config of the table of models builds a model of the published number of parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TABLES = Path(__file__).parents[2] / "oomdoctor" / "tables"
CONFIGS = json.loads((TABLES / "model_configs.json").read_text(encoding="utf-8"))
ROWS = json.loads((TABLES / "models.json").read_text(encoding="utf-8"))
OURS = sorted(name for name, config in CONFIGS.items() if "library" not in config)
SEPARATE_HEAD = ("google/flan-t5", "google/mt5", "google/long-t5")
"""The checkpoint's head is its own; transformers 5 ties it."""


def parameters(config: dict[str, Any]) -> int:
    """Build the model on the meta device and count its parameters, shared ones once."""
    values = dict(config)
    named = values.pop("architectures", None)
    read = transformers.AutoConfig.for_model(**values)
    with torch.device("meta"):
        if named is None:
            model = transformers.AutoModelForCausalLM.from_config(read)
        else:
            model = getattr(transformers, named[0])(read)
    model.tie_weights()
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["name"] in OURS], ids=lambda r: r["name"]
)
def test_the_config_builds_as_many_parameters_as_were_published(row: dict[str, Any]) -> None:
    """Equal to the last parameter, which confirms every width that enters it."""
    expected = row["params"]
    if row["name"].startswith(SEPARATE_HEAD):
        expected -= row["vocab"] * row["hidden"]
    assert expected == parameters(CONFIGS[row["name"]])


def test_every_model_of_the_table_has_a_config() -> None:
    """A name without one could not be estimated."""
    assert {row["name"] for row in ROWS} == set(CONFIGS)
