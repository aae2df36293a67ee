"""The budget of engines against what published starts printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.memory import serving_rows
from oomdoctor.memory.formula_engine import largest_pass, share_of
from oomdoctor.memory.formula_serving import profile_bytes
from oomdoctor.memory.formula_shape import shape_of
from oomdoctor.memory.serving_budget import budget_of, budget_with_changes, host_bytes
from oomdoctor.model.estimate import FITS, OOM, TIGHT
from oomdoctor.record import replace
from tests.unit.memory.servers import CARD_24, GIB, card, server, size_of

if TYPE_CHECKING:
    from oomdoctor.model.job import CardSpec
    from oomdoctor.model.serving import ServingSpec

V0 = {"vllm": "0.7.2"}


@pytest.mark.parametrize(
    ("spec", "gib", "weights", "profile", "cache"),
    [
        (
            server(
                "meta-llama/Meta-Llama-3-8B",
                utilization=0.9,
                longest=8192,
                batched_tokens=8192,
                sequences=256,
                versions={"vllm": "0.6.4"},
            ),
            79.22,
            14.96,
            1.26,
            53.29,
        ),
        (
            server(
                "Qwen/Qwen2.5-32B",
                tensor=2,
                utilization=0.9,
                longest=10000,
                batched_tokens=10000,
                sequences=256,
                versions=V0,
            ),
            44.42,
            30.71,
            1.26,
            7.71,
        ),
    ],
)
def test_a_published_start(
    spec: ServingSpec, gib: float, weights: float, profile: float, cache: float
) -> None:
    found = budget_of(spec, card(gib))
    assert size_of(spec, card(gib), serving_rows.WEIGHTS) == pytest.approx(weights, rel=0.01)
    assert size_of(spec, card(gib), serving_rows.PROFILE) == pytest.approx(profile, rel=0.15)
    assert found.cache_bytes / GIB == pytest.approx(cache, rel=0.02)
    assert found.verdict == FITS


def test_a_start_that_was_refused_on_a_card_of_8_gib() -> None:
    spec = server(
        "Qwen/Qwen2.5-7B",
        quant="awq",
        utilization=0.7,
        longest=4096,
        batched_tokens=4096,
        sequences=256,
        versions=V0,
    )
    found = budget_of(spec, card(8.0))
    assert found.verdict == OOM
    assert found.cache_bytes == 0  # the engine printed -1.05 GiB
    assert size_of(spec, card(8.0), serving_rows.WEIGHTS) == pytest.approx(5.20, rel=0.02)


def test_a_context_that_was_refused_names_the_longest_that_is_not() -> None:
    spec = server(
        "Qwen/Qwen2.5-14B",
        tensor=2,
        utilization=0.98,
        longest=131072,
        batched_tokens=2048,
        sequences=256,
        versions=V0,
    )
    found = budget_with_changes(spec, card(23.08))
    assert found.verdict == OOM
    assert found.longest == pytest.approx(81536, rel=0.06)  # the engine's own word
    assert all(change.startswith("--") or "weights" in change for change in found.changes)


def test_requests_are_the_cache_over_one_of_full_length() -> None:
    spec = server("meta-llama/Llama-3.1-8B", longest=8192)
    found = budget_of(spec, CARD_24)
    request = 8192 * 2 * 32 * 8 * 128 * 2
    assert found.requests == pytest.approx(found.cache_bytes / request, abs=0.01)
    assert found.tokens <= found.cache_bytes // (2 * 32 * 8 * 128 * 2)


def test_fp8_keys_and_values_double_the_tokens() -> None:
    plain = budget_of(server("meta-llama/Llama-3.1-8B", longest=8192), CARD_24)
    packed = budget_of(server("meta-llama/Llama-3.1-8B", longest=8192, cache="fp8_e5m2"), CARD_24)
    assert packed.tokens == pytest.approx(2 * plain.tokens, rel=0.01)


def test_adapters_take_slots_of_their_largest_rank() -> None:
    plain = budget_of(server("meta-llama/Llama-3.1-8B", longest=8192), CARD_24)
    spec = server("meta-llama/Llama-3.1-8B", longest=8192, adapters=4, adapter_rank=64)
    inputs, outputs = 6 * 4096 + 14336, 4096 + 2 * 1024 + 2 * 14336 + 2 * 4096
    slots = 2 * 4 * 64 * (inputs + outputs) * 32
    found = budget_of(spec, CARD_24)
    assert plain.cache_bytes - found.cache_bytes == pytest.approx(slots, rel=0.01)


def test_weights_on_the_host_leave_the_card_and_fill_main_memory() -> None:
    plain = server("meta-llama/Llama-3.1-8B", longest=8192)
    moved = replace(plain, weights_on_host=4 * GIB)
    assert budget_of(moved, CARD_24).cache_bytes - budget_of(plain, CARD_24).cache_bytes == 4 * GIB
    assert host_bytes(moved) - host_bytes(plain) == 4 * GIB


def test_no_graphs_are_captured_in_eager_mode() -> None:
    spec = server("meta-llama/Llama-3.1-8B", eager=True)
    assert size_of(spec, CARD_24, serving_rows.GRAPHS) == 0


@pytest.mark.parametrize(
    ("where", "tokens", "sequences"),
    [(card(79.2, "H100"), 8192, 1024), (card(79.2, "A100"), 2048, 256), (CARD_24, 2048, 256)],
)
def test_the_pass_that_a_card_is_profiled_with(
    where: CardSpec, tokens: int, sequences: int
) -> None:
    assert largest_pass(server("meta-llama/Llama-3.1-8B"), where) == (tokens, sequences)


def test_the_default_share_depends_on_the_version() -> None:
    older = server("meta-llama/Llama-3.1-8B", versions={"vllm": "0.9.1"})
    assert share_of(older, CARD_24) == 0.9
    assert share_of(server("meta-llama/Llama-3.1-8B"), CARD_24) == 0.92


def test_a_share_that_leaves_no_room_for_the_context_is_no_start() -> None:
    spec = server("meta-llama/Llama-3.2-1B", utilization=0.999, longest=4096)
    found = budget_with_changes(spec, CARD_24)
    assert found.verdict == OOM
    share = next(one for one in found.changes if "utilization" in one).split()[1]
    assert budget_of(replace(spec, utilization=float(share)), CARD_24).verdict == FITS


def test_each_change_fits_alone() -> None:
    spec = server("meta-llama/Llama-3.1-8B", utilization=0.7, longest=16384)
    found = budget_with_changes(spec, CARD_24)
    assert found.verdict != FITS
    share = next(one for one in found.changes if "utilization" in one).split()[1]
    assert float(share) == found.least_utilization
    assert budget_of(replace(spec, utilization=float(share)), CARD_24).verdict == FITS
    assert budget_of(replace(spec, utilization=float(share) - 0.06), CARD_24).verdict != FITS


def test_layers_with_a_window_keep_little_of_a_long_request() -> None:
    spec = server("google/gemma-3-27b-it", longest=131072)
    kept = serving_rows.request_bytes(spec, 131072, ahead=2048)
    whole = 62 * 131072 * 2 * 16 * 128 * 2
    assert kept < 0.2 * whole
    assert kept == (10 * 131072 + 52 * (1024 + 2048)) * 2 * 16 * 128 * 2


def test_a_latent_is_whole_on_every_card() -> None:
    alone = serving_rows.layer_bytes(server("deepseek-ai/DeepSeek-V2-Lite"))
    shared = serving_rows.layer_bytes(server("deepseek-ai/DeepSeek-V2-Lite", tensor=4))
    assert alone == shared == (512 + 64) * 2


def test_sglang_holds_weights_and_cache_in_its_fraction() -> None:
    spec = server("Qwen/Qwen3-8B", engine="sglang", utilization=0.85, longest=16384)
    found = budget_of(spec, card(80))
    weights = size_of(spec, card(80), serving_rows.WEIGHTS) * GIB
    assert found.cache_bytes == pytest.approx(found.budget_bytes - weights, abs=1024)


def test_tgi_takes_what_is_free_with_some_left() -> None:
    spec = server("Qwen/Qwen3-8B", engine="tgi", longest=8192)
    found = budget_of(spec, CARD_24)
    assert 0.9 * CARD_24.total_bytes < found.budget_bytes < 0.93 * CARD_24.total_bytes
    assert found.verdict == FITS


def test_between_the_bands_a_verdict_is_tight() -> None:
    assert serving_rows.judged((90, 100, 110), 100) == TIGHT
    assert serving_rows.judged((90, 100, 200), 109) == FITS  # 8 % is the widest
    assert serving_rows.judged((10, 100, 110), 91) == OOM


def test_cards_share_weights_and_heads() -> None:
    where = card(79.2, "A100")
    alone, shared = (server("meta-llama/Meta-Llama-3-8B", tensor=ranks) for ranks in (1, 2))

    halves = size_of(alone, where, serving_rows.WEIGHTS) / 2
    assert size_of(shared, where, serving_rows.WEIGHTS) == pytest.approx(halves)
    assert serving_rows.layer_bytes(shared) == serving_rows.layer_bytes(alone) / 2
    more = server("meta-llama/Meta-Llama-3-8B", tensor=16)
    assert serving_rows.layer_bytes(more) == serving_rows.layer_bytes(alone) / 8  # its 8 heads


def test_packed_weights_leave_more_for_the_cache() -> None:
    plain = budget_of(server("Qwen/Qwen2.5-7B", longest=8192), CARD_24)
    packed = budget_of(server("Qwen/Qwen2.5-7B", longest=8192, quant="awq"), CARD_24)

    assert packed.cache_bytes - plain.cache_bytes > 8 * GIB


def test_no_request_is_longer_than_the_model_was_made_for() -> None:
    spec = server("Qwen/Qwen3-8B", longest=8192, trained=40960)

    assert budget_of(spec, card(140, "H200")).longest == 40960
    assert budget_of(replace(spec, longest=65536), card(140, "H200")).longest == 65536


@pytest.mark.parametrize(
    ("version", "tensor", "model", "tokens"),
    [
        ("0.2.4", 1, "meta-llama/Llama-2-7b-hf", 16 * 7449),
        ("0.2.4", 4, "meta-llama/Llama-2-70b-hf", 16 * 31615),
    ],
)
def test_an_early_engine_counts_torchs_bytes_alone(
    version: str, tensor: int, model: str, tokens: int
) -> None:
    spec = early(version, tensor, model)
    assert budget_of(spec, card(79.15)).tokens == pytest.approx(tokens, rel=0.015)


@pytest.mark.parametrize(
    ("tensor", "model", "tokens"),
    [
        (1, "meta-llama/Llama-2-7b-hf", 16 * 7351),
        (4, "meta-llama/Llama-2-70b-hf", 16 * 20865),
    ],
)
def test_the_next_engine_counts_all_that_left_the_card(
    tensor: int, model: str, tokens: int
) -> None:
    spec = early("0.2.5", tensor, model)
    found = budget_of(spec, card(79.15))
    libraries = next(one for one in found.rows if one.name == serving_rows.OUTSIDE)
    token = serving_rows.layer_bytes(spec) * serving_rows.own_layers(spec).whole
    least = found.cache_bytes + libraries.bytes - libraries.high_bytes
    most = found.cache_bytes + libraries.bytes - libraries.low_bytes
    assert least <= tokens * token <= most


def early(version: str, tensor: int, model: str) -> ServingSpec:
    return server(
        model,
        tensor=tensor,
        utilization=0.9,
        longest=4096,
        batched_tokens=4096,
        sequences=256,
        versions={"vllm": version},
    )


def test_graphs_are_part_of_the_share_since_0_21() -> None:
    older, newer = (
        server("meta-llama/Llama-3.1-8B", utilization=0.9, longest=8192, versions={"vllm": version})
        for version in ("0.20.2", "0.21.0")
    )
    graphs = int(size_of(newer, CARD_24, serving_rows.GRAPHS) * GIB)
    shrunk = budget_of(older, CARD_24).cache_bytes - budget_of(newer, CARD_24).cache_bytes
    assert shrunk == pytest.approx(graphs, abs=16)


def test_experts_on_several_cards_make_results_of_the_whole_hidden_size() -> None:
    shape = shape_of(server("Qwen/Qwen3-235B-A22B").job.model.config)
    found = profile_bytes(shape, tokens=8192, sequences=1, ranks=4)
    assert found == 2 * 8192 * (2 * 4096 + 8 * (4096 + 1536 // 4))
