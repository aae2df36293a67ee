"""Flags and what-ifs as facts, and the cards that names stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import InputError, UsageError
from oomdoctor.estimating.cards import cards_of, usual_cards
from oomdoctor.estimating.describe import cards_asked, settings_of, source_of
from oomdoctor.estimating.flags import (
    changes_of,
    facts_of,
    facts_of_changes,
    without_implied,
)
from oomdoctor.facts.book import FactBook
from oomdoctor.facts.given import parse_given

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
CONFIG = """\
model_name_or_path: Qwen/Qwen2.5-0.5B
per_device_train_batch_size: 4
gradient_accumulation_steps: 2
max_length: 1024
output_dir: out
optim: adafactor
use_peft: true
lora_r: 32
"""


def values(**flags: object) -> dict[str, object]:
    return {fact.key: fact.value for fact in facts_of(flags)}


def test_a_method_is_several_facts() -> None:
    found = values(method="qlora")
    assert found["lora.on"] is True
    assert found["quant.kind"] == "bnb4"
    assert values(method="full")["lora.on"] is False


def test_what_people_call_things_is_understood() -> None:
    assert values(attention="flash_attention_2") == {"attention.impl": "flash2"}
    assert values(dtype="bfloat16") == {"load.dtype": "bf16"}
    assert values(task="orpo") == {"job.task": "dpo", "train.variant": "orpo"}


def test_a_name_of_an_optimizer_says_more_than_its_name() -> None:
    found = values(optimizer="paged_adamw_8bit")
    assert found["optimizer.name"] == "paged_adamw_8bit"
    assert (found["optimizer.state_bits"], found["optimizer.paged"]) == (8, True)


def test_flags_that_were_not_given_say_nothing() -> None:
    assert values(batch=None, seq=512) == {"train.seq_len": 512}


def test_a_flag_names_itself_where_its_value_is_none() -> None:
    with pytest.raises(UsageError, match="--attention fast"):
        facts_of({"attention": "fast"})
    with pytest.raises(UsageError, match="--method 'lorax'"):
        facts_of({"method": "lorax"})


@pytest.mark.parametrize("value", ["", ",", " , "])
def test_a_list_of_nothing_is_told_by_its_flag(value: str) -> None:
    with pytest.raises(UsageError, match="--lora-targets"):
        facts_of({"lora-targets": value})


@pytest.mark.parametrize(
    "text",
    [
        *("batch=0", "batch=-1", "seq=0", "lora-r=0", "gpus=0", "train.grad_accum=-2"),
        *("model.layers=1000000000", "batch=99999999999", ""),
    ],
)
def test_a_change_to_a_number_that_no_job_has_is_refused(text: str) -> None:
    source = source_of([], given=facts_of({"model": "meta-llama/Llama-2-7b-hf"}))
    with pytest.raises(UsageError, match=r"no such job|cannot be changed"):
        source.described(text)


def test_a_stated_number_that_no_job_has_is_refused() -> None:
    given = [*facts_of({"model": "meta-llama/Llama-2-7b-hf"}), *parse_given(["model.layers=0"])]
    with pytest.raises(UsageError, match=r"model\.layers = 0 \(stated with --fact\)"):
        source_of([], given=given)


def test_changes_are_parted_at_commas_before_names() -> None:
    assert changes_of("batch=2,seq=4096") == {"batch": "2", "seq": "4096"}
    assert changes_of("lora-targets=q_proj,v_proj,batch=1") == {
        "lora-targets": "q_proj,v_proj",
        "batch": "1",
    }
    assert changes_of("lora_r=16") == {"lora-r": "16"}
    assert changes_of("train.grad_accum=8") == {"train.grad_accum": "8"}


@pytest.mark.parametrize("text", ["bacth=2", "batch", "=3", "", "batch=2,batch=3"])
def test_a_change_of_nothing_that_is_known_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        changes_of(text)


def test_a_misspelt_change_gets_a_suggestion() -> None:
    with pytest.raises(UsageError) as caught:
        changes_of("bacth=2")
    assert "batch" in str(caught.value.hint)


def test_a_change_by_fact_says_so() -> None:
    fact = facts_of_changes({"train.grad_accum": "8"})[0]
    assert (fact.value, fact.source) == (8, "stated with --what-if")


def test_flags_outrank_the_config(tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(CONFIG)
    flags = {"batch": 1, "optimizer": "adamw_8bit"}
    source = source_of([str(tmp_path / "train.yaml")], given=facts_of(flags), flags=tuple(flags))
    job = source.described().job
    assert (job.batch, job.grad_accum, job.seq_len) == (1, 2, 1024)
    assert job.optimizer is not None
    assert job.optimizer.name == "adamw-8bit"
    assert job.lora is not None
    assert job.lora.rank == 32


def test_a_what_if_outranks_the_flags(tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(CONFIG)
    flags = {"batch": 1}
    source = source_of([str(tmp_path / "train.yaml")], given=facts_of(flags), flags=tuple(flags))
    job = source.described("batch=6,method=full").job
    assert (job.batch, job.lora, job.seq_len) == (6, None, 1024)


def test_a_config_and_the_models_own_config_are_one_job(tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(CONFIG)
    (tmp_path / "config.json").write_text(
        '{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 256,'
        ' "num_hidden_layers": 4, "num_attention_heads": 4, "vocab_size": 1000,'
        ' "intermediate_size": 512}'
    )
    paths = [str(tmp_path / "config.json"), str(tmp_path / "train.yaml")]
    job = source_of(paths).described().job
    assert job.model.config["hidden_size"] == 256
    assert job.batch == 4


def test_configs_that_disagree_say_which_was_believed(tmp_path: Path) -> None:
    for name, rows in (("one", 2), ("two", 4)):
        text = CONFIG.replace("batch_size: 4", f"batch_size: {rows}")
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    paths = [str(tmp_path / "one.yaml"), str(tmp_path / "two.yaml")]
    described = source_of(paths).described()
    told = [one for one in described.assumptions if "which was not used" in one]
    assert described.job.batch == 2
    assert ["one.yaml" in one and "two.yaml says 4" in one for one in told] == [True]
    flags = facts_of({"batch": 8})
    assert not [
        one
        for one in source_of(paths[:1], given=flags).described().assumptions
        if "not used" in one
    ]


def test_a_config_too_long_to_read_says_that_it_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama", "pad": "' + "x" * (40 << 20) + '"}', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        source_of([str(path)])
    assert "cut" in (caught.value.hint or "")


def test_a_server_of_a_network_without_a_width_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(
        '{"model_type": "resnet", "architectures": ["ResNetModel"], "hidden_sizes": [8]}',
        encoding="utf-8",
    )
    given = facts_of({"task": "serving", "engine-name": "vllm"})
    with pytest.raises(UsageError, match="width"):
        source_of([str(path)], given=given).described()


def test_a_job_without_a_model_says_what_is_missing() -> None:
    with pytest.raises(UsageError, match="model"):
        source_of([], given=facts_of({"batch": 2})).described()


def test_a_config_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        source_of([str(tmp_path / "nothing.yaml")])


def test_a_size_is_a_card() -> None:
    card = cards_of(["24GiB"])[0]
    assert (card.total_bytes, card.capability) == (24 * GIB, (8, 0))


def test_a_name_stands_for_all_cards_that_it_may_mean() -> None:
    sizes = sorted(round(card.total_bytes / GIB) for card in cards_of(["A100"]))
    assert sizes == [39, 79]


def test_a_card_reports_less_than_its_nominal_memory() -> None:
    card = cards_of(["RTX 4090"])[0]
    assert 23 * GIB < card.total_bytes < 24 * GIB
    assert (card.capability, card.processors) == ((8, 9), 128)


def test_a_slice_has_its_share_of_a_card() -> None:
    card = cards_of(["A100-80GB MIG 3g.20gb"])[0]
    assert 19 * GIB < card.total_bytes < 20 * GIB
    assert 20 < card.processors < 40


def test_a_card_is_listed_once() -> None:
    assert len(cards_of(["RTX 4090", "NVIDIA GeForce RTX 4090"])) == 1


@pytest.mark.parametrize("name", ["RTX 9999", "nonsense", "12 B", "24,5GiB", "9999999 TiB"])
def test_what_is_no_card_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        cards_of([name])


def test_every_usual_card_is_in_the_table_and_has_memory() -> None:
    found = usual_cards()
    assert len(found) == 10
    assert all(card.total_bytes > 8 * GIB for card in found)


def test_the_card_of_a_config_counts_where_none_is_named() -> None:
    book = FactBook().add(parse_given(["gpu.name=RTX 4090"]))
    assert cards_asked([], book)[0].name == "NVIDIA GeForce RTX 4090"
    assert cards_asked(["H200"], book)[0].name.startswith("NVIDIA H200")
    assert cards_asked([], FactBook()) == ()


def test_settings_of_the_allocator_are_written_as_their_variable() -> None:
    book = FactBook().add(
        parse_given(["alloc.expandable_segments=true", "alloc.max_split_size=128 MiB"])
    )
    assert settings_of(book) == "expandable_segments:True,max_split_size_mb:128"


@pytest.mark.parametrize(
    ("task", "fact"),
    [
        ("masked-lm", "masked-lm"),
        ("embedding", "embedding"),
        ("token-classification", "token-classification"),
        ("image-classification", "vision"),
        ("evaluation", "evaluate"),
    ],
)
def test_every_task_of_the_command_is_one_of_the_facts(task: str, fact: str) -> None:
    assert values(task=task) == {"job.task": fact}


def test_what_is_packed_is_named_beside_the_method() -> None:
    found = values(method="lora", quant="fp4")

    assert (found["quant.kind"], found["quant.type"]) == ("bnb4", "fp4")
    assert values(quant="nf4-double")["quant.double"] is True


def test_a_stated_fact_outranks_what_a_method_only_implies() -> None:
    stated = parse_given(["quant.kind=gptq"])
    kept = without_implied(facts_of({"method": "lora", "seq": 512}), stated)

    assert {"lora.on", "train.seq_len"} <= {fact.key for fact in kept}
    assert "quant.kind" not in {fact.key for fact in kept}
