"""A patch is offered only where the versions in use take what it sets."""

from __future__ import annotations

import pytest

from oomdoctor.facts.argument_versions import are_taken
from oomdoctor.facts.book import FactBook
from oomdoctor.model.core import Fact


def book(**versions: str) -> FactBook:
    return FactBook().add(Fact(key=f"env.{name}", value=value) for name, value in versions.items())


@pytest.mark.parametrize(
    ("settings", "transformers", "expected"),
    [
        ({"use_liger_kernel": True}, "4.36.2", False),
        ({"use_liger_kernel": True}, "4.46.3", True),
        ({"bf16": True}, "4.36.2", True),
        ({"eval_strategy": "no"}, "4.36.2", False),
        ({"evaluation_strategy": "no"}, "5.24.0", False),
        ({"evaluation_strategy": "!remove"}, "5.24.0", True),
        ({"evaluation_strategy": "!rename eval_strategy"}, "5.24.0", True),
        ({"evaluation_strategy": "!rename eval_strategy"}, "4.36.2", False),
        ({"a_key_of_nobody": 1}, "4.36.2", True),
    ],
)
def test_the_release_in_use_decides(
    settings: dict[str, object], transformers: str, *, expected: bool
) -> None:
    assert are_taken("hf_trainer", settings, book(transformers=transformers)) is expected


def test_an_unknown_version_takes_everything() -> None:
    assert are_taken("hf_trainer", {"use_liger_kernel": True}, book())


def test_another_framework_has_keys_of_its_own() -> None:
    assert are_taken("axolotl", {"evaluation_strategy": "no"}, book(transformers="5.24.0"))
