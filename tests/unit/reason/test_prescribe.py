"""Fixes: what is left out, what comes first, what is saved, and in whose spelling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.configs.dialect import ConfigReading
from oomdoctor.reason.prescribe import prescribe
from oomdoctor.reason.rank import rank
from tests.unit.reason.builders import GIB, book, cause, fix, rule, ruleset

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook
    from oomdoctor.reason.prescribe import Plan
    from oomdoctor.rules.shape import Fix, Rule, RuleSet

SEEN = book(oom__seen=True)


def one_rule(*fixes: Fix) -> RuleSet:
    return ruleset([rule("A", "a", fixes=fixes)], [cause("a", prior=0.5)])


def plan(rules: RuleSet, facts: FactBook = SEEN, *readings: ConfigReading) -> Plan:
    return prescribe(rank(rules, facts), rules, facts, readings)


def ids(made: Plan) -> list[str]:
    return [one.fix_id for one in made.prescriptions]


def test_a_fix_whose_needs_are_false_is_dropped() -> None:
    facts = book(oom__seen=True, oom__caught=False)

    assert ids(plan(one_rule(fix("x", needs="oom.caught"), fix("y")), facts)) == ["y"]


def two_rules(sibling: Rule) -> RuleSet:
    return ruleset([rule("A", "a", fixes=[fix("x")]), sibling], [cause("a", prior=0.5)])


def test_a_sibling_whose_gate_holds_offers_its_fixes_behind_those_of_the_speaking_rule() -> None:
    rules = two_rules(rule("B", "a", fixes=[fix("y")]))

    assert ids(plan(rules)) == ["x", "y"]


def test_a_sibling_whose_gate_is_open_offers_nothing() -> None:
    rules = two_rules(rule("B", "a", when="oom.library == 'xla'", fixes=[fix("y")]))

    assert ids(plan(rules)) == ["x"]


def test_what_a_siblings_fix_needs_has_to_be_known() -> None:
    serving = fix("y", needs="serve.engine == 'ollama'")
    rules = two_rules(rule("B", "a", fixes=[serving]))

    assert ids(plan(rules)) == ["x"]
    assert ids(plan(rules, book(oom__seen=True, serve__engine="ollama"))) == ["x", "y"]


def test_what_a_fix_of_the_speaking_rule_needs_may_be_unknown() -> None:
    assert ids(plan(one_rule(fix("x", needs="oom.caught")))) == ["x"]


@pytest.mark.parametrize(
    "needs",
    ["job.framework == 'vllm'", "serve.engine == 'ollama'", "oom.library == 'xla'"],
)
def test_advice_for_a_program_that_may_be_another_comes_after_what_is_for_any(needs: str) -> None:
    fixes = (fix("theirs", needs=needs), fix("slow", time_factor=1.3))

    assert ids(plan(one_rule(*fixes))) == ["slow", "theirs"]


def test_advice_that_waits_for_a_version_or_a_card_keeps_its_place() -> None:
    fixes = (fix("quick", needs="gpu.compute_capability >= '8.0'"), fix("slow", time_factor=1.3))

    assert ids(plan(one_rule(*fixes))) == ["quick", "slow"]


def test_a_fix_in_force_is_listed_as_suppressed() -> None:
    facts = book(oom__seen=True, alloc__expandable_segments=True)

    made = plan(one_rule(fix("x", in_force="alloc.expandable_segments")), facts)

    assert made.prescriptions == ()
    assert made.suppressed == ("already in force: Do x",)


def test_improbable_causes_get_no_fix() -> None:
    rules = ruleset(
        [rule("A", "a", fixes=[fix("x")]), rule("B", "b", fixes=[fix("y")])],
        [cause("a", prior=0.9), cause("b", prior=0.01)],
    )

    assert ids(plan(rules)) == ["x"]


def test_the_likelier_cause_comes_first_and_then_quality_time_and_bytes() -> None:
    rules = ruleset(
        [
            rule("B", "b", fixes=[fix("other")]),
            rule(
                "A",
                "a",
                fixes=[
                    fix("worse", quality="lower"),
                    fix("slow", time_factor=1.3),
                    fix("small", saves=("1*GiB", "1*GiB", "1*GiB")),
                    fix("big", saves=("1*GiB", "3*GiB", "4*GiB")),
                ],
            ),
        ],
        [cause("a", prior=0.5), cause("b", prior=0.2)],
    )

    assert ids(plan(rules)) == ["big", "small", "slow", "worse", "other"]


def test_a_fix_that_cures_two_causes_weighs_both() -> None:
    rules = ruleset(
        [
            rule("A", "a", fixes=[fix("x")]),
            rule("B", "b", fixes=[fix("y")]),
            rule("C", "c", fixes=[fix("y")]),
        ],
        [cause("a", prior=0.3), cause("b", prior=0.2), cause("c", prior=0.2)],
    )

    assert ids(plan(rules)) == ["y", "x"]


def test_fixes_of_the_other_rules_of_a_cause_are_offered_too() -> None:
    rules = ruleset(
        [rule("A", "a", fixes=[fix("x")]), rule("B", "a", fixes=[fix("y")])], [cause("a")]
    )

    assert ids(plan(rules)) == ["x", "y"]


def test_a_saving_is_an_interval_or_nothing() -> None:
    saves = ("0*B", "min(torch.reserved_unallocated, oom.requested)", "torch.reserved_unallocated")
    rules = one_rule(fix("x", saves=saves))
    known = book(oom__seen=True, oom__requested=GIB, torch__reserved_unallocated=4 * GIB)

    saving = plan(rules, known).prescriptions[0].saving
    missing = plan(rules).prescriptions[0].saving

    assert saving is not None
    assert (saving.low_bytes, saving.likely_bytes, saving.high_bytes) == (0, GIB, 4 * GIB)
    assert missing is None


def test_a_saving_above_the_overshoot_does_not_prove_that_the_step_fits() -> None:
    rules = one_rule(fix("x", saves=("9*GiB", "9*GiB", "9*GiB")))
    facts = book(oom__seen=True, oom__requested=2 * GIB, oom__free=GIB)

    assert plan(rules, facts).prescriptions[0].sufficient is None


def test_states_above_the_card_prove_that_a_saving_is_not_enough() -> None:
    rules = one_rule(fix("x", saves=("1*GiB", "1*GiB", "1*GiB")))
    facts = book(oom__seen=True, oom__capacity=24 * GIB, states__static_low=40 * GIB)

    assert plan(rules, facts).prescriptions[0].sufficient is False


PATCH = {
    "hf_trainer": {"gradient_checkpointing": True},
    "axolotl": {"gradient_checkpointing": True},
    "env": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
}


def dialects(facts: FactBook, *readings: ConfigReading) -> set[str]:
    made = plan(one_rule(fix("x", patch=PATCH)), facts, *readings)
    return {patch.dialect for patch in made.prescriptions[0].patches}


def test_patches_use_the_dialect_of_the_given_config_and_the_environment() -> None:
    text = "base_model: m\nadapter: lora\nmicro_batch_size: 1\n"
    reading = ConfigReading(
        source_id="a.yaml", dialect="axolotl", facts=(), text=text, path="a.yaml"
    )

    assert dialects(SEEN, reading) == {"axolotl", "env"}


def test_without_a_config_the_likely_framework_is_spelled_out() -> None:
    assert dialects(book(oom__seen=True, job__framework="axolotl")) == {"axolotl", "env"}
    assert dialects(SEEN) == {"hf_trainer", "env"}


def test_in_evaluation_a_smaller_training_batch_never_comes_first() -> None:
    rules = one_rule(
        fix("batch", patch={"hf_trainer": {"per_device_train_batch_size": 1}}),
        fix("move", patch={"hf_trainer": {"eval_accumulation_steps": 1}}, time_factor=1.5),
    )
    facts = book(oom__seen=True, run__phase="eval")

    assert ids(plan(rules, facts)) == ["move", "batch"]
    assert ids(plan(rules)) == ["batch", "move"]


AXOLOTL = "base_model: m\nadapter: lora\nmicro_batch_size: 4\n"


def axolotl(text: str) -> ConfigReading:
    return ConfigReading(source_id="a.yaml", dialect="axolotl", facts=(), text=text, path="a.yaml")


def test_a_given_file_gets_a_diff() -> None:
    rules = one_rule(fix("x", patch={"axolotl": {"micro_batch_size": 2}}))

    patches = plan(rules, SEEN, axolotl(AXOLOTL)).prescriptions[0].patches

    assert patches[0].file == "a.yaml"
    assert patches[0].diff is not None
    assert "+micro_batch_size: 2" in patches[0].diff


@pytest.mark.parametrize(
    ("call", "dialect"), [("TrainingArguments", "hf_trainer"), ("SFTConfig", "trl")]
)
def test_a_script_is_edited_at_the_arguments_that_it_has(call: str, dialect: str) -> None:
    keys = {"fp16": False}
    rules = one_rule(fix("x", patch={"trl": keys, "hf_trainer": keys}))
    text = f"import trl\nargs = {call}(fp16=True)\n"
    script = ConfigReading(source_id="a.py", dialect="python", facts=(), text=text, path="a.py")

    (made,) = plan(rules, SEEN, script).prescriptions[0].patches

    assert (made.dialect, made.file) == (dialect, "a.py")


def test_what_the_file_holds_already_is_suppressed() -> None:
    rules = one_rule(fix("x", patch={"axolotl": {"micro_batch_size": 4}}))

    made = plan(rules, SEEN, axolotl(AXOLOTL))

    assert (made.prescriptions, made.suppressed) == ((), ("already in force: Do x",))


def test_settings_are_calculated_from_facts() -> None:
    patch = {"axolotl": {"micro_batch_size": "= max(1, train.micro_batch // 2)"}}
    rules = one_rule(fix("x", patch=patch))

    known = plan(rules, book(oom__seen=True, train__micro_batch=8)).prescriptions[0].patches
    unknown = plan(rules).prescriptions[0].patches

    assert [dict(one.settings) for one in known] == [{"micro_batch_size": 4}]
    assert unknown == ()
