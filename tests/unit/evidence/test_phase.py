"""The phase of a run is told by the innermost frame that means something."""

from __future__ import annotations

import pytest

from oomdoctor.evidence.frames import Frame
from oomdoctor.evidence.phase import inference_only, phase_of
from oomdoctor.evidence.phase_text import phase_at, phase_before
from oomdoctor.evidence.stacks import Stack
from oomdoctor.facts.table_run import PHASES
from tests.unit.evidence.documents import document_of


def stack(*frames: str) -> Stack:
    """Make a stack of `path function | code` lines, outermost first."""
    made = []
    for frame in frames:
        head, _, code = frame.partition(" | ")
        path, _, function = head.partition(" ")
        made.append(Frame(path, 1, function, code or None, 0))
    return Stack(frames=tuple(made), rank=None, stream="", first=0, last=0)


def phase(*frames: str) -> str | None:
    found = phase_of(stack(*frames))
    return None if found is None else found.phase


TRAINER = "transformers/trainer.py"


@pytest.mark.parametrize(
    ("expected", "frames"),
    [
        ("forward", [f"{TRAINER} train", "x/modeling_x.py forward"]),
        ("eval", [f"{TRAINER} evaluation_loop", "x/modeling_x.py forward"]),
        (
            "eval",
            [f"{TRAINER} train", f"{TRAINER} evaluate", "torch/nn/functional.py cross_entropy"],
        ),
        ("eval", [f"{TRAINER} evaluate", "transformers/generation/utils.py generate"]),
        ("eval", ["main.py main", "main.py validate", "net.py forward"]),
        ("backward", [f"{TRAINER} training_step", "torch/_tensor.py backward"]),
        ("backward", ["t.py step | loss.backward()"]),
        (
            "backward",
            ["torch/autograd/__init__.py backward", "torch/utils/checkpoint.py f", "m.py forward"],
        ),
        ("loss", ["m.py forward", "torch/nn/functional.py cross_entropy"]),
        ("loss", ["x/loss/loss_utils.py fixed"]),
        ("optimizer", ["t.py train | optimizer.step()", "torch/optim/adamw.py _init_group"]),
        ("optimizer", ["torch/nn/utils/clip_grad.py clip_grad_norm_"]),
        (
            "forward",
            ["torch/optim/adam.py step", "l.py closure", "l.py training_step", "net.py forward"],
        ),
        ("prepare", ["peft/utils/other.py prepare_model_for_kbit_training"]),
        ("prepare", ["accelerate/accelerator.py prepare", "torch/nn/modules/module.py to"]),
        ("prepare", ["deepspeed/runtime/engine.py _configure_zero_optimizer"]),
        ("prepare", ["run.py main | model = FSDP(model, device_id=0)"]),
        (
            "load",
            ["run.py main | m = AutoModel.from_pretrained(name)", "torch/serialization.py load"],
        ),
        ("load", ["run.py main | model.to(device)", "torch/nn/modules/module.py _apply"]),
        ("load", ["vllm/model_executor/model_loader/loader.py load_model"]),
        ("resume", ["torch/serialization.py load", "torch/serialization.py persistent_load"]),
        ("resume", ["accelerate/accelerator.py load_state"]),
        ("resume", [f"{TRAINER} _load_optimizer_and_scheduler", "torch/optim/optimizer.py load"]),
        ("save", [f"{TRAINER} _save_checkpoint", "torch/nn/modules/module.py state_dict"]),
        ("save", ["torch/nn/modules/module.py state_dict", "bnb.py _save_to_state_dict"]),
        ("merge", ["peft/tuners/lora/model.py merge_and_unload", "l.py get_delta_weight"]),
        ("generate", ["app.py chat | model.generate(ids)", "m.py forward"]),
        ("serve-start", ["run.py main | llm = LLM(model=name)"]),
        ("serve-start", ["vllm/worker/cache_engine.py allocate_cpu_cache"]),
        (
            "serve-profile",
            ["vllm/v1/worker/gpu_worker.py determine_available_memory", "m.py forward"],
        ),
        ("graph-capture", ["vllm/v1/worker/gpu_model_runner.py capture_model", "v.py _dummy_run"]),
        ("graph-capture", ["a.py f | with torch.cuda.graph(g):"]),
        (None, ["job.py main", "job.py work"]),
        (None, []),
    ],
)
def test_the_phase_of_a_stack(expected: str | None, frames: list[str]) -> None:
    assert phase(*frames) == expected
    assert expected is None or expected in PHASES


def test_a_name_within_a_longer_name_is_no_call() -> None:
    assert phase("a.py f | x = revaluate(y)") is None
    assert phase("a.py f | x = evaluate(y)") == "eval"


@pytest.mark.parametrize(
    ("expected", "frames"),
    [
        (False, ["run.py main | trainer.train()", "m.py forward"]),
        (False, ["/v/trl/trainer/grpo_trainer.py __init__", "/v/vllm/entrypoints/llm.py __init__"]),
        (True, ["/v/vllm/v1/worker/gpu_worker.py determine_available_memory"]),
        (True, ["app.py main | out = model.generate(ids)"]),
        (None, ["run.py main", "m.py forward"]),
    ],
)
def test_a_run_trains_or_serves_only_where_frames_say_so(
    frames: list[str], *, expected: bool | None
) -> None:
    found = inference_only(stack(*frames))

    assert (None if found is None else found.value) == expected


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("eval", "***** Running Evaluation *****\n  Num examples = 3"),
        ("eval", "***** Running Evaluation *****\n 40%|████ | 4/10 [00:01<00:02, 1it/s]"),
        ("eval", "Validation DataLoader 0:  40%|████      | 4/10 [00:01<00:02]"),
        ("eval", "Valid (loss 53.34) epoch 1:   9%|██▎      | 1/11 [00:01<00:13]"),
        ("eval", "Epoch: [0]  [5000/5005]  eta: 0:00:01\nTest:  [ 10/196]  eta: 0:00:40"),
        ("eval", "Evaluation  [1370/5000]  eta: 0:03:03    time: 0.0495"),
        ("eval", "mmengine - INFO - Epoch(val)  [1][50/625]    eta: 0:00:58"),
        (None, "Test:  [190/196]  eta: 0:00:01\nEpoch: [1]  [   0/5005]  eta: 0:41:33"),
        (None, "Epoch(val) [1][600/625]\nEpoch(train)  [2][  50/3696]  lr: 2.0e-03"),
        ("save", "Saving model checkpoint to out/checkpoint-500"),
        ("load", "Loading checkpoint shards:  33%|███▎      | 1/3 [00:01<00:02]"),
        ("graph-capture", "Capturing CUDA graph shapes:  71%|███████▏  | 25/35"),
        ("serve-profile", "INFO Starting profile run for multi-modal models."),
        ("resume", "Resuming training from checkpoint with epoch 3"),
        (None, "***** Running Evaluation *****\n{'eval_loss': 2.0, 'epoch': 1.0}"),
        (None, "***** Running Evaluation *****\n{'loss': 2.0, 'epoch': 1.0}"),
        (None, "Loading checkpoint shards: 100%|██████████| 3/3 [00:01<00:00]"),
        (None, "Loading checkpoint shards:  33%|█ | 1/3 [0:1<0:2]\n  1%| | 1/99 [00:01<00:02]"),
        (None, "Saving model checkpoint to out\n 50%|████ | 50/99 [00:01<00:02]"),
        (None, "nothing said"),
        (None, "re-evaluating_all"),
    ],
)
def test_the_last_line_that_tells_names_the_phase(expected: str | None, text: str) -> None:
    document = document_of(text)

    found = phase_before(document, len(document.lines))

    assert (None if found is None else found.phase) == expected


def test_the_message_itself_may_say_where_it_happened() -> None:
    text = "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 requests"

    found = phase_at(document_of(text), 0)

    assert found is not None
    assert found.phase == "serve-profile"
    assert phase_at(document_of("CUDA out of memory"), 0) is None


@pytest.mark.parametrize(
    "line",
    [
        "Diffusion model failed to load, exiting",
        "Failed to load weights: see above",
        "Could not load the model: see above",
    ],
)
def test_the_line_after_the_message_may_say_that_a_model_was_loading(line: str) -> None:
    found = phase_at(document_of(f"CUDA out of memory\n{line}"), 0)

    assert found is not None
    assert found.phase == "load"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Exception in worker SomeWorker while processing method load_model.", "load"),
        ("Error executing method 'determine_num_available_blocks'. This might", "serve-profile"),
        ("ERROR [worker_base.py:1] Error executing method 'initialize_cache'.", "serve-start"),
        ("Error executing method 'execute_model'. This might", "serve"),
    ],
)
def test_the_method_of_a_worker_names_the_phase(line: str, expected: str) -> None:
    found = phase_at(document_of(f"CUDA out of memory\n{line}"), 0)

    assert found is not None
    assert found.phase == expected


def test_a_method_that_some_other_program_executes_says_nothing() -> None:
    assert phase_at(document_of("CUDA out of memory\nexecuting the method load_model"), 0) is None


def test_a_profile_that_was_taken_is_over() -> None:
    text = "Starting profile run\nMemory profiling takes 4.1 seconds\nCUDA out of memory"

    assert phase_before(document_of(text), 2) is None
