"""The activation that a config names decides what the formula keeps of it."""

from __future__ import annotations

import pytest

from oomdoctor.memory.formula_shape import shape_of

PHI = {"model_type": "phi", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}


@pytest.mark.parametrize(
    ("named", "keeps"),
    [
        ({}, "python"),
        ({"hidden_act": "gelu_new"}, "python"),
        ({"hidden_act": "gelu_pytorch_tanh"}, "input"),
        ({"hidden_act": "relu"}, "output"),
        ({"hidden_act": "of-my-own"}, "python"),
    ],
)
def test_a_named_activation_goes_before_that_of_the_family(
    named: dict[str, str], keeps: str
) -> None:
    assert keeps == shape_of({**PHI, **named}).act
