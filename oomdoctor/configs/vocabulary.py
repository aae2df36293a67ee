"""Key names that mean the same wherever they stand; the dialects' own tables come before it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.configs import (
    meanings,
    parallel,
    vocabulary_checks,
    vocabulary_correctness,
    vocabulary_dist,
    vocabulary_job,
    vocabulary_lint,
    vocabulary_memory,
    vocabulary_run,
    vocabulary_training,
)
from oomdoctor.configs.claims import (
    Claim,
    Convert,
    both,
    count,
    dtype,
    flag,
    given,
    ratio,
    text,
    when_true,
    word,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# one row per converter: the names that people and libraries give the same thing
_ROWS: tuple[tuple[str, Convert], ...] = (
    (
        """
        per_device_train_batch_size per_gpu_train_batch_size batch_size batchsize bs per_gpu
        per_gpu_batch_size per_device_batch_size imgs_per_gpu samples_per_gpu imgs_per_batch
        ims_per_batch images_per_gpu micro_batch micro_batch_size micro_bs mbs
        local_batch_size micro_train_batch_size train_batch_size train_micro_batch_size
        train_bs minibatch_size train_micro_batch_size_per_gpu device_batch_size
        batch_size_per_gpu batch_size_per_device device_train_microbatch_size
        ppo_micro_batch_size_per_gpu micro_batch_size_per_gpu n_batch_size per_device_bs
        batch
        """,
        count("train.micro_batch"),
    ),
    (
        """
        gradient_accumulation_steps grad_accum grad_accum_steps gradient_accumulation
        accumulation accumulate_grad_batches gradient_accumulate_every accum_iter grad_acc
        gas ga gradient_accumulation_step accumulation_steps grad_accumulation accum
        accumulate accum_steps gradient_accum_steps grad_acc_steps update_freq
        """,
        count("train.grad_accum"),
    ),
    (
        """
        global_batch_size global_train_batch_size total_batch_size effective_batch_size gbs
        global_batch
        """,
        count("train.global_batch"),
    ),
    (
        """
        max_seq_length max_seq_len seq_len seq_length seqlen seq sequence_len
        sequence_length max_len max_length cutoff_len context context_length context_len
        context_size block_size model_max_length max_sequence_length max_source_length
        max_input_length ctx_len max_context max_tokens_per_sample train_seq_len
        max_context_length pack_size max_prompt_and_response_length n_ctx tokens_per_sample
        seq_size max_source_len
        """,
        count("train.seq_len", least=2),
    ),
    ("num_train_epochs num_epochs epochs max_epochs n_epochs epoch", count("train.epochs")),
    (
        """
        max_steps total_steps train_steps max_train_steps iterations num_iterations
        max_iters total_iters num_steps training_steps
        """,
        count("train.max_steps"),
    ),
    (
        """
        gradient_checkpointing activation_checkpointing use_gradient_checkpointing
        enable_gradient_checkpointing enable_activation_checkpointing grad_checkpointing
        grad_checkpoint gradient_checkpoint activation_checkpoint checkpoint_activations
        recompute gc with_cp grad_ckpt gradient_ckpt use_checkpoint use_checkpointing
        use_grad_checkpointing fsdp_activation_checkpointing
        enable_checkpointing_activations recompute_activations
        """,
        both(meanings.checkpointing, vocabulary_job.offloaded),
    ),
    (
        "disable_gradient_checkpointing no_gradient_checkpointing",
        flag("train.grad_checkpointing", invert=True),
    ),
    ("use_reentrant use_reentrant_gc", flag("train.checkpoint_reentrant")),
    ("use_cache", flag("train.use_cache")),
    ("packing sample_packing packed pack use_packing", flag("train.packing")),
    ("neat_packing", when_true(Claim("train.packing", value=True))),
    ("padding_side", word("train.padding_side", {"left": "left", "right": "right"})),
    ("truncation", flag("train.truncation")),
    ("fp16 use_fp16", when_true(Claim("train.amp", "fp16"))),
    ("bf16 use_bf16", when_true(Claim("train.amp", "bf16"))),
    ("mixed_precision precision amp use_amp", meanings.precision),
    ("tf32", flag("train.tf32")),
    (
        "torch_dtype dtype model_dtype base_dtype weight_dtype infer_dtype",
        dtype("train.base_dtype"),
    ),
    ("pure_bf16", when_true(Claim("train.param_dtype", "bf16"), Claim("train.amp", "none"))),
    (
        "optim optimizer optimizer_type optimiser optimizer_name optim_type",
        meanings.optimizer,
    ),
    (
        "use_8bit_adam use_8bit_adamw",
        when_true(Claim("optimizer.name", "adamw_8bit"), Claim("optimizer.state_bits", 8)),
    ),
    ("optimizer_in_bwd optimizer_in_backward", flag("optimizer.in_backward")),
    ("offload_optimizer_device offload_optimizer", parallel.offload("optimizer.offload")),
    (
        "offload_param_device offload_param offload_params fsdp_offload_params",
        parallel.offload("dist.param_offload"),
    ),
    (
        """
        attn_implementation _attn_implementation attn_impl attention_implementation
        attention attn attn_type
        """,
        meanings.attention,
    ),
    (
        """
        flash_attn use_flash_attn flash_attention use_flash_attention use_flash_attention_2
        enable_flash_attn use_flash_attn_2 flash_attention_2
        """,
        meanings.attention_if("flash2"),
    ),
    ("sdp_attention use_sdpa sdpa", meanings.attention_if("sdpa")),
    ("eager_attention", meanings.attention_if("eager")),
    ("flex_attention", meanings.attention_if("flex")),
    (
        "enable_xformers_memory_efficient_attention xformers_attention xformers use_xformers",
        meanings.attention_if("xformers"),
    ),
    (
        """
        use_liger_kernel enable_liger_kernel use_liger use_liger_loss liger_kernel liger
        liger_fused_linear_cross_entropy dpo_use_liger_kernel
        """,
        when_true(Claim("loss.impl", "liger")),
    ),
    ("chunked_cross_entropy", when_true(Claim("loss.impl", "chunked"))),
    (
        "load_in_4bit use_4bit load_4bit use_4bit_quantization use_bnb_4bit_quantization",
        when_true(Claim("quant.kind", "bnb4")),
    ),
    (
        "load_in_8bit use_8bit load_8bit use_8bit_quantization",
        when_true(Claim("quant.kind", "bnb8")),
    ),
    ("bits quantization_bit", meanings.bits),
    ("quantization quantization_method quant_method quant", meanings.quantization),
    (
        "bnb_4bit_use_double_quant use_bnb_nested_quant double_quantization double_quant",
        flag("quant.double"),
    ),
    (
        "use_nested_quant",
        flag("quant.double"),
    ),
    (
        "lora_r lora_rank peft_r lora_dim network_dim lora_r_rank",
        both(count("lora.rank"), given("lora.on")),
    ),
    ("lora_alpha network_alpha", ratio("lora.alpha")),
    (
        "lora_target_modules lora_target target_modules lora_attn_modules",
        text("lora.targets"),
    ),
    (
        "modules_to_save lora_modules_to_save additional_target additional_trainable_modules",
        text("lora.modules_to_save"),
    ),
    ("use_dora peft_use_dora dora", flag("lora.dora")),
    ("use_peft use_lora lora enable_lora_training use_peft_lora use_qlora", flag("lora.on")),
    ("adapter peft_type peft_method", both(given("lora.on"), vocabulary_job.adapter_kind)),
    (
        "full_finetuning full_finetune full_ft",
        flag("train.full_finetune"),
    ),
    ("trainable_parameters trainable_params", count("train.trainable_params")),
    (
        """
        resize_vocab resize_token_embeddings_to_32x resize_token_embeddings
        smart_tokenizer_and_embedding_resize
        """,
        when_true(Claim("train.resizes_embeddings", value=True)),
    ),
    ("eval_strategy evaluation_strategy", word("eval.strategy", meanings.EVAL)),
    (
        """
        per_device_eval_batch_size per_gpu_eval_batch_size eval_batch_size val_batch_size
        batch_size_val validation_batch_size test_batch_size eval_bs
        """,
        count("eval.batch"),
    ),
    ("eval_accumulation_steps", count("eval.accumulation_steps")),
    ("compute_metrics compute_accuracy", given("eval.compute_metrics")),
    ("preprocess_logits_for_metrics", given("eval.preprocess_logits")),
    ("prediction_loss_only", flag("eval.loss_only")),
    ("predict_with_generate", flag("eval.generate")),
    ("batch_eval_metrics", flag("eval.batch_metrics")),
    (
        """
        dataloader_num_workers num_workers workers workers_per_gpu n_workers data_workers
        workers_per_device num_data_workers nworkers max_data_loader_n_workers
        dataloader_workers worker_num
        """,
        count("data.workers", least=0),
    ),
    ("pin_memory dataloader_pin_memory", flag("data.pin_memory")),
    ("prefetch_factor dataloader_prefetch_factor", count("data.prefetch")),
    (
        "persistent_workers dataloader_persistent_workers persistent_data_loader_workers",
        flag("data.persistent"),
    ),
)


@cache
def table() -> Mapping[str, Convert]:
    """Return the converter of every common key name; training names go before serving ones."""
    lint = (
        *vocabulary_lint.ROWS,
        *vocabulary_checks.ROWS,
        *vocabulary_correctness.ROWS,
        *vocabulary_memory.ROWS,
        *vocabulary_dist.ROWS,
        *vocabulary_job.ROWS,
    )
    return expand((*vocabulary_run.ROWS, *lint, *_ROWS, *vocabulary_training.ROWS))


def expand(rows: Iterable[tuple[str, Convert]]) -> dict[str, Convert]:
    """Turn rows of blank-separated names into a table."""
    return {name: convert for names, convert in rows for name in names.split()}
