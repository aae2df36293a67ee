"""Common key names for lint: who names the batch, FSDP and DeepSpeed, packing, ranks by role."""

from __future__ import annotations

from oomdoctor.configs import meanings, parallel
from oomdoctor.configs.claims import Convert, Table, both, count, flag, given, text

ROWS: tuple[tuple[str, Convert], ...] = (
    (
        "per_device_train_batch_size micro_batch_size",
        both(count("train.micro_batch"), count("trainer.micro_batch")),
    ),
    (
        "gradient_accumulation_steps",
        both(count("train.grad_accum"), count("trainer.grad_accum")),
    ),
    ("fsdp", both(parallel.fsdp_options, given("dist.fsdp_asked"))),
    ("deepspeed", both(parallel.zero_file, given("dist.deepspeed_asked"))),
    (
        """
        fsdp_activation_checkpointing fsdp_config.activation_checkpointing
        fsdp_config.fsdp_activation_checkpointing
        """,
        both(meanings.checkpointing, flag("dist.fsdp_checkpointing")),
    ),
    ("auto_find_batch_size", flag("train.auto_batch")),
    ("padding_free", flag("train.padding_free")),
    ("packing_strategy", text("train.packing_strategy")),
    ("pad_to_multiple_of", count("train.pad_multiple")),
    ("streaming", flag("data.streaming")),
    ("load_best_model_at_end", flag("save.load_best")),
    (
        """
        tensor_model_parallel_size tensor_parallel_degree parallelism_config_tp_size
        parallelism_config.tp_size parallelismconfig.tp_size
        """,
        count("dist.tensor_ranks"),
    ),
    (
        """
        context_parallel_size context_parallel_degree parallelism_config_cp_size
        parallelism_config.cp_size parallelismconfig.cp_size
        """,
        count("dist.context_ranks"),
    ),
    (
        """
        sequence_parallel_size sequence_parallel_degree parallelism_config_sp_size
        parallelism_config.sp_size parallelismconfig.sp_size ulysses_sequence_parallel_size
        """,
        count("dist.sequence_ranks"),
    ),
    (
        "pipeline_model_parallel_size pipeline_parallel_degree",
        count("dist.pipeline_ranks"),
    ),
)
AXOLOTL: Table = {
    "tensor_parallel_size": both(count("serve.tensor_parallel"), count("dist.tensor_ranks")),
    "sequence_parallel_degree": count("dist.context_ranks"),
}
ACCELERATE: Table = {
    "parallelism_config.parallelism_config_tp_size": count("dist.tensor_ranks"),
    "parallelism_config.parallelism_config_cp_size": count("dist.context_ranks"),
    "parallelism_config.parallelism_config_sp_size": count("dist.sequence_ranks"),
    "parallelism_config.tp_size": count("dist.tensor_ranks"),
    "parallelism_config.cp_size": count("dist.context_ranks"),
    "parallelism_config.sp_size": count("dist.sequence_ranks"),
    "fsdp_config.fsdp_activation_checkpointing": both(
        flag("train.grad_checkpointing"), flag("dist.fsdp_checkpointing")
    ),
}
DEEPSPEED: Table = {
    "train_micro_batch_size_per_gpu": both(
        count("train.micro_batch"), count("deepspeed.micro_batch")
    ),
    "train_batch_size": both(count("train.global_batch"), count("deepspeed.train_batch")),
    "gradient_accumulation_steps": both(count("train.grad_accum"), count("deepspeed.grad_accum")),
    "zero_optimization.cpu_offload_param": parallel.offload("dist.param_offload"),
}
TORCHTITAN: Table = {
    "parallelism.tensor_parallel_degree": count("dist.tensor_ranks"),
    "parallelism.context_parallel_degree": count("dist.context_ranks"),
    "parallelism.pipeline_parallel_degree": count("dist.pipeline_ranks"),
}
TORCHTUNE: Table = {
    "tensor_parallel_dim": count("dist.tensor_ranks"),
    "context_parallel_dim": count("dist.context_ranks"),
}
