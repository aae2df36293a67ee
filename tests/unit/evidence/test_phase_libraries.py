"""The phase of stacks as training, inference and serving libraries leave them, outermost first."""

from __future__ import annotations

import pytest

from oomdoctor.evidence.frames import Frame
from oomdoctor.evidence.phase import phase_of
from oomdoctor.evidence.stacks import Stack

HF = "transformers/trainer.py"
STEP = f"{HF} train|{HF} training_step loss = self.compute_loss(model, batch)"
MODULE = "torch/nn/modules/module.py _call_impl return forward_call(*args)"
LAYERS = f"{MODULE}|x/modeling_x.py forward h = layer(h)|torch/nn/modules/linear.py forward"
BACKWARD = "torch/_tensor.py backward|torch/autograd/graph.py _engine_run_backward"
PL = "lightning/pytorch"

STACKS = [
    ("forward", f"{STEP}|{HF} compute_loss outputs = model(**batch)|{LAYERS}"),
    ("loss", (f"{STEP}|{HF} compute_loss outputs = model(**batch)|{MODULE}|x/modeling_x.py forward "
     "loss = self.loss_function(logits)|torch/nn/functional.py cross_entropy")),
    ("forward", (f"{STEP}|deepspeed/runtime/engine.py forward loss = self.module(*x)"
     "|deepspeed/runtime/zero/parameter_offload.py _pre_forward_module_hook")),
    ("backward", f"{HF} training_step self.accelerator.backward(loss)|{BACKWARD}"),
    ("optimizer", f"{HF} train|accelerate/optimizer.py step|torch/optim/adamw.py _init_group"),
    ("optimizer", ("t.py train|tensorflow/python/keras/optimizer_v2/adam.py _resource_apply_sparse "
     "var, coefficients['lr'] * m_t|tensorflow/python/ops/math_ops.py binary_op_wrapper")),
    ("eval", (f"{HF} train|{HF} _evaluate|{HF} evaluate|{HF} evaluation_loop|transformers/"
     "trainer_pt_utils.py nested_concat")),
    ("eval", (f"{HF} predict|{HF} evaluation_loop|transformers/trainer_seq2seq.py prediction_step "
     "y = self.model.generate(**x)|transformers/generation/utils.py generate")),
    ("save", (f"{HF} train|{HF} _save_checkpoint|accelerate/utils/fsdp_utils.py save_fsdp_optimizer"
     "|torch/distributed/fsdp/_optim_utils.py _allgather_orig_param_states")),
    ("save", ("torch/distributed/fsdp/_unshard_param_utils.py _unshard_fsdp_state_params"
     "|torch/distributed/fsdp/_flat_param.py unshard")),
    ("resume", (f"{HF} train|{HF} _load_optimizer_and_scheduler|torch/optim/optimizer.py "
     "load_state_dict")),
    ("load", (f"{HF} __init__|{HF} _move_model_to_device|torch/nn/modules/module.py to"
     "|torch/nn/modules/module.py convert")),
    ("backward", (f"{PL}/core/module.py optimizer_step|torch/optim/adamw.py step loss = closure()"
     f"|{PL}/loops/optimization/automatic.py closure|{PL}/core/module.py backward|{BACKWARD}")),
    ("eval", (f"{PL}/loops/evaluation_loop.py run|{PL}/strategies/strategy.py validation_step"
     f"|m.py validation_step|{LAYERS}")),
    ("eval", f"pytorch_lightning/trainer/trainer.py test|m.py test_step|{LAYERS}"),
    ("resume", (f"{PL}/trainer/connectors/checkpoint_connector.py resume_start"
     "|torch/serialization.py load")),
    ("load", ("text_generation_server/models/__init__.py get_model|text_generation_server/models/"
     "flash_mistral.py __init__|text_generation_server/models/custom_modeling/m.py __init__")),
    ("load", "vllm/worker/worker.py init_device|vllm/model_executor/models/qwen2.py __init__"),
    ("load", "sglang/srt/managers/scheduler.py __init__|sglang/srt/models/qwen2.py __init__"),
    ("load", "app.py main|faster_whisper/transcribe.py __init__"),
    ("load", "sft/workflow.py run_sft model = load_model(tokenizer, args, is_trainable=True)"),
    ("load", "tools/train.py main model = build_model(cfg.model).cuda()"),
    ("serve-profile", ("text_generation_server/server.py Warmup|text_generation_server/models/"
     "flash_causal_lm.py warmup|text_generation_server/models/custom_modeling/m.py forward")),
    ("prepare", ("t.py main|accelerate/accelerator.py prepare_model|torch/nn/parallel/"
     "distributed.py __init__|torch/nn/parallel/distributed.py _ddp_init_helper")),
    ("prepare", ("megatron/training/training.py setup_model_and_optimizer|megatron/core/optimizer/"
     "distrib_optimizer.py __init__")),
    ("loss", ("mmdet/models/detectors/base.py loss|mmdet/models/dense_heads/anchor_head.py "
     "get_targets|mmdet/structures/bbox/bbox_overlaps.py bbox_overlaps")),
    ("eval", f"mmengine/runner/loops.py run_iter|mmengine/model/base_model.py val_step|{LAYERS}"),
    ("loss", (f"detectron2/engine/train_loop.py run_step losses = self.model(data)|{MODULE}"
     "|detectron2/modeling/proposal_generator/rpn.py label_and_sample_anchors"
     "|detectron2/structures/boxes.py pairwise_intersection")),
    ("eval", f"detectron2/evaluation/evaluator.py inference_on_dataset y = model(x)|{LAYERS}"),
    ("forward", (f"ultralytics/engine/trainer.py _do_train loss = self.model(batch)|{MODULE}"
     "|ultralytics/nn/tasks.py forward return self.loss(x)|ultralytics/nn/tasks.py loss "
     "y = self.forward(x)|ultralytics/nn/modules/conv.py forward")),
    ("loss", (f"ultralytics/engine/trainer.py _do_train loss = self.model(batch)|{MODULE}"
     "|ultralytics/nn/tasks.py loss return self.criterion(y, x)|ultralytics/utils/loss.py __call__"
     "|ultralytics/utils/tal.py get_box_metrics")),
    ("forward", ("fairseq/tasks/fairseq_task.py train_step loss = criterion(model, sample)"
     f"|{MODULE}|fairseq/criterions/x.py forward y = model(**sample)|{LAYERS}")),
    ("eval", f"fairseq_cli/train.py validate|fairseq/trainer.py valid_step|{LAYERS}"),
    ("eval", ("nnunetv2/training/nnUNetTrainer/nnUNetTrainer.py perform_actual_validation"
     "|nnunetv2/inference/predict_from_raw_data.py _internal_predict_sliding_window")),
    ("eval", ("nnunet/training/network_trainer.py run_training l = self.run_iteration(self.val_gen)"
     f"|nnunet/training/trainer.py run_iteration y = self.network(x)|{LAYERS}")),
    ("forward", (f"trl/trainer/dpo_trainer.py compute_loss x = self.metrics(model, batch)"
     f"|trl/trainer/dpo_trainer.py concatenated_forward y = model(ids)|{LAYERS}")),
    ("generate", (f"{STEP}|trl/trainer/grpo_trainer.py _prepare_inputs|transformers/generation/"
     f"utils.py generate|{LAYERS}")),
    ("merge", "peft/tuners/lora/model.py merge_and_unload|peft/tuners/lora/layer.py merge"),
    ("serve-profile", ("vllm/v1/engine/core.py _initialize_kv_caches|vllm/v1/worker/gpu_worker.py "
     f"determine_available_memory|{LAYERS}")),
    ("graph-capture", ("vllm/v1/worker/gpu_model_runner.py capture_model|vllm/v1/worker/"
     f"gpu_model_runner.py _dummy_run|{LAYERS}")),
    ("serve", f"vllm/v1/worker/gpu_model_runner.py execute_model y = self.model(x)|{LAYERS}"),
    ("eval", f"main.py <module> test(epoch)|main.py test y = net(x)|{LAYERS}"),
    ("loss", ("main.py train loss = criterion(y, target)|torch/nn/modules/module.py _call_impl"
     "|dice.py forward return 1 - (a * b).sum()")),
    ("save", ("kit/trainer.py train self.saver.save(step)|kit/model_saver.py save self._save(step)"
     "|kit/model_saver.py _save full = self._tensor_parallel_state_dict()")),
    ("save", "kit/run.py main|kit/checkpoint_io.py save x = gather_state_dict(model)"),
    ("load", "kit/run.py main|kit/model.py load_state_dict|torch/nn/modules/module.py load"),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "frames"), STACKS)
def test_a_librarys_stack_tells_the_phase(expected: str, frames: str) -> None:
    made = []
    for frame in frames.split("|"):
        path, _, rest = frame.partition(" ")
        function, _, code = rest.partition(" ")
        made.append(Frame(path, 1, function, code or None, 0))
    found = phase_of(Stack(frames=tuple(made), rank=None, stream="", first=0, last=0))
    assert found is not None
    assert found.phase == expected
