"""Settings whose value is an expression are filled from the facts, or not at all."""

from __future__ import annotations

import pytest

from oomdoctor.errors import RuleError
from oomdoctor.facts.book import FactBook
from oomdoctor.model.core import Fact
from oomdoctor.rules.settings import expression_of, filled

BOOK = FactBook().add([Fact(key="train.micro_batch", value=8)])


def test_an_expression_is_evaluated_on_the_facts() -> None:
    settings = {"per_device_train_batch_size": "= max(1, train.micro_batch // 2)", "bf16": True}

    assert filled(settings, BOOK) == {"per_device_train_batch_size": 4, "bf16": True}


def test_nested_settings_are_filled_too() -> None:
    assert filled({"outer": {"rows": "= train.micro_batch"}}, BOOK) == {"outer": {"rows": 8}}


def test_a_missing_fact_leaves_the_whole_patch_out() -> None:
    assert filled({"rows": "= train.grad_accum * 2", "bf16": True}, BOOK) is None


def test_a_plain_setting_is_no_expression() -> None:
    assert expression_of("expandable_segments:True") is None


def test_a_wrong_expression_is_refused() -> None:
    with pytest.raises(RuleError):
        expression_of("= train.micro_batches")
