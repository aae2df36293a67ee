"""What the logits and the loss cost, in bytes per token and entry of the vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import llama, tokenizer
from tests.proofs.weighing import Peak

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")
chunked_logprob = pytest.importorskip("trl.kernels.chunked_logprob")

VOCABULARY, TOKENS = 8192, 64
LOGITS = VOCABULARY * TOKENS


def model_of(**changes: Any) -> Any:
    """Return a narrow bf16 Llama with a wide vocabulary: the logits outweigh everything."""
    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    made = llama(vocab_size=VOCABULARY, max_position_embeddings=TOKENS, **small, **changes)
    return made.to(torch.bfloat16).train()


def peak_per_logit(step: Any) -> float:
    """Return the peak of a step over what was there before, per entry of the logits."""
    with Peak() as peak:
        step()
    return peak.peak / LOGITS


IDS = torch.randint(4, 60, (1, TOKENS))


@proves("logits-dominate")
@pytest.mark.parametrize("checkpointing", [False, True])
def test_the_loss_of_transformers_costs_12_bytes_per_logit(*, checkpointing: bool) -> None:
    """ForCausalLMLoss on bf16 logits peaks at 12 bytes per token and vocabulary entry."""
    model = model_of()
    if checkpointing:
        model.gradient_checkpointing_enable()

    def step() -> None:
        model(IDS, labels=IDS, use_cache=False).loss.backward()

    found = peak_per_logit(step)
    assert found == pytest.approx(12.1, rel=0.05)


def sft(folder: Path, **given: Any) -> Any:
    """Return an SFTTrainer of that model."""
    settings = {"output_dir": str(folder), "use_cpu": True, "report_to": "none", "bf16": False}
    return trl.SFTTrainer(
        model=model_of(),
        args=trl.SFTConfig(**settings, gradient_checkpointing=False, **given),
        train_dataset=datasets.Dataset.from_list([{"text": "a b c"}]),
        processing_class=tokenizer(pad="<pad>"),
    )


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let TRL's loss work in tiles that are small beside these logits."""
    monkeypatch.setattr(chunked_logprob, "TOKEN_CHUNK_SIZE", 8)
    monkeypatch.setattr(trl.trainer.utils, "_CHUNKED_LOGPROB_CHUNK_SIZE", 512)


def batch() -> dict[str, Any]:
    """Return one batch of all tokens."""
    return {"input_ids": IDS, "labels": IDS, "attention_mask": torch.ones_like(IDS)}


@proves("logits-dominate")
@pytest.mark.usefixtures("small_tiles")
def test_the_fused_loss_of_trl_never_holds_all_logits(tmp_path: Path) -> None:
    """SFTTrainer's default loss works in tiles of fixed size and never holds all logits."""
    made = sft(tmp_path)
    model = made.model.train()
    found = peak_per_logit(lambda: made.compute_loss(model, batch()).backward())
    assert found < 6


@proves("label-smoothing-logits")
def test_label_smoothing_needs_the_log_softmax_of_all_logits() -> None:
    """LabelSmoother on fp32 logits makes a second tensor of their size; plain loss of HF too."""
    smoother = transformers.trainer_pt_utils.LabelSmoother(epsilon=0.1)
    logits = torch.zeros(1, TOKENS, VOCABULARY, requires_grad=True)
    out = {"logits": logits}
    with Peak() as peak:
        smoother(out, IDS).backward()
    assert peak.largest == LOGITS * 4
    assert peak.peak / LOGITS >= 8


@proves("label-smoothing-logits", "trl-compute-loss-func-extra-forward")
@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("how", ["plain", "smoothing", "function"])
def test_trl_runs_the_model_again_where_logits_are_needed(how: str, tmp_path: Path) -> None:
    """Label smoothing or compute_loss_func make SFTTrainer run the model twice, for full logits."""
    made = sft(tmp_path, **({"label_smoothing_factor": 0.1} if how == "smoothing" else {}))
    if how == "function":
        made.compute_loss_func = lambda out, *_, **__: out["logits"].float().mean()
    model = made.model.train()
    forwards: list[int] = []
    model.model.register_forward_hook(lambda *_: forwards.append(1))
    found = peak_per_logit(lambda: made.compute_loss(model, batch()).backward())
    assert len(forwards) == (1 if how == "plain" else 2)
    assert (found > 6) is (how != "plain")
