"""Numbers in names that people state: superscripts, other scripts, thousands of digits."""

from __future__ import annotations

import pytest

from oomdoctor.configs.meanings import image_size
from oomdoctor.configs.parallel import generic_resource
from oomdoctor.facts import gpus, models
from oomdoctor.facts.questions import questions
from oomdoctor.pipeline import diagnose
from oomdoctor.reason import answering
from oomdoctor.reason.file_names import name_ranks
from oomdoctor.rules.versions import version_key

LONG = "9" * 5000
NOT_NUMBERS = ("²", "²³", LONG)


@pytest.mark.parametrize("digits", NOT_NUMBERS)
def test_a_card_with_no_number_in_its_name_is_no_failure(digits: str) -> None:
    assert isinstance(gpus.lookup(f"NVIDIA A100 {digits}GB"), tuple)
    assert gpus.split_mig(f"A100 MIG 1g.{digits}gb")[1] is None


@pytest.mark.parametrize("digits", NOT_NUMBERS)
def test_a_model_with_no_number_in_its_name_has_no_size(digits: str) -> None:
    assert models.stated_size(f"some-{digits}b") is None


@pytest.mark.parametrize("digits", NOT_NUMBERS)
def test_a_setting_that_is_no_number_says_nothing(digits: str) -> None:
    assert list(image_size(digits)) == []
    assert list(generic_resource(f"gpu:{digits}")) == []


@pytest.mark.parametrize("digits", NOT_NUMBERS)
def test_a_folder_that_is_no_number_is_no_rank(digits: str) -> None:
    path = f"attempt_0/{digits}/stderr.log"

    assert name_ranks([path])[path].rank is None


@pytest.mark.parametrize("digits", NOT_NUMBERS)
def test_an_answer_that_is_no_number_chooses_nothing(digits: str) -> None:
    question = next(one for one in questions().values() if one.kind == "choice")

    answer = answering.understand(question, digits)

    assert answer is None or answer.facts == ()


@pytest.mark.parametrize("text", ["٣.1", "2.٣", "²"])
def test_a_version_in_another_script_is_none(text: str) -> None:
    assert version_key(text) in (None, ((2,), 0))


def test_a_very_long_name_of_a_card_takes_no_time() -> None:
    found = diagnose("CUDA out of memory", facts=("gpu.name=" + "x1" * 50_000,))

    assert found.answer == "need_evidence"
