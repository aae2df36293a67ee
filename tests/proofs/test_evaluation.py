"""What the Trainer keeps during evaluation, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import llama, rows, trainer

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
numpy = pytest.importorskip("numpy")

SAMPLES, LENGTH, VOCABULARY = 6, 8, 64
ALL_LOGITS = (SAMPLES, LENGTH, VOCABULARY)


class Kept:
    """Watch the container in which the evaluation loop keeps predictions on the device."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Wrap the container's two methods."""
        self.on_device: list[tuple[int, ...]] = []
        self.moves = 0
        container = transformers.trainer_pt_utils.EvalLoopContainer
        add, move = container.add, container.to_cpu_and_numpy

        def adding(box: Any, tensors: Any) -> None:
            add(box, tensors)
            if isinstance(box.tensors, torch.Tensor) and box.tensors.dim() == 3:
                self.on_device.append(tuple(box.tensors.shape))

        def moving(box: Any) -> None:
            self.moves += 1
            move(box)

        monkeypatch.setattr(container, "add", adding)
        monkeypatch.setattr(container, "to_cpu_and_numpy", moving)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    """The watched container."""
    return Kept(monkeypatch)


def evaluate(folder: Path, given: dict[str, Any] | None = None, **settings: Any) -> Any:
    """Evaluate six samples one by one and return what the loop gave back."""
    data = rows(SAMPLES, LENGTH)
    parts = {"train_dataset": data, "eval_dataset": data, **(given or {})}
    made = trainer(folder, given=parts, per_device_eval_batch_size=1, **settings)
    return made.evaluate()


def length_of(prediction: Any) -> dict[str, float]:
    return {"seen": float(numpy.prod(prediction.predictions.shape))}


@proves("compute-metrics-logits-accumulate")
def test_all_logits_are_kept_on_the_device_for_metrics(kept: Kept, tmp_path: Path) -> None:
    """With compute_metrics the logits of the whole set grow as one tensor on the device."""
    evaluate(tmp_path, {"compute_metrics": length_of})
    assert kept.on_device == [(n, LENGTH, VOCABULARY) for n in range(1, SAMPLES + 1)]


@proves("compute-metrics-logits-accumulate")
def test_no_logits_are_kept_without_metrics(kept: Kept, tmp_path: Path) -> None:
    """Without compute_metrics, or with prediction_loss_only=True, no logits are kept."""
    evaluate(tmp_path)
    evaluate(tmp_path, {"compute_metrics": lambda _: {}}, prediction_loss_only=True)
    assert kept.on_device == []


@proves("compute-metrics-logits-accumulate", "eval-accumulation-host-ram")
def test_preprocessing_keeps_what_it_returns_alone(kept: Kept, tmp_path: Path) -> None:
    """preprocess_logits_for_metrics with argmax keeps ids: V times fewer values."""
    result = evaluate(
        tmp_path,
        {
            "compute_metrics": length_of,
            "preprocess_logits_for_metrics": lambda logits, _: logits.argmax(-1),
        },
    )
    assert kept.on_device == []
    assert result["eval_seen"] == SAMPLES * LENGTH


@proves("compute-metrics-logits-accumulate")
def test_batch_metrics_keep_one_batch(kept: Kept, tmp_path: Path) -> None:
    """batch_eval_metrics=True calls compute_metrics per batch and keeps one batch of logits."""

    def metrics(prediction: Any, *, compute_result: bool) -> dict[str, float]:
        return {"seen": length_of(prediction)["seen"]} if compute_result else {}

    result = evaluate(tmp_path, {"compute_metrics": metrics}, batch_eval_metrics=True)
    assert set(kept.on_device) <= {(1, LENGTH, VOCABULARY)}
    assert result["eval_seen"] == LENGTH * VOCABULARY


@proves("eval-accumulation-host-ram", "compute-metrics-logits-accumulate")
def test_accumulation_moves_the_same_bytes_to_host_memory(kept: Kept, tmp_path: Path) -> None:
    """eval_accumulation_steps=2 bounds the device to two batches; numpy still gets all logits."""
    seen: list[Any] = []

    def metrics(prediction: Any) -> dict[str, float]:
        seen.append(prediction.predictions)
        return {}

    evaluate(tmp_path, {"compute_metrics": metrics}, eval_accumulation_steps=2)
    assert max(shape[0] for shape in kept.on_device) == 2
    assert isinstance(seen[0], numpy.ndarray)
    assert seen[0].shape == ALL_LOGITS


@proves("compute-metrics-logits-accumulate")
def test_bf16_logits_are_kept_as_fp32_under_autocast(tmp_path: Path) -> None:
    """Under bf16 autocast the kept logits are fp32: 4 bytes per entry."""
    seen: list[Any] = []

    def metrics(prediction: Any) -> dict[str, float]:
        seen.append(prediction.predictions.dtype)
        return {}

    evaluate(tmp_path, {"compute_metrics": metrics}, bf16=True)
    assert seen == [numpy.float32]


@proves("output-attentions-or-hidden")
def test_hidden_states_are_gathered_with_the_logits(tmp_path: Path) -> None:
    """With output_hidden_states in the config evaluation keeps every hidden state, too."""
    kinds: list[type] = []

    def metrics(prediction: Any) -> dict[str, float]:
        kinds.append(type(prediction.predictions))
        return {}

    data = rows(2, LENGTH)
    model = llama()
    parts = {"eval_dataset": data, "compute_metrics": metrics}
    made = trainer(tmp_path, model, given=parts)
    model.config.output_hidden_states = True
    made.evaluate()
    assert kinds == [tuple]


@proves("use-cache-with-checkpointing")
def test_version_5_switches_the_cache_off(tmp_path: Path) -> None:
    """The Trainer of version 5 sets model.config.use_cache to its own use_cache, False."""
    model = llama()
    assert model.config.use_cache is True
    trainer(tmp_path, model)
    assert model.config.use_cache is False
    trainer(tmp_path, model, use_cache=True)
    assert model.config.use_cache is True


@proves("predict-with-generate", "grpo-generate-kv")
@pytest.mark.parametrize("beams", [1, 4])
def test_the_cache_of_generation_grows_with_beams(beams: int) -> None:
    """A generating batch of b holds 2*L*b*beams*tokens*kv*head_dim values in its cache."""
    model = llama(pad_token_id=1).eval()
    out = model.generate(
        torch.full((3, 5), 7),
        num_beams=beams,
        max_new_tokens=6,
        min_new_tokens=6,
        do_sample=False,
        return_dict_in_generate=True,
    )
    cache = out.past_key_values
    values = sum(layer.keys.numel() + layer.values.numel() for layer in cache.layers)
    layers, heads, width = 2, 2, 8
    assert values == 2 * layers * 3 * beams * (5 + 6 - 1) * heads * width


@proves("dry-run-missing")
def test_a_dry_run_can_evaluate_at_the_start(tmp_path: Path) -> None:
    """eval_on_start=True evaluates before the first step."""
    data = rows(2, LENGTH)
    made = trainer(
        tmp_path, given={"train_dataset": data, "eval_dataset": data}, eval_on_start=True
    )
    made.train()
    assert [entry["step"] for entry in made.state.log_history if "eval_loss" in entry] == [0]
