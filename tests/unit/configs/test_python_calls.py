"""What single calls of a script say."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config

NAMED = """BitsAndBytesConfig(
    load_in_4bit=True,
    bnb_4bit_compute_dtype=torch.bfloat16,
    bnb_4bit_quant_type="nf4",
    bnb_4bit_quant_storage=torch.bfloat16,
)
"""
CONTENT = "from transformers import *\n"


def said(code: str, *keys: str) -> dict[str, object]:
    facts = {
        fact.key: fact.value
        for reading in read_config(CONTENT + code, name="train.py")
        for fact in reading.facts
    }
    return {key: facts[key] for key in keys if key in facts}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("TrainingArguments(fp16=True, bf16=True)", True),
        ("TrainingArguments(fp16=True, bf16=False)", False),
        ("TrainingArguments(fp16=not ok, bf16=ok)", False),
        ("on = True\nTrainingArguments(fp16=on, bf16=on)", True),
        ("TrainingArguments(fp16=True)\nSFTConfig(bf16=True)", None),
    ],
)
def test_switches_are_compared_within_one_call(code: str, expected: bool | None) -> None:
    assert said(code, "precision.both_halves").get("precision.both_halves") is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("BitsAndBytesConfig(load_in_4bit=True)", ("fp32", "fp4", "uint8")),
        (
            NAMED,
            ("bf16", "nf4", "bf16"),
        ),
        (
            "BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=dt)",
            (None, "fp4", "uint8"),
        ),
        ("BitsAndBytesConfig(load_in_4bit=True, **more)", (None, None, None)),
        ("BitsAndBytesConfig(load_in_8bit=True)", (None, None, None)),
        (
            "AutoModelForCausalLM.from_pretrained('x/y', load_in_4bit=True)",
            ("fp32", "fp4", "uint8"),
        ),
        ("FastLanguageModel.from_pretrained('x/y', load_in_4bit=True)", (None, None, None)),
    ],
)
def test_what_a_call_for_4_bit_leaves_out_has_its_default(
    code: str, expected: tuple[str | None, ...]
) -> None:
    keys = ("quant.compute_dtype", "quant.type", "quant.storage")

    found = said(code, *keys)

    assert tuple(found.get(key) for key in keys) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("DataCollatorForLanguageModeling(tok)", True),
        ("DataCollatorForLanguageModeling(tok, mlm=False)", False),
        ("DataCollatorForLanguageModeling(tok, False)", False),
        ("DataCollatorForLanguageModeling(tok, mlm=masks)", None),
        ("DataCollatorForLanguageModeling(tok, **more)", None),
        ("from trl.trainer.sft_trainer import DataCollatorForLanguageModeling as D\nD(0)", None),
        ("DataCollatorForSeq2Seq(tok)", None),
    ],
)
def test_a_collator_masks_words_unless_told_otherwise(code: str, expected: bool | None) -> None:
    assert said(code, "code.mlm").get("code.mlm") is expected


@pytest.mark.parametrize(
    ("code", "key"),
    [
        ("tokenizer.pad_token = tokenizer.eos_token", "code.sets_pad"),
        ("tokenizer.add_special_tokens({'pad_token': '<pad>'})", "code.sets_pad"),
        ("AutoTokenizer.from_pretrained('x/y', pad_token='<pad>')", "code.sets_pad"),
        ("tokenizer.add_special_tokens(tokens)", "code.sets_pad"),
        ("tokens['pad_token'] = '<pad>'", "code.sets_pad"),
        ("smart_tokenizer_and_embedding_resize(tokens, tokenizer, model)", "code.sets_pad"),
        ("DataCollatorWithPadding(tokenizer)", "code.pads"),
        ("tokenizer(texts, padding='max_length')", "code.pads"),
        ("tokenizer.add_tokens(['<call>'])", "train.adds_tokens"),
        ("setup_chat_format(model, tokenizer)", "train.adds_tokens"),
        ("t.add_special_tokens({'additional_special_tokens': ['<x>']})", "train.adds_tokens"),
        ("model.enable_input_require_grads()", "code.input_gradients"),
        ("model = prepare_model_for_kbit_training(model)", "code.input_gradients"),
        ("model = get_peft_model(model, config)", "code.wraps_peft"),
        ("model = PeftModel.from_pretrained(model, 'x/y')", "code.attaches_adapter"),
        ("model.load_adapter('x/y')", "code.adapter_api"),
    ],
)
def test_calls_that_matter_are_noticed(code: str, key: str) -> None:
    assert said(code, key) == {key: True}


@pytest.mark.parametrize(
    ("code", "key"),
    [
        ("tokenizer.add_special_tokens({'pad_token': '<pad>'})", "train.adds_tokens"),
        ("tokenizer(texts, padding=False)", "code.pads"),
        ("tokenizer(texts, add_special_tokens=True)", "train.adds_tokens"),
        ("FastLanguageModel.get_peft_model(model)", "code.wraps_peft"),
        ("import diffusers\nunet.add_adapter(config)", "code.adapter_api"),
    ],
)
def test_calls_that_look_like_them_are_not(code: str, key: str) -> None:
    assert said(code, key) == {}


def test_the_width_of_autocast_is_no_width_of_the_weights() -> None:
    code = (
        'model = AutoModel.from_pretrained("org/name-7b").cuda()\n'
        'with torch.autocast("cuda", dtype=torch.float16):\n    model(x)\n'
    )

    assert said(code, "train.amp", "train.base_dtype") == {"train.amp": "fp16"}
