"""The variables of XLA and TensorFlow in scripts and commands, and whether they come too late."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config

SETTING = 'os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"\n'


def facts_of(text: str) -> dict[str, object]:
    facts = [fact for reading in read_config(text, name="notes") for fact in reading.facts]
    return {fact.key: fact.value for fact in facts if fact.key.startswith(("xla.", "tf."))}


@pytest.mark.parametrize(
    ("text", "late"),
    [
        (f"import jax\nimport os\n{SETTING}", True),
        (f"import os\n{SETTING}import jax.numpy as jnp\n", False),
        ('from jax import jit\nimport os\nos.environ.setdefault("XLA_FLAGS", "x")\n', True),
    ],
)
def test_a_script_that_sets_it_after_the_import_sets_it_too_late(text: str, *, late: bool) -> None:
    assert facts_of(text)["xla.set_after_import"] is late


@pytest.mark.parametrize(
    "text", [SETTING, "import jax\n", f"import jaxtyping\nimport os\n{SETTING}"]
)
def test_without_import_and_setting_nothing_is_too_late(text: str) -> None:
    assert "xla.set_after_import" not in facts_of(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SETTING, {"xla.preallocate": False}),
        ("XLA_PYTHON_CLIENT_MEM_FRACTION=.5 python a.py", {"xla.memory_fraction": 0.5}),
        ("export XLA_PYTHON_CLIENT_ALLOCATOR=platform", {"xla.allocator": "platform"}),
        ("export TF_FORCE_GPU_ALLOW_GROWTH=true", {"tf.allow_growth": True}),
    ],
)
def test_the_variables_are_read(text: str, expected: dict[str, object]) -> None:
    assert facts_of(text) == expected
