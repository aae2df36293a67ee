"""LoRA targets against the names of an architecture's modules."""

from __future__ import annotations

import pytest

from oomdoctor.facts.lora_modules import unmatched


@pytest.mark.parametrize(
    ("architecture", "targets", "expected"),
    [
        ("LlamaForCausalLM", "q_proj,v_proj", ()),
        ("LlamaForCausalLM", "self_attn.q_proj, mlp.down_proj", ()),
        ("Phi3ForCausalLM", "q_proj,v_proj,o_proj", ("q_proj", "v_proj")),
        ("Phi3ForCausalLM", "qkv_proj,gate_up_proj", ()),
        ("GPT2LMHeadModel", "['c_attn', 'q_proj']", ("q_proj",)),
        ("LlamaForCausalLM", "all-linear", ()),
        ("LlamaForCausalLM", "all", ()),
        ("LlamaForCausalLM", r".*\.(q|v)_proj", None),
        ("MixtralForCausalLM", "q_proj,w1", None),
        ("LlamaForCausalLM", "", None),
    ],
)
def test_targets_without_a_module_are_named(
    architecture: str, targets: str, expected: tuple[str, ...] | None
) -> None:
    assert unmatched(architecture, targets) == expected
