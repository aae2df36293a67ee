"""Framework defaults: by version, by framework, and only where a config was read."""

from __future__ import annotations

import pytest

from oomdoctor.facts.defaults import assumed, table
from oomdoctor.facts.registry import specs
from oomdoctor.model.enums import Kind, Origin
from tests.unit.facts.stated import book

CONFIG = ("train-config",)


def _defaults(
    facts: dict[str, bool | int | float | str], *, closes: tuple[str, ...] = CONFIG
) -> dict[str, bool | int | float | str]:
    return {fact.key: fact.value for fact in assumed(book(facts, closes=closes))}


def test_a_traceback_alone_assumes_nothing() -> None:
    assert _defaults({"job.framework": "transformers"}, closes=("traceback",)) == {}


def test_the_trainer_defaults_to_eight_rows_without_checkpointing() -> None:
    made = _defaults({"job.framework": "transformers"})

    assert made["train.micro_batch"] == 8
    assert made["train.grad_checkpointing"] is False
    assert made["eval.strategy"] == "no"


def test_defaults_are_assumed_and_name_the_version() -> None:
    facts = {"job.framework": "transformers", "env.transformers": "4.46.3"}

    made = {fact.key: fact for fact in assumed(book(facts, closes=CONFIG))}

    assert made["train.micro_batch"].origin is Origin.ASSUMED
    assert made["train.micro_batch"].source == "default of transformers 4.46.3"


def test_an_unstated_version_names_the_newest_one_read() -> None:
    facts = book({"job.framework": "transformers"}, closes=CONFIG)

    made = {fact.key: fact for fact in assumed(facts)}

    expected = "default of transformers 5.24.0 (version not stated)"
    assert made["train.micro_batch"].source == expected


def test_what_the_config_states_is_not_assumed() -> None:
    made = _defaults({"job.framework": "transformers", "train.micro_batch": 2})

    assert "train.micro_batch" not in made


@pytest.mark.parametrize(
    ("version", "expected"),
    [("0.16.1", False), ("0.24.0", True), ("1.16.0", True), ("2.0.0", True), ("0.20.0", None)],
)
def test_trl_checkpointing_changed_between_two_versions(
    version: str, expected: bool | None
) -> None:
    made = _defaults({"job.framework": "trl", "job.task": "sft", "env.trl": version})

    assert made.get("train.grad_checkpointing") is expected


def test_a_default_that_changed_is_left_open_at_an_unknown_version() -> None:
    made = _defaults({"job.framework": "trl", "job.task": "sft"})

    assert "train.grad_checkpointing" not in made
    assert made["train.seq_len"] == 1024


def test_llamafactory_checkpoints_and_trains_an_adapter_on_all_linears() -> None:
    made = _defaults({"job.framework": "llamafactory"})

    keys = ("train.grad_checkpointing", "lora.on", "lora.rank", "lora.targets", "train.seq_len")
    assert [made[key] for key in keys] == [True, True, 8, "all", 2048]


def test_no_adapter_defaults_for_full_training() -> None:
    made = _defaults({"job.framework": "llamafactory", "lora.on": False})

    assert "lora.rank" not in made


def test_axolotl_evaluates_with_the_training_batch() -> None:
    assert _defaults({"job.framework": "axolotl", "train.micro_batch": 6})["eval.batch"] == 6
    assert _defaults({"job.framework": "axolotl"})["eval.batch"] == 1


def test_unknown_frameworks_have_no_defaults() -> None:
    assert _defaults({"job.framework": "megatron"}) == {}


def test_a_version_that_is_no_number_is_taken_as_old() -> None:
    made = _defaults({"job.framework": "transformers", "env.transformers": "main"})

    assert "train.micro_batch" not in made


def test_every_default_is_a_registered_fact_of_its_kind() -> None:
    kinds: dict[Kind, type | tuple[type, ...]] = {Kind.BOOL: bool, Kind.COUNT: int}
    kinds |= {Kind.ENUM: str, Kind.TEXT: str, Kind.RATIO: (int, float)}
    wrong = [
        (source, key, value)
        for source, entry in table().items()
        for key, runs in entry["facts"].items()  # type: ignore[attr-defined] - JSON
        for _, _, value in runs
        if value is not None
        and not str(value).startswith("=")
        and (
            key not in specs()
            or not isinstance(value, kinds[specs()[key].kind])
            or (specs()[key].choices and value not in specs()[key].choices)
        )
    ]

    assert wrong == []
