"""What notes say in sentences counts where nothing else tells it."""

from __future__ import annotations

import pytest

from oomdoctor.configs.dialect import ConfigReading
from oomdoctor.model.core import Quote
from oomdoctor.model.enums import Origin
from oomdoctor.reason.said import said
from tests.unit.reason.builders import book


def notes(text: str, dialect: str = "notes") -> tuple[ConfigReading, ...]:
    return (ConfigReading(source_id="notes.txt", dialect=dialect, facts=(), text=text),)


def told(text: str, **known: object) -> dict[str, object]:
    return {one.key: one.value for one in said(notes(text), (), book(**known))}


def test_a_sentence_tells_where_it_failed_and_how() -> None:
    text = (
        "RTX 4090, bs 4\nTraining is fine but it fails during evaluation, where memory creeps up."
    )

    assert told(text) == {
        "run.phase": "eval",
        "growth.monotone": True,
        "growth.points": 3,
        "growth.quantity": "device",
    }


def test_the_line_is_quoted_and_the_words_are_no_measurement() -> None:
    text = "RTX 4090, bs 4\nIt always runs out of memory when the checkpoint is saved to disk."

    (fact,) = said(notes(text), (), book())

    assert (fact.key, fact.value, fact.origin) == ("run.phase", "save", Origin.DERIVED)
    assert [(one.artifact, one.line) for one in fact.quotes] == [("notes.txt", 2)]


def test_what_the_log_says_stays() -> None:
    text = "It always fails during evaluation and the memory keeps growing."

    assert told(text, run__phase="backward", growth__monotone=False) == {}


@pytest.mark.parametrize(
    "text",
    [
        "Training is fine and the evaluation of all samples works as well.",
        "python train.py --evaluation_strategy steps --fail_on_error True --save_steps 100",
        "evaluation_strategy: steps or it fails with an error during evaluation",
        "# it fails with an error during the evaluation of the model",
        "for batch in loader: evaluate(batch) or fail with error in evaluation",
    ],
)
def test_settings_commands_code_and_good_news_tell_nothing(text: str) -> None:
    assert told(text) == {}


def test_a_config_of_a_framework_is_no_prose() -> None:
    text = "It always fails during evaluation and the memory keeps growing."

    assert said(notes(text, "hf_trainer"), (), book()) == ()


def test_a_report_that_was_pasted_as_a_log_has_sentences_too() -> None:
    lines = [
        "RuntimeError: CUDA out of memory. Tried to allocate 14.9 GiB.",
        "It happens during evaluation of the model after training.",
    ]
    quotes = tuple(
        Quote(artifact="crash.log", line=number, text=line) for number, line in enumerate(lines, 1)
    )
    (fact,) = said((), quotes, book())

    assert (fact.key, fact.value, fact.quotes[0].line) == ("run.phase", "eval", 2)


def test_what_was_tried_counts_without_a_word_of_failure() -> None:
    text = "The error only comes once I raise the batch size from 8 to 24 here."

    assert told(text) == {"trial.smaller_batch": "runs"}
