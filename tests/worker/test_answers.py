"""Jobs that generate: GRPO's answers, beams, pairs of encoder and decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.memory.stream_replay import replay
from oomdoctor.model.job import GenerationSpec, Job
from oomdoctor.record import replace
from oomdoctor.worker.fake.trace import trace
from oomdoctor.worker.twins.grpo import answer_length
from tests.worker.fake.cards import A100
from tests.worker.jobs import JOB, LORA, PARAMETERS, T5

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.worker.ledger import Watching

    Run = Callable[[Job], Watching]

ANSWERS = GenerationSpec(batch=2, prompt=16, new_tokens=16)
GRPO = replace(JOB, framework="trl", loss="chunked", task="grpo", generation=ANSWERS)


@pytest.mark.parametrize(
    ("changes", "copies"),
    [({}, 1), ({"reference": "separate"}, 2), ({"reference": "adapter-off", "lora": LORA}, 1)],
)
def test_groups_of_answers_have_a_second_model_only_for_a_divergence(
    run: Run, changes: dict[str, Any], copies: int
) -> None:
    watching = run(replace(GRPO, **changes))

    assert watching.sizes["weights"] == pytest.approx(copies * PARAMETERS * 4, rel=0.01)
    assert "generation" in watching.peaks


def test_whole_logits_are_those_of_the_answers_alone(run: Run) -> None:
    whole = replace(GRPO, loss="full-logits", batch=8)
    short = replace(whole, generation=replace(ANSWERS, new_tokens=8, prompt=24))

    more, less = (run(one).peaks["step 1/loss"] for one in (whole, short))

    assert more - less > 8 * 8 * 3000 * 4


@pytest.mark.parametrize(("generation", "length"), [(ANSWERS, 16), (None, 16)])
def test_an_answer_is_what_is_generated_or_half_of_a_row(
    generation: GenerationSpec | None, length: int
) -> None:
    assert answer_length(replace(GRPO, generation=generation)) == length


def test_answers_of_an_engine_elsewhere_are_told(run: Run) -> None:
    assumed = run(replace(GRPO, generation=None)).assumed

    assert assumed == ["answers come from an engine elsewhere: its memory is not counted"]


@pytest.mark.parametrize("model", [JOB.model, T5], ids=["decoder", "pair"])
def test_beams_are_searched_to_the_last_token(model: Any) -> None:
    task = "seq2seq" if model is T5 else "generation"
    job = replace(JOB, model=model, task=task, target_len=8)

    def events(tokens: int) -> int:
        spec = replace(ANSWERS, new_tokens=tokens, beams=3)
        stream = trace(replace(job, generation=spec), A100, phases=["generation"])
        assert replay(stream).peak_allocated > 0
        return len(stream.events)

    few, more, most = events(2), events(4), events(6)
    assert more - few == pytest.approx(most - more, rel=0.1) != 0
