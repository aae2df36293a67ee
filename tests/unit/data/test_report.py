"""What a data set means for the job of a config."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from oomdoctor.data.facts import facts_of
from oomdoctor.data.report import report_of
from oomdoctor.errors import InputError
from oomdoctor.facts.given import parse_given
from oomdoctor.facts.registry import specs
from oomdoctor.model.enums import Kind, Origin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from oomdoctor.data.report import DataReport
    from oomdoctor.model.core import Fact

    WriteLines = Callable[..., str]

ROWS: list[object] = [
    {"input_ids": list(range(size))} for size in (10, 10, 10, 20, 20, 20, 20, 40, 90)
]
MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 3,
    "vocab_size": 1000,
    "max_position_embeddings": 128,
}
TRAIN = """\
model_name_or_path: ./tiny
dataset_name: rows
max_length: 32
per_device_train_batch_size: 2
gradient_checkpointing: true
packing: false
use_peft: true
lora_target_modules: all-linear
output_dir: out
bf16: true
"""


@pytest.fixture
def report(tokenizer: str, write_lines: WriteLines, tmp_path: Path) -> DataReport:
    """The rows for a small model, limit 32, two rows per pass."""
    (tmp_path / "train.yaml").write_text(TRAIN, encoding="utf-8")
    (tmp_path / "config.json").write_text(json.dumps(MODEL), encoding="utf-8")
    return report_of(
        [write_lines(ROWS)],
        tokenizer=tokenizer,
        configs=[str(tmp_path / "train.yaml"), str(tmp_path / "config.json")],
    )


def by_key(report: DataReport) -> dict[str, Fact]:
    return {fact.key: fact for fact in facts_of(report)}


def test_the_limit_and_the_batch_come_from_the_config(report: DataReport) -> None:
    assert report.limit is not None
    assert (report.limit.value, report.batch.value) == (32, 2)
    assert report.limit.source.endswith("train.yaml:3")
    assert report.batch.source.endswith("train.yaml:4")


def test_what_truncation_cuts_is_counted(report: DataReport) -> None:
    assert report.over_limit == (2, 8 + 58)
    assert report.kept.longest == 32
    assert report.lengths.longest == 90


def test_the_largest_batch_holds_the_longest_row_after_truncation(report: DataReport) -> None:
    assert report.peak.largest.tokens == 2 * 32
    assert report.peak.median.tokens == 2 * 20
    assert report.peak.factor == pytest.approx(1.6)


def test_bytes_follow_the_formulas_of_memory(report: DataReport) -> None:
    parts = {part.key: part.bytes for part in report.peak.largest.parts}

    # the trainer of this config computes the loss in fused tiles: 6 bytes per token and entry
    assert parts["logits"] == 6 * 64 * 1000
    assert parts["activations"] > 3 * 64 * 64 * 2
    assert report.peak.largest.bytes == sum(parts.values())
    assert report.peak.largest.bytes > report.peak.median.bytes


def test_a_packed_job_has_one_size_of_batch(tokenizer: str, write_lines: WriteLines) -> None:
    given = parse_given(["train.seq_len=32", "train.micro_batch=2", "train.packing=true"])

    packed = report_of([write_lines(ROWS)], tokenizer=tokenizer, given=given)

    assert packed.peak.constant
    assert packed.peak.largest.tokens == packed.peak.median.tokens == 64
    assert not any(one.in_force for one in packed.strategies)
    assert by_key(packed)["data.padding_waste"].value == pytest.approx(
        1 - packed.packings[0].efficiency
    )


def test_padding_to_the_maximum_is_in_force_where_the_job_says_so(
    tokenizer: str, write_lines: WriteLines
) -> None:
    given = parse_given(["train.seq_len=50", "train.padding=max_length"])

    found = report_of([write_lines(ROWS)], tokenizer=tokenizer, given=given)

    assert [one.key for one in found.strategies if one.in_force] == ["max_length"]
    assert by_key(found)["data.padding_waste"].value == pytest.approx(1 - 200 / 450)
    assert found.peak.largest.tokens == 8 * 50


def test_a_limit_that_cuts_nothing_lets_the_longest_row_be(
    tokenizer: str, write_lines: WriteLines
) -> None:
    given = parse_given(["train.seq_len=32", "train.truncation=false", "train.micro_batch=2"])

    found = report_of([write_lines(ROWS)], tokenizer=tokenizer, given=given)

    assert found.limit is None
    assert found.peak.largest.tokens == 2 * 90
    assert found.capacity.value == 32
    assert "Truncation is off" in found.notes[0]


def test_without_a_config_nothing_is_cut_and_the_batch_is_assumed(
    tokenizer: str, write_lines: WriteLines
) -> None:
    found = report_of([write_lines(ROWS)], tokenizer=tokenizer)
    facts = by_key(found)

    assert found.limit is None
    assert found.batch.value == 8
    assert found.peak.largest.parts == ()
    assert "model.layers" in found.peak.missing
    assert facts["data.padding_waste"].origin is Origin.ASSUMED
    assert "data.over_limit_share" not in facts


def test_a_preference_pair_is_two_sequences_of_one_pass(
    tokenizer: str, write_lines: WriteLines
) -> None:
    row = {"prompt": "the cat ", "chosen": "sat on a mat", "rejected": "ran"}

    found = report_of(
        [write_lines([row] * 3)], tokenizer=tokenizer, given=parse_given(["train.micro_batch=4"])
    )

    assert (found.rows, found.lengths.count, found.batch.value) == (3, 6, 8)


def test_the_models_config_beside_the_tokenizer_gives_its_shape(
    make_tokenizer: Callable[..., Path], write_lines: WriteLines
) -> None:
    folder = make_tokenizer()
    (folder / "config.json").write_text(json.dumps(MODEL), encoding="utf-8")
    given = parse_given(["train.micro_batch=2", "train.grad_checkpointing=true"])

    found = report_of([write_lines(ROWS)], tokenizer=str(folder), given=given)

    assert [part.key for part in found.peak.largest.parts] == ["activations", "logits"]


def test_facts_are_of_the_registry_and_of_its_kinds(report: DataReport) -> None:
    for fact in facts_of(report):
        kind = specs()[fact.key].kind
        whole = kind in (Kind.COUNT, Kind.BYTES)
        assert isinstance(fact.value, int if whole else float), fact.key
        assert fact.source


def test_facts_say_what_the_report_says(report: DataReport) -> None:
    facts = by_key(report)

    found = {
        key: facts[f"data.{key}"].value
        for key in ("rows", "tokens", "longest_row", "p50_row", "over_limit_rows", "peak_tokens")
    }
    assert found == {
        "rows": 9,
        "tokens": 240,
        "longest_row": 90,
        "p50_row": 20,
        "over_limit_rows": 2,
        "peak_tokens": 64,
    }
    assert facts["data.over_limit_share"].value == pytest.approx(2 / 9)
    assert facts["data.cut_share"].value == pytest.approx(66 / 240)
    assert facts["data.longest_row"].quotes[0].line == 9
    assert facts["data.over_limit_share"].origin is Origin.DERIVED


def test_rows_without_any_text_are_an_error_that_names_the_reason(
    tokenizer: str, write_lines: WriteLines
) -> None:
    with pytest.raises(InputError, match="no row could be counted: no text field among label"):
        report_of([write_lines([{"label": 1}] * 3)], tokenizer=tokenizer)


def test_an_empty_file_is_not_sent_to_look_for_a_field(
    tokenizer: str, write_lines: WriteLines
) -> None:
    with pytest.raises(InputError, match="it is empty") as caught:
        report_of([write_lines([])], tokenizer=tokenizer)

    assert caught.value.hint is None


def test_what_is_not_counted_is_said(tokenizer: str, write_lines: WriteLines) -> None:
    rows = [{"messages": [{"role": "user", "content": "a"}]}, {"instruction": "a", "output": "b"}]

    notes = " ".join(report_of([write_lines(rows)], tokenizer=tokenizer).notes)

    assert "No chat template is applied" in notes
    assert "what a trainer writes around them is not" in notes
