"""Models, adapters, quantised bases, optimizers and losses: what each holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from oomdoctor.model.job import Job, ModelSpec, OptimizerSpec, QuantSpec, ShardingSpec
from oomdoctor.record import replace
from oomdoctor.worker.errors import NeedsFilesError, UnsupportedError
from oomdoctor.worker.run.job import run_job
from oomdoctor.worker.run.recipe import recipe_of
from oomdoctor.worker.twins.build import empty_model
from oomdoctor.worker.twins.config import config_of
from oomdoctor.worker.twins.fused import chunk_tokens
from tests.worker.jobs import CONFIG, EMBEDDING, JOB, LAYER, LORA, PARAMETERS
from tests.worker.ledger import Ledger, Watching

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[[Job], Watching]

LINEARS = 2 * (64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 128)
LOGITS = 2 * 32 * 3000 * 4


def with_model(**config: Any) -> Job:
    values = {**CONFIG, **config}
    values = {name: value for name, value in values.items() if value is not None}
    return replace(JOB, model=ModelSpec(name="a model", config=values, source="test"))


def watch(job: Job) -> Watching:
    watching = Watching(Ledger())
    run_job(job, torch.device("cpu"), watching)
    return watching


def test_code_in_files_of_a_repository_is_named() -> None:
    places = {
        "AutoConfig": "configuration_odd.OddConfig",
        "AutoModelForCausalLM": "someone/odd--modeling_odd.OddForCausalLM",
    }
    job = with_model(model_type="odd", auto_map=places)

    with pytest.raises(NeedsFilesError, match=r"configuration_odd\.py, modeling_odd\.py"):
        watch(job)


def test_code_of_transformers_itself_stands_for_that_of_a_repository() -> None:
    job = with_model(auto_map={"AutoModel": "modeling_llama_x.X"})

    assert watch(job).assumed == ["transformers' own code of llama stands for modeling_llama_x.py"]


@pytest.mark.parametrize(
    ("job", "text"),
    [
        (with_model(model_type="odd"), "'odd'"),
        (with_model(model_type=None), "None"),
        (with_model(num_attention_heads="four"), "a model"),
        (replace(JOB, dtype="fp8"), "fp8"),
        (replace(JOB, attention="paged"), "paged"),
        (replace(JOB, loss="odd"), "odd"),
        (replace(JOB, task="serving"), "serving"),
        (replace(JOB, quant=QuantSpec(kind="awq")), "awq"),
        (replace(JOB, optimizer=OptimizerSpec(name="odd")), "odd"),
        (replace(JOB, optimizer=OptimizerSpec(offload="cpu")), "cpu"),
        (replace(JOB, optimizer=OptimizerSpec(implementation="odd")), "odd"),
        (replace(JOB, sharding=ShardingSpec(tensor=2)), "tensor"),
        (replace(JOB, lora=replace(LORA, targets=("odd_proj",))), "odd_proj"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_traced_is_named(job: Job, text: str) -> None:
    with pytest.raises(UnsupportedError, match=text):
        watch(job)


def test_a_model_without_an_attention_gets_the_eager_one() -> None:
    config = {"model_type": "bloom", "hidden_size": 64, "n_layer": 1, "n_head": 4}
    model = ModelSpec(name="bloom", config={**config, "vocab_size": 100}, source="test")

    assert "eager attention" in watch(replace(JOB, model=model)).assumed[0]


def test_a_scaled_step_is_taken_whatever_the_gradients(run: Run) -> None:
    watching = run(replace(JOB, amp="bf16", scaler=True))

    assert watching.told["step 1/optimizer", "optimizer"] > PARAMETERS * 8


def test_a_model_without_storage_costs_nothing() -> None:
    ledger = Ledger()
    job = with_model(hidden_size=8192, intermediate_size=28672, num_hidden_layers=80)

    with ledger:
        model = recipe_of(job).model(job, Watching(ledger))

    assert {weight.device.type for weight in model.parameters()} == {"meta"}
    assert ledger.peak < 1 << 20


@pytest.mark.parametrize(
    ("changes", "parameters"),
    [
        ({}, 2 * 4 * (64 + 64) + 2 * 4 * (64 + 32)),
        ({"targets": ("all-linear",)}, 2 * 4 * (2 * 128 + 2 * 96 + 3 * 192)),
        ({"dora": True}, 2 * 4 * (128 + 96) + 2 * (64 + 32)),
        ({"modules_to_save": ("lm_head",)}, 2 * 4 * (128 + 96) + EMBEDDING),
        ({"layers": (1,)}, 4 * (128 + 96)),
        ({"targets": (r".*layers\.0.*q_proj",)}, 4 * 128),
        ({"rank": 8}, 2 * 8 * (128 + 96)),
    ],
    ids=str,
)
def test_an_adapter_has_the_weights_that_its_settings_give(
    run: Run, changes: dict[str, Any], parameters: int
) -> None:
    watching = run(replace(JOB, lora=replace(LORA, **changes), task="forward"))
    trained = run(replace(JOB, lora=replace(LORA, **changes))).told

    assert watching.sizes["adapter"] == parameters * 4
    assert trained["step 1/backward", "gradient"] == parameters * 4


@pytest.mark.parametrize(("fp32", "size"), [(True, 4), (False, 2)])
def test_an_adapter_of_a_16_bit_base_is_cast_to_fp32_unless_told_otherwise(
    run: Run, *, fp32: bool, size: int
) -> None:
    job = replace(JOB, dtype="bf16", lora=replace(LORA, fp32=fp32))

    assert run(job).sizes["adapter"] == 2 * 4 * (128 + 96) * size


def test_four_bits_hold_linear_layers_alone_and_double_quantisation_their_scales(run: Run) -> None:
    def weights(job: Job, *, double: bool) -> int:
        quant = QuantSpec(kind="nf4", double=double)
        job = replace(job, dtype="bf16", quant=quant, lora=LORA, task="forward", optimizer=None)
        return run(job).sizes["weights"]

    others = 2 * (PARAMETERS - LINEARS)
    scales = LINEARS // 64 * 4
    wide = with_model(hidden_size=512, intermediate_size=1024)

    assert weights(JOB, double=False) == pytest.approx(others + LINEARS // 2 + scales, rel=0.01)
    assert weights(wide, double=False) > weights(wide, double=True)


def test_eight_bits_hold_one_byte_for_each_weight(run: Run) -> None:
    quant = QuantSpec(kind="int8")
    job = replace(JOB, dtype="fp16", quant=quant, lora=LORA, task="forward", optimizer=None)

    expected = 2 * (PARAMETERS - LINEARS) + LINEARS

    assert run(job).sizes["weights"] == pytest.approx(expected, rel=0.01)


def test_preparation_casts_what_is_not_quantised_to_fp32(run: Run) -> None:
    job = replace(JOB, dtype="bf16", quant=QuantSpec(kind="nf4", prepared=True), lora=LORA)
    plain, prepared = (
        run(replace(job, quant=QuantSpec(kind="nf4", prepared=flag))) for flag in (False, True)
    )

    grown = prepared.sizes["weights"] - plain.sizes["weights"]
    assert (grown, prepared.emptied) == (2 * (PARAMETERS - LINEARS), 1)


SMALL_MODEL = replace(
    with_model(vocab_size=8000, hidden_size=16, intermediate_size=16, num_hidden_layers=1),
    batch=4,
    seq_len=128,
    lora=LORA,
)


def peak_of_steps(watching: Watching) -> int:
    return max(value for place, value in watching.peaks.items() if "/" in place)


def test_a_fused_loss_never_holds_all_logits(run: Run) -> None:
    full, fused = (
        peak_of_steps(run(replace(SMALL_MODEL, loss=loss))) for loss in ("full-logits", "fused")
    )

    # logits, their logarithms and gradients on one side, a chunk on the other
    assert full - fused > 1.5 * 4 * 128 * 8000 * 4


def test_trls_tiles_have_one_buffer_whatever_the_vocabulary(run: Run) -> None:
    tiles = peak_of_steps(run(replace(SMALL_MODEL, loss="chunked", framework="trl")))

    assert tiles == pytest.approx(4 * 127 * 32_768 * 4, rel=0.03)


def test_torchtunes_chunks_are_widened_one_by_one(run: Run) -> None:
    job = replace(JOB, dtype="bf16", framework="torchtune")
    full, chunks = (
        run(replace(job, loss=loss)).peaks["step 1/backward"] for loss in ("full-logits", "chunked")
    )

    assert full - chunks > LOGITS // 2


@pytest.mark.parametrize(
    ("tokens", "width", "words", "expected"),
    [(16_384, 4096, 32_000, 2048), (2048, 4096, 128_256, 64), (10, 4096, 1000, 10)],
)
def test_chunks_are_as_many_as_the_vocabulary_is_wider_than_the_state(
    tokens: int, width: int, words: int, expected: int
) -> None:
    assert chunk_tokens(tokens, width, words) == expected


def test_checkpointing_keeps_the_inputs_of_layers_alone(run: Run) -> None:
    job = replace(with_model(num_hidden_layers=6), seq_len=256, lora=LORA)
    kept, again = (
        run(replace(job, checkpointing=kind)).peaks["step 1/forward"]
        for kind in (None, "non-reentrant")
    )

    assert kept - again > 5 * 2 * 256 * 128 * 4


def test_a_model_moved_and_one_read_directly_end_alike(run: Run) -> None:
    moved, direct = (run(replace(JOB, loading=loading)).sizes for loading in ("moved", "direct"))

    assert moved["weights"] == direct["weights"]


def test_layers_have_the_size_that_the_config_gives() -> None:
    watching = Watching(Ledger())
    config = config_of(JOB, watching)
    model = empty_model(config, task="sft", dtype=torch.float32, observer=watching)

    assert sum(weight.numel() for weight in model.model.layers[0].parameters()) == LAYER
