"""The request as a product of the job's dimensions: matches, frames, chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.facts.derive import derive
from oomdoctor.memory import physics
from oomdoctor.memory.fingerprint import fingerprint
from oomdoctor.model.enums import Origin
from oomdoctor.units import format_size
from tests.unit.facts.stated import book

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook

MIB = 1 << 20
Values = dict[str, "bool | float | str"]
QWEN: Values = {"model.name": "Qwen/Qwen2.5-1.5B-Instruct", "oom.requested": "1.16 GiB"}
ROWS: Values = {"train.micro_batch": 1, "train.seq_len": 2048}
LOSS: Values = {
    "trace.function": "cross_entropy",
    "trace.code": "return torch._C._nn.cross_entropy_loss(input, target, weight)",
    "trace.file": "/env/torch/nn/functional.py",
}
LINEAR: Values = {
    "trace.function": "forward",
    "trace.code": "return F.linear(input, self.weight, self.bias)",
    "trace.file": "/env/torch/nn/modules/linear.py",
}


def known(facts: Values) -> FactBook:
    return derive(book(facts))


def test_logits_are_named_from_batch_tokens_and_vocabulary() -> None:
    (match,) = fingerprint(known({**QWEN, **ROWS})).matches

    assert match.bytes == 1_244_659_712
    assert match.expression == "batch*seq*vocab*4"
    assert match.meaning == "fp32 logits"
    assert match.values == {"batch": 1, "seq": 2048, "vocab": 151_936}


@pytest.mark.parametrize(
    ("frame", "expected"), [(LOSS, "fp32 logits"), (LINEAR, "fp32 lm_head output")]
)
def test_the_frame_tells_loss_from_head(frame: Values, expected: str) -> None:
    best = fingerprint(known({**QWEN, **ROWS, **frame})).matches[0]

    assert best.meaning == expected
    assert best.weight > 0.9


@pytest.mark.parametrize("rows", [{}, {"train.seq_len": 2048}, {"train.micro_batch": 1}])
def test_without_rows_both_readings_are_listed(rows: Values) -> None:
    found = {m.expression: m for m in fingerprint(known({**QWEN, **rows})).matches}

    assert found["rows*vocab*4"].values["rows"] == 2048
    assert found["rows*vocab*2"].values["rows"] == 4096
    assert found["rows*vocab*2"].meaning == "bf16 or fp16 lm_head output of 4,096 rows"
    assert found["rows*vocab*2"].assumed == ("rows",)


def test_solved_rows_weigh_less_than_stated_ones() -> None:
    stated = fingerprint(known({**QWEN, **ROWS})).matches[0]
    solved = fingerprint(known(QWEN)).matches[0]

    assert solved.weight < stated.weight


def test_a_loss_frame_prefers_full_precision_among_solved_rows() -> None:
    best = fingerprint(known({**QWEN, **LOSS})).matches[0]

    assert best.meaning == "fp32 logits of 2,048 rows"


def test_padded_rows_below_the_limit_are_tried_for_logits() -> None:
    limit: Values = {"train.micro_batch": 4, "train.seq_len": 4096}

    found = fingerprint(known({**QWEN, **limit})).matches

    assert {m.values["rows"] for m in found} == {2048, 4096}


def test_no_more_rows_than_stated_are_solved() -> None:
    short: Values = {"train.micro_batch": 1, "train.seq_len": 1024}

    assert fingerprint(known({**QWEN, **short})).matches == ()


def test_a_pair_is_two_rows() -> None:
    pair: Values = {**QWEN, "job.task": "dpo", "train.micro_batch": 1, "train.seq_len": 1024}

    best = fingerprint(known(pair)).matches[0]

    assert best.expression == "2*batch*seq*vocab*4"


def test_evaluation_counts_its_own_rows() -> None:
    job: Values = {**QWEN, "train.seq_len": 512, "train.micro_batch": 1}

    best = fingerprint(known({**job, "run.phase": "eval", "eval.batch": 4})).matches[0]

    assert best.values["batch"] == 4


LLAMA: Values = {"model.name": "meta-llama/Llama-2-7b-hf", "oom.requested": "172.00 MiB"}


def test_a_weight_becomes_an_optimizer_state_in_its_step() -> None:
    frame: Values = {"trace.code": "state['exp_avg'] = torch.zeros_like(p)"}

    plain = fingerprint(known(LLAMA)).matches[0]
    stepping = fingerprint(known({**LLAMA, **frame})).matches[0]

    assert (plain.expression, plain.meaning) == (
        "hidden*intermediate*4",
        "fp32 feed-forward weight",
    )
    assert stepping.meaning == "optimizer state of: fp32 feed-forward weight"


def test_attention_scores_are_named() -> None:
    eager: Values = {
        "model.name": "meta-llama/Llama-2-7b-hf",
        "oom.requested": "4.00 GiB",
        "train.micro_batch": 1,
        "train.seq_len": 8192,
        "trace.code": "attn_weights = nn.functional.softmax(attn_weights, dim=-1)",
    }

    best = fingerprint(known(eager)).matches[0]

    assert (best.expression, best.meaning) == (
        "batch*heads*seq*seq*2",
        "bf16 or fp16 attention scores",
    )


def test_a_hidden_size_makes_every_match_worthless() -> None:
    found = fingerprint(known({**QWEN, **ROWS, "oom.requested": "20.00 MiB"}))

    assert found.expected_by_chance > 3
    assert len(found.matches) > 5
    assert max(match.weight for match in found.matches) < 0.3


def test_more_candidates_mean_more_matches_by_chance() -> None:
    few = fingerprint(book({"model.vocab": 151_936, **ROWS, "oom.requested": "1.16 GiB"}))
    many = fingerprint(known({**QWEN, **ROWS}))

    assert few.tried < many.tried
    assert few.expected_by_chance < many.expected_by_chance


@pytest.mark.parametrize(
    "facts",
    [
        {"oom.requested": "2.00 GiB"},
        {**ROWS, "model.name": "Qwen/Qwen2.5-1.5B"},
        {**QWEN, **ROWS, "oom.absurd_size": True},
    ],
)
def test_nothing_is_matched_without_dimensions_or_a_true_request(facts: Values) -> None:
    assert fingerprint(known(facts)).matches == ()


def test_facts_name_family_precision_and_expression() -> None:
    made = physics.derive(known({**QWEN, **ROWS, **LOSS}))

    assert made.value("fingerprint.logits") is True
    assert made.value("fingerprint.logits_fp32") is True
    assert made.value("fingerprint.best") == "batch*seq*vocab*4"
    assert made.facts["fingerprint.logits"].origin is Origin.DERIVED
    quoted = [quote.text for quote in made.facts["fingerprint.logits"].quotes]
    assert quoted[0] == "oom.requested=1.16 GiB"


def test_solved_rows_leave_the_precision_open() -> None:
    made = physics.derive(known(QWEN))

    assert made.facts["fingerprint.logits"].origin is Origin.ASSUMED
    assert made.get("fingerprint.logits_fp32") is None


def test_a_request_beyond_the_largest_tensor_of_a_family_rules_it_out() -> None:
    made = physics.derive(known({**QWEN, **ROWS, "oom.requested": "9.00 GiB"}))

    assert made.value("fingerprint.logits") is False
    assert made.value("fingerprint.attention") is False


def test_a_smaller_request_rules_nothing_out_that_padding_may_shorten() -> None:
    made = physics.derive(known({**QWEN, **ROWS, "oom.requested": "301.00 MiB"}))

    assert made.get("fingerprint.logits") is None


@pytest.mark.parametrize(
    ("caller", "expected"),
    [("logits = self.lm_head(hidden_states)", True), ("self.down_proj(x)", False)],
)
def test_the_callers_say_which_projection_it_was(caller: str, expected: bool) -> None:
    stack = f"model.py:10 forward | {caller}\nlinear.py:134 forward | F.linear(input)"

    best = fingerprint(known({**QWEN, **ROWS, **LINEAR, "trace.stack": stack})).matches[0]

    assert (best.weight > 0.9) is expected


@given(
    rows=st.integers(min_value=1, max_value=32),
    tokens=st.sampled_from((128, 512, 1024, 1536, 2048, 4096)),
    element=st.sampled_from((2, 4)),
)
def test_the_true_product_is_always_among_the_matches(rows: int, tokens: int, element: int) -> None:
    size = rows * tokens * 151_936 * element
    segment = -(-size // (2 * MIB)) * 2 * MIB if size >= 10 * MIB else 20 * MIB
    facts: Values = {
        **QWEN,
        "oom.requested": format_size(segment),
        "train.micro_batch": rows,
        "train.seq_len": tokens,
    }

    found = fingerprint(known(facts))

    assert f"batch*seq*vocab*{element}" in {match.expression for match in found.matches}
    assert all(0 <= match.weight <= 1 for match in found.matches)


def test_a_family_of_unknown_size_is_not_ruled_out() -> None:
    rows: Values = {"train.micro_batch": 1, "train.seq_len": 2048, "oom.requested": "9.00 GiB"}

    made = physics.derive(known({**rows, "model.vocab": 32000}))

    assert made.value("fingerprint.logits") is False
    assert made.get("fingerprint.attention") is None


def test_split_parameters_do_not_rule_a_weight_out() -> None:
    odd: Values = {"model.name": "Qwen/Qwen2.5-1.5B", "oom.requested": "301.00 MiB"}

    whole = physics.derive(known(odd))
    split = physics.derive(known({**odd, "dist.kind": "fsdp2", "dist.world_size": 4}))

    assert whole.value("fingerprint.weight") is False
    assert split.get("fingerprint.weight") is None


def test_a_batch_that_the_log_shows_is_matched_beside_the_configured_one() -> None:
    seen = {
        **QWEN,
        **ROWS,
        "data.tokens_seen": 8192,
        "oom.requested": format_size(8192 * 151_936 * 4),
    }

    assert fingerprint(known(seen)).matches[0].expression == "seen*vocab*4"


def test_the_columns_of_a_convolution_are_named() -> None:
    values: Values = {
        "conv.unfolded": 256 * 27,
        "conv.places": 3 * 1088 * 1920,
        "oom.requested": "161.37 GiB",
    }
    best = fingerprint(known(values)).matches[0]

    assert best.expression == "unfolded*places*4"
    assert best.meaning == "fp32 columns of one sample for a convolution"


@pytest.mark.parametrize(("ranks", "share"), [(2, 76_032), (4, 38_016)])
def test_a_tensor_parallel_rank_makes_its_padded_share_of_the_logits(
    ranks: int, share: int
) -> None:
    request = format_size(4096 * share * 4)
    values: Values = {**QWEN, **ROWS, "train.seq_len": 4096, "oom.requested": request}
    matches = fingerprint(known({**values, "dist.tensor_ranks": ranks})).matches

    assert "batch*seq*vocab_shard*4" in [match.expression for match in matches]
    assert "vocab_shard" not in str(fingerprint(known(values)).matches)
