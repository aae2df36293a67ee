"""Facts out of people's own words."""

from __future__ import annotations

import pytest

from oomdoctor.evidence.symptoms import read
from oomdoctor.facts.given import parse_one

LATE = ("run.late_step=true", "run.first_step=false")
RISES = ("growth.monotone=true", "growth.points=3")


@pytest.mark.parametrize(
    ("said", "phase"),
    [
        ("it dies in the validation loop", "eval"),
        ("training is fine, but evaluation crashes", "eval"),
        ("fails when the checkpoint gets saved", "save"),
        ("all steps pass; saving the model runs out of memory", "save"),
        ("fresh runs work, resuming does not work", "resume"),
        ("while the model is being loaded", "load"),
        ("forward works and backward fails", "backward"),
        ("in optimizer.step()", "optimizer"),
        ("generating long answers kills it", "generate"),
        ("when merging the adapter", "merge"),
        ("the engine does not start, vllm fails at startup", "serve-start"),
    ],
)
def test_the_place_of_the_failing_clause_is_the_phase(said: str, phase: str) -> None:
    assert f"run.phase={phase}" in read(said)


@pytest.mark.parametrize(
    "said",
    ["training is fine", "evaluation passes", "forward passes fit", "the same as the training"],
)
def test_a_place_where_all_went_well_is_no_phase(said: str) -> None:
    assert [item for item in read(said) if item.startswith("run.phase")] == []


def test_one_sentence_states_several_facts() -> None:
    found = read("in validation, about 200 batches in, memory climbs")

    assert {"run.phase=eval", *LATE, *RISES, "growth.quantity=device"} == set(found)


def test_a_rise_of_main_memory_is_not_one_of_the_card() -> None:
    assert "growth.quantity=host" in read("RAM keeps growing until it is killed")


def test_flat_in_training_and_rising_in_evaluation_is_a_rise_in_evaluation() -> None:
    found = read("use is stable in training and rises in evaluation")

    assert {"run.phase=eval", *RISES} <= set(found)


def test_a_steady_rise_is_a_rise_and_a_steady_use_is_none() -> None:
    assert "growth.monotone=true" in read("a steady increase of use")
    assert "growth.monotone=false" in read("use is steady")


def test_a_subject_is_carried_on_to_the_clause_that_tells_of_the_failure() -> None:
    assert "run.phase=save" in read("save_model works on one GPU, fails on eight")


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("a colleague's process uses 10 GB of the card", "gpu.foreign_share=0.2"),
        ("memory is in use, no process is shown", "gpu.process_table_empty=true"),
        ("only my job is on it", "gpu.process_rows=1"),
        ("killed with exit code 137", "host.killed=true"),
        ("SIGBUS in a loader", "host.shm_error=true"),
        ("since the driver update", "history.changed=driver"),
        ("2.3.1 works, 2.4.0 does not", "history.changed=library"),
        ("half the batch size runs", "trial.smaller_batch=runs"),
        ("a smaller batch fails at the same place", "trial.smaller_batch=same"),
        ("I append the logits to a list", "code.appends_outputs=true"),
        ("total += loss in my loop", "code.loss_accumulated=true"),
        ("save_model works on one GPU, fails on eight", "dist.world_size=2"),
        ("it fails on 4 cards", "dist.world_size=2"),
        ("memory is split unevenly over the cards", "gpu.imbalance=0.6"),
        ("there is an imbalance between the GPUs", "gpu.imbalance=0.6"),
        ("it runs without vLLM", "gen.colocated_engine=true"),
        ("without the engine it fits", "gen.colocated_engine=true"),
        ("it works without graphs", "compile.cudagraphs=true"),
        ("without CUDA graphs a third of the card is in use", "compile.cudagraphs=true"),
    ],
)
def test_set_phrases_state_facts(said: str, fact: str) -> None:
    assert fact in read(said)


def test_what_is_denied_is_not_stated() -> None:
    assert "host.killed=true" not in read("it is not killed")


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("it fails on many long samples", "dist.world_size"),
        ("it fails on 2 of ten runs", "dist.world_size"),
        ("on one GPU, batch 4", "dist.world_size"),
        ("one card of 8 GB, it dies on 2 of ten runs", "dist.world_size"),
        ("the classes are imbalanced", "gpu.imbalance"),
        ("class imbalance is handled by a sampler", "gpu.imbalance"),
        ("lengths in a batch are uneven", "gpu.imbalance"),
        ("plain generation with transformers, without vLLM", "gen.colocated_engine"),
        ("all is compiled without graphs", "compile.cudagraphs"),
    ],
)
def test_like_words_about_other_things_are_no_set_phrases(said: str, key: str) -> None:
    assert key not in {item.partition("=")[0] for item in read(said)}


@pytest.mark.parametrize("said", ["", "hello", "?", "a" * 5000, "it " * 3000])
def test_empty_words_state_nothing(said: str) -> None:
    assert read(said) == ()


def test_all_that_is_stated_can_be_given_with_fact() -> None:
    from oomdoctor.evidence.symptom_phrases import PLAIN

    for _, items in PLAIN:
        for item in items:
            parse_one(item)
