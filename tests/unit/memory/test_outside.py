"""What stands outside the allocator: a band, and the share of an engine that answers beside it."""

from __future__ import annotations

from oomdoctor.estimating.cards import cards_of
from oomdoctor.estimating.formula import Formula
from oomdoctor.estimating.verdicts import verdicts
from oomdoctor.facts import model_configs
from oomdoctor.memory.outside import outside
from oomdoctor.model.job import Job, ModelSpec
from oomdoctor.record import replace

GIB = 1 << 30


def job(share: float | None) -> Job:
    """Return a GRPO job with an engine on the trainer's card."""
    known = model_configs.lookup("Qwen/Qwen2.5-0.5B")
    assert known is not None
    spec = ModelSpec(name=known.name, config=known.config, source="table", params=known.params)
    return Job(model=spec, task="grpo", framework="trl", seq_len=512, engine_share=share)


def test_an_engine_takes_its_share_of_every_card() -> None:
    alone, shared = outside(job(None)), outside(job(0.3))

    assert shared.on(10 * GIB).low == alone.low + 3 * GIB
    assert shared.on(80 * GIB).high == alone.high + 24 * GIB
    assert "30 % of the card for vLLM" in shared.says
    assert "vLLM" not in alone.says


def test_a_job_that_fits_alone_may_not_fit_beside_an_engine() -> None:
    [card] = cards_of(["12GiB"])
    plain = job(None)
    peak = Formula().peak(plain)

    def word(one: Job) -> str:
        return verdicts(peak, [card], outside(one))[0].verdict

    assert word(plain) == "fits"
    assert word(replace(plain, engine_share=0.6)) == "oom"
