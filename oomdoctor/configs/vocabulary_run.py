"""Common key names about ranks, cards, serving, data of the machine, and the model's name."""

from __future__ import annotations

from oomdoctor.configs import command_facts, hardware, meanings, parallel
from oomdoctor.configs.claims import (
    Claim,
    Convert,
    count,
    either,
    flag,
    given,
    nothing,
    ratio,
    size,
    text,
    when_true,
    word,
)

STATE_DICT = {
    "full_state_dict": "full",
    "full": "full",
    "sharded_state_dict": "sharded",
    "sharded": "sharded",
    "local_state_dict": "local",
    "local": "local",
}

ROWS: tuple[tuple[str, Convert], ...] = (
    ("zero_stage actor_zero_stage critic_zero_stage", parallel.zero_stage),
    ("stage", meanings.stage),
    ("deepspeed", parallel.zero_file),
    ("fsdp sharding_strategy fsdp_sharding_strategy", parallel.fsdp_options),
    (
        """
        strategy distributed parallel distributed_type accelerator_strategy ddp_backend_kind
        dist_strategy distributed_strategy parallelism
        """,
        parallel.strategy,
    ),
    ("ddp", when_true(Claim("dist.kind", "ddp"))),
    ("world_size nproc num_processes dp_size nproc_per_node n_proc", count("dist.world_size")),
    (
        """
        gpus gpu n_gpu n_gpus num_gpus gpu_count n_gpus_per_node gpus_per_node num_gpu ngpu
        num_gpus_per_node ngpus
        """,
        either(parallel.gpu_list, hardware.card),
    ),
    (
        "ngl n_gpu_layers gpu_layers num_gpu_layers options.num_gpu",
        count("serve.gpu_layers", least=0),
    ),
    ("device_map", text("dist.device_map")),
    ("state_dict_type fsdp_state_dict_type", word("dist.state_dict", STATE_DICT)),
    ("limit_all_gathers", flag("dist.limit_all_gathers")),
    (
        "auto_wrap_policy fsdp_auto_wrap_policy transformer_layer_cls_to_wrap",
        parallel.wrap_policy,
    ),
    ("contiguous_gradients", flag("dist.contiguous_gradients")),
    ("save_only_model", flag("save.only_model")),
    ("resume_from_checkpoint resume init_from_resume resume_from", meanings.resume),
    ("ref_model reference_model", given("ref.separate")),
    ("precompute_ref_log_probs", when_true(Claim("ref.separate", value=False))),
    (
        """
        max_completion_length max_new_tokens max_response_length generation_max_length
        max_generated_tokens
        """,
        count("gen.max_new_tokens"),
    ),
    ("use_vllm", nothing),
    ("vllm_mode", meanings.vllm_mode),
    ("vllm_gpu_memory_utilization vllm_gpu_util", ratio("gen.engine_share")),
    ("vllm_enable_sleep_mode", flag("gen.engine_sleep")),
    ("gpu_memory_utilization gpu_mem_util", ratio("serve.utilization")),
    ("max_model_len vllm_max_model_len vllm_maxlen num_ctx ctx_size", count("serve.max_len")),
    ("max_num_seqs max_batch_size max_running_requests", count("serve.max_seqs")),
    ("max_num_batched_tokens max_prefill_tokens", count("serve.max_batched_tokens")),
    ("tensor_parallel_size tp_size tensor_parallel tp", count("serve.tensor_parallel")),
    ("enforce_eager disable_cuda_graph", flag("serve.eager")),
    ("enable_lora", flag("serve.lora")),
    ("limit_mm_per_prompt", text("serve.mm_limit")),
    ("mem_fraction_static", ratio("serve.static_fraction")),
    (
        """
        per_process_memory_fraction per_process_gpu_memory_fraction gpu_memory_fraction
        set_per_process_memory_fraction cuda_memory_fraction gpu_mem_fraction memory_fraction
        mem_fraction gpu_memory_share gpu_memory_limit gpu_mem_limit max_gpu_memory_fraction
        vram_fraction
        """,
        meanings.memory_share,
    ),
    (
        "speculative_model speculative_config speculative_algorithm draft_model",
        given("serve.speculative"),
    ),
    ("prompt_logprobs", given("serve.logprobs")),
    ("max_pixels image_max_pixels", count("vision.max_pixels")),
    ("resolution image_size img_size imgsz input_size", meanings.image_size),
    ("wandb_watch", given("logging.watch_gradients")),
    ("torch_compile compile compile_model", given("compile.on")),
    ("cudnn_benchmark torch.backends.cudnn.benchmark cudnn.benchmark", flag("cudnn.benchmark")),
    (
        """
        model model_name model_name_or_path base_model pretrained_model_name_or_path
        model_id model_path base_model_name_or_path model_dir pretrained_model pretrained
        model_checkpoint pretrained_model_path model_name_hf hf_model ckpt_dir
        """,
        meanings.model_name,
    ),
    ("gres", parallel.generic_resource),
    ("p partition constraint", parallel.partition),
    ("ddp_backend", parallel.ddp_backend),
    ("init_from", meanings.init_from),
    ("device gpu_name gpu_type card accelerator_type hardware", hardware.card),
    ("host_ram ram system_memory cpu_ram", size("host.ram_total")),
    (
        "mem mem_limit memory_limit mem_per_node",
        size("host.group_limit", slack_share=0.001),
    ),
    ("shm_size shared_memory", size("host.shm_total", slack_share=0.001)),
    ("cuda_visible_devices hip_visible_devices rocr_visible_devices", parallel.visible_devices),
    ("script", command_facts.script_value),
)
