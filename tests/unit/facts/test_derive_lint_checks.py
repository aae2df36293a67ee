"""Groups of answers, evaluation without data, what report_to says, merges, wheels and cards."""

from __future__ import annotations

import pytest

from oomdoctor.facts.book import FactBook
from oomdoctor.facts.derivation import apply
from oomdoctor.facts.derive_lint_checks import STEPS
from oomdoctor.model.core import Fact, Quote
from oomdoctor.model.enums import Origin
from tests.unit.facts.stated import book

Plain = bool | int | float | str
GRPO: dict[str, Plain] = {"job.task": "grpo", "job.framework": "trl", "job.settings": "a = 1"}
RUN: dict[str, Plain] = {
    **GRPO,
    "rl.generations": 8,
    "train.micro_batch": 3,
    "train.grad_accum": 2,
    "dist.world_size": 2,
}


def value(facts: dict[str, Plain], key: str, *closed: str) -> object:
    return apply(book(facts).add((), closes=closed), STEPS).value(key)


def test_the_rows_of_all_ranks_and_steps_are_generated_at_once() -> None:
    assert value(RUN, "rl.generation_rows") == 12
    assert value({**RUN, "rl.steps_per_generation": 4}, "rl.generation_rows") == 24
    assert value({**RUN, "rl.generation_batch": 64}, "rl.generation_rows") == 64
    assert value({**RUN, "env.trl": "0.16.1"}, "rl.generation_rows") == 6
    assert value({**RUN, "env.trl": "0.17.0"}, "rl.generation_rows") == 12


def test_an_assumed_version_of_trl_decides_nothing() -> None:
    assumed = Fact(key="env.trl", value="0.15.2", origin=Origin.ASSUMED)
    fact = apply(book(RUN).add([assumed]), STEPS).get("rl.generation_rows")
    assert fact is not None
    assert (fact.value, fact.origin) == (12, Origin.DERIVED)


@pytest.mark.parametrize(
    ("change", "uneven", "accumulation"),
    [
        ({}, True, 4),
        ({"train.grad_accum": 4}, False, None),
        ({"rl.generations": 1}, True, None),
        ({"rl.generations": 6}, False, None),
        ({"rl.steps_per_generation": 4}, False, None),
        ({"rl.steps_per_generation": 3}, True, None),
        ({"train.micro_batch": 5, "dist.world_size": 1}, True, 8),
    ],
)
def test_groups_must_be_whole(
    change: dict[str, Plain], uneven: bool, accumulation: int | None
) -> None:
    facts = {**RUN, **change}
    assert value(facts, "rl.groups_uneven") is uneven
    assert value(facts, "rl.even_accum") == accumulation


def test_a_group_of_one_needs_no_ranks_to_be_wrong() -> None:
    assert value({**GRPO, "rl.generations": 1}, "rl.groups_uneven") is True
    assert value({**GRPO, "rl.generations": 8}, "rl.groups_uneven") is None


def test_the_default_group_is_an_assumption_and_not_that_of_rloo() -> None:
    facts = apply(book(GRPO), STEPS).get("rl.group")
    assert facts is not None
    assert (facts.value, facts.origin) == (8, Origin.ASSUMED)
    assert value({**GRPO, "job.script": "trl.scripts.rloo"}, "rl.group") is None
    assert value({**GRPO, "job.framework": "unsloth"}, "rl.group") is None
    assert value({**GRPO, "job.task": "sft"}, "rl.group") is None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, False),
        ({"eval.strategy": "no"}, False),
        ({"eval.strategy": "steps", "eval.batch": 8}, False),
        ({"eval.strategy": "steps", "eval.batch": 3}, True),
        ({"eval.strategy": "epoch", "eval.batch": 3, "rl.eval_generations": 2}, False),
        ({"job.settings": "eval_strategy = when"}, None),
    ],
)
def test_evaluation_holds_whole_groups(change: dict[str, Plain], expected: bool | None) -> None:
    assert value({**RUN, **change}, "rl.eval_groups_uneven") is expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("val_set_size = 0\neval_steps = 50", True),
        ("val_set_size = 0.0\neval_strategy = epoch", True),
        ("val_set_size = 0\neval_steps = 50\neval_strategy = no", False),
        ("val_set_size = 0\neval_steps = 50\ntest_datasets.path = x", False),
        ("val_set_size = 0\nevals_per_epoch = 4", False),
        ("val_set_size = 0.05\neval_steps = 50", False),
        ("eval_steps = 50", False),
    ],
)
def test_axolotl_refuses_an_explicit_schedule_without_rows(settings: str, expected: bool) -> None:
    facts: dict[str, Plain] = {"job.framework": "axolotl", "job.settings": settings}
    assert value(facts, "eval.without_data") is expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("do_train = true\neval_strategy = steps", True),
        ("do_train = true\ndo_eval = true\nval_size = 0", True),
        ("do_train = true\neval_strategy = steps\nval_size = 0.1", False),
        ("do_train = true\neval_strategy = steps\neval_dataset = ours", False),
        ("do_train = true\neval_strategy = no", False),
        ("do_predict = true", False),
    ],
)
def test_llamafactory_needs_rows_to_evaluate_on(settings: str, expected: bool) -> None:
    facts: dict[str, Plain] = {"job.framework": "llamafactory", "job.settings": settings}
    assert value(facts, "eval.without_data", "train-config") is expected
    assert value(facts, "eval.without_data") is None


@pytest.mark.parametrize(
    ("strategy", "handed", "expected"),
    [("steps", False, True), ("steps", True, False), ("no", False, False)],
)
def test_a_trainer_evaluates_on_what_it_is_given(
    strategy: str, handed: bool, expected: bool
) -> None:
    facts: dict[str, Plain] = {
        "job.framework": "trl",
        "eval.strategy": strategy,
        "code.evaluates": handed,
    }
    assert value(facts, "eval.without_data") is expected
    assert value({**facts, "job.framework": "lightning"}, "eval.without_data") is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [("null", True), ("~", True), ("None", True), ("none", False), ('"none"', False)],
)
def test_null_is_told_from_the_word_none_by_what_is_written(written: str, expected: bool) -> None:
    quotes = (
        Quote(artifact="a.yaml", line=1, text="2"),
        Quote(artifact="a.yaml", line=2, text=written),
    )
    settings = Fact(key="job.settings", value="lr = 2\nreport_to = null", quotes=quotes)
    fact = apply(FactBook().add([settings]), STEPS).get("logging.null")
    assert fact is not None
    assert (fact.value, fact.quotes) == (expected, ())


def test_a_missing_report_is_known_in_a_whole_config_alone() -> None:
    assert value({"job.settings": "bf16 = true"}, "logging.named") is None
    assert value({"job.settings": "bf16 = true"}, "logging.named", "train-config") is False
    assert value({"job.settings": "a.report_to = wandb"}, "logging.named") is True


LOAD = "call AutoModelForCausalLM.from_pretrained"
MERGE = "call PeftModel.from_pretrained\ncall PeftModel.from_pretrained.merge_and_unload"


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (f"{LOAD}\n{MERGE}", True),
        (f"{LOAD}\n{LOAD}\n{MERGE}", None),
        (f"{LOAD}\n{MERGE}\n{LOAD}", True),
        (LOAD, False),
        (f"call FastLanguageModel.from_pretrained\n{MERGE}", None),
        (MERGE, None),
    ],
)
def test_a_merge_after_a_second_load_is_not_judged(calls: str, expected: bool | None) -> None:
    assert value({"job.calls": calls}, "merge.one_load") is expected


@pytest.mark.parametrize(
    ("capability", "torch", "cuda", "expected"),
    [
        ("7.0", "2.8.0", "12.8", True),
        ("6.1", "2.8.0", "12.9", True),
        ("7.5", "2.8.0", "12.8", False),
        ("8.9", "2.8.0", "12.8", False),
        ("12.1", "2.8.0", "13.0", False),
        ("7.0", "2.8.0", "12.6", False),
        ("12.0", "2.8.0", "12.6", True),
        ("12.0", "2.6.0", None, True),
        ("9.0", "2.6.0", None, None),
        ("7.0", "2.8.0", None, None),
        ("8.7", "2.8.0", "12.6", None),
    ],
)
def test_wheels_hold_code_for_some_cards(
    capability: str, torch: str, cuda: str | None, expected: bool | None
) -> None:
    facts: dict[str, Plain] = {"gpu.compute_capability": capability, "env.torch": torch}
    if cuda is not None:
        facts["env.torch_cuda"] = cuda
    assert value(facts, "env.arch_missing") is expected


@pytest.mark.parametrize(
    ("listed", "capability", "expected"),
    [
        ("sm_75 sm_80 sm_86", "8.9", False),
        ("sm_75 sm_80 sm_86", "7.0", True),
        ("sm_80 sm_90", "12.0", True),
        ("sm_80 compute_90", "12.0", False),
        ("sm_86", "8.0", True),
    ],
)
def test_code_runs_on_later_minors_and_ptx_on_all_that_follow(
    listed: str, capability: str, expected: bool
) -> None:
    facts: dict[str, Plain] = {"gpu.compute_capability": capability, "env.arch_list": listed}
    assert value(facts, "env.arch_missing") is expected


def test_an_assumed_version_is_not_known() -> None:
    assumed = Fact(key="env.transformers", value="5.24.0", origin=Origin.ASSUMED)
    assert apply(FactBook().add([assumed]), STEPS).value("env.transformers_known") is False
    assert value({"env.transformers": "5.24.0"}, "env.transformers_known") is True
