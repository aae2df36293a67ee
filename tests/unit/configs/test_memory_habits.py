"""What scripts and configs say about padding, groups of length, outputs and frozen weights."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config

ATTACH = "from peft import get_peft_model\nmodel = get_peft_model(model, config)\n"


def said(text: str, key: str, *, name: str = "train.py") -> object:
    facts = [fact for reading in read_config(text, name=name) for fact in reading.facts]
    return next((fact.value for fact in facts if fact.key == key), None)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("for p in model.parameters():\n    p.requires_grad = True\n", True),
        ("for n, p in model.named_parameters():\n    p.requires_grad_()\n", True),
        ("model.requires_grad_(True)\n", True),
        ("for p in model.parameters():\n    p.requires_grad = False\n", None),
        (
            "for n, p in model.named_parameters():\n    if n:\n        p.requires_grad = True",
            None,
        ),
        ("model.requires_grad_(False)\n", None),
    ],
)
def test_a_base_is_unfrozen_by_a_bare_loop_after_the_adapter(code: str, expected: object) -> None:
    assert said(ATTACH + code, "code.unfreezes_base") == expected


def test_a_loop_before_the_adapter_is_undone_by_it() -> None:
    loop = "for p in model.parameters():\n    p.requires_grad = True\n"

    assert said(loop + ATTACH, "code.unfreezes_base") is None


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("b = tokenizer(t, padding='max_length', truncation=False)", "train.padding", "max_length"),
        ("b = tokenizer(t, padding='max_length', truncation=False)", "train.truncation", False),
        ("b = tokenizer(t, padding=True)", "train.padding", None),
        (
            "a = TrainingArguments(output_dir='o', group_by_length=True)",
            "train.group_by_length",
            True,
        ),
        (
            "a = TrainingArguments(output_dir='o', train_sampling_strategy='random')",
            "train.group_by_length",
            False,
        ),
        ("m = A.from_pretrained('a/b', output_hidden_states=True)", "model.output_hidden", True),
    ],
)
def test_arguments_of_a_script_say_it(text: str, key: str, expected: object) -> None:
    assert said(f"from transformers import A\n{text}\n", key) == expected


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("val_set_size: 500", "data.eval_rows", 500),
        ("val_set_size: 0.05", "data.eval_rows", None),
        ("pad_to_sequence_len: true", "train.padding", "max_length"),
        ("group_by_length: false", "train.group_by_length", False),
    ],
)
def test_keys_of_a_config_say_it(text: str, key: str, expected: object) -> None:
    config = (
        f"base_model: a/b\ndatasets:\n  - path: c\n    type: alpaca\nsequence_len: 512\n{text}\n"
    )

    assert said(config, key, name="a.yaml") == expected


def test_a_torchtune_adapter_covers_what_its_switches_add() -> None:
    config = (
        "model:\n  _component_: torchtune.models.llama2.lora_llama2_7b\n"
        "  lora_attn_modules: ['q_proj', 'v_proj', 'output_proj']\n"
        "  apply_lora_to_mlp: True\n  lora_rank: 8\n"
    )

    assert said(config, "lora.targets", name="a.yaml") == (
        "q_proj,v_proj,output_proj,gate_proj,up_proj,down_proj"
    )
