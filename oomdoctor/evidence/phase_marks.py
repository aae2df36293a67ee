"""The table behind `phase`: which functions, files and calls stand for which phase of a run."""

from __future__ import annotations

from functools import cached_property

from oomdoctor.record import NamedTuple


class Mark(NamedTuple):
    """Names that stand for a phase; words of `functions` may start or end with `*`.

    `files` are parts of a path, `calls` texts in a line of code, `scoped` are functions that mean
    it in files of that path only. `weak` marks say what a frame does, but give way to any other
    mark further out.
    """

    phase: str
    functions: str = ""
    files: str = ""
    calls: str = ""
    scoped: tuple[tuple[str, str], ...] = ()
    weak: bool = False


class Names:
    """The words of a mark, ready to be asked."""

    def __init__(self, words: str) -> None:
        """Split `words` into whole names, beginnings (`x*`) and endings (`*x`)."""
        self._words = words.split()

    @cached_property
    def _whole(self) -> frozenset[str]:
        return frozenset(word for word in self._words if "*" not in word)

    @cached_property
    def _starts(self) -> tuple[str, ...]:
        return tuple(word[:-1] for word in self._words if word.endswith("*"))

    @cached_property
    def _ends(self) -> tuple[str, ...]:
        return tuple(word[1:] for word in self._words if word.startswith("*"))

    def has(self, name: str) -> bool:
        """Say whether `name` is one of the words."""
        return name in self._whole or name.startswith(self._starts) or name.endswith(self._ends)


# the first row that fits a frame names its phase
MARKS: tuple[Mark, ...] = (
    Mark(
        "graph-capture",
        functions="capture_model capture_graph capture_graphs *capture_cudagraphs capture_end"
        " capture_begin create_cudagraphs make_graphed_callables _make_graphed_callables"
        " graph_capture init_cuda_graph init_cuda_graphs init_device_graphs capture_one_batch_size"
        " create_graph_runner warmup_and_capture* _warmup_and_capture* record_graph",
        files="torch/cuda/graphs.py cuda_graph_runner.py cudagraph_trees.py",
        calls="torch.cuda.graph( CudaGraphRunner( CUDAGraphRunner(",
    ),
    Mark(
        "serve-profile",
        functions="determine_num_available_blocks determine_available_memory profile_run"
        " _profile_run profile_max_* profile_multimodal* profile_num_available_blocks"
        " warmup_sampler profile_cudagraph_memory _dummy_run _dummy_sampler_run _dummy_pooler_run",
        scoped=(("text_generation_server/", "Warmup warmup"),),
    ),
    Mark(
        "merge",
        functions="merge_and_unload _unload_and_optionally_merge merge_adapter merge_lora*"
        " merge_peft* export_model get_delta_weight",
        calls=".merge_and_unload(",
        scoped=(("peft/tuners/", "merge"), ("axolotl/", "do_merge_lora")),
    ),
    Mark(
        "eval",
        functions="evaluate _evaluate evaluation_loop prediction_loop prediction_step predict"
        " predict_step nested_concat validation_step* validation_loop validation_epoch"
        " _run_validation run_validation validate _validate validation on_validation* test_step*"
        " _run_eval* run_eval* eval_step eval_epoch do_eval validate_epoch val val_epoch val_step"
        " _val_step valid_epoch valid_step _run_sanity_check evaluate_and_print_results eval_model"
        " compute_metrics log_validation* simple_evaluate single_gpu_test multi_gpu_test"
        " inference_on_dataset final_val validate_one_epoch eval_one_epoch test_one_epoch"
        " test_epoch run_test evaluate_model validate_model eval_loop test eval do_test"
        " perform_actual_validation predict_sliding_window* _internal_predict_* run_inference_on*",
        files="evaluation_loop.py ultralytics/engine/validator.py mmengine/evaluator/",
        calls="evaluate( validate( run_validation( nested_concat( run_iteration(self.val_gen",
    ),
    Mark(
        "resume",
        functions="_load_from_checkpoint load_state load_accelerator_state load_opt_state"
        " _load_optimizer_and_scheduler resume* _resume* restore* _restore* load_zero_checkpoint"
        " _load_zero_checkpoint load_training_checkpoint load_optimizer* load_fsdp_optimizer",
        files="",
        calls="resume_from_checkpoint( optimizer.load_state_dict( accelerator.load_state(",
        scoped=(
            ("deepspeed/", "load_checkpoint _load_checkpoint"),
            ("checkpointing.py", "load_checkpoint"),
            ("torch/optim/", "load_state_dict"),
        ),
    ),
    Mark(
        "save",
        functions="save_pretrained* save_model* _save_checkpoint save_checkpoint* save_state"
        " state_dict _save_to_state_dict get_state_dict get_model_state_dict full_state_dict*"
        " save_fsdp_model save_fsdp_optimizer _save_optimizer_and_scheduler optim_state_dict"
        " _optim_state_dict* full_optim_state_dict _zero3_consolidated_16bit_state_dict"
        " save_16bit_model save_zero_checkpoint _save_zero_checkpoint _full_post_state_dict_hook"
        " dump_checkpoint on_save save_lora* undo_layout get_fp32_state_dict* *_parallel_state_dict"
        " *gather_state_dict* *_full_state_dict *consolidated_state_dict *consolidate_state_dict"
        " save_ckpt* _save_ckpt save_weights* save_hf_* save_adapter*"
        " save_snapshot save_full_* _save_model* save_fsdp_* _save_fsdp* save_to_hf*",
        calls=".state_dict() torch.save( .save_pretrained( .save_model( .save_checkpoint("
        " saver.save( checkpointer.save( .save_ckpt( .save_weights( checkpoint_manager.save(",
        scoped=(
            ("torch/serialization.py", "save _save _legacy_save"),
            ("torch/distributed/checkpoint/state_dict_saver", "save async_save"),
            ("trainer", "_save _save_*"),
            ("saver", "save _save* __call__"),
            ("checkpoint", "save _save*"),
        ),
    ),
    Mark(
        "load",
        scoped=(
            ("vllm/model_executor/models/", "__init__"),
            ("vllm/model_executor/layers/", "__init__"),
            ("sglang/srt/models/", "__init__"),
            ("sglang/srt/layers/", "__init__"),
            ("text_generation_server/models/__init__", "get_model"),
            ("text_generation_server/models/flash_", "__init__"),
            ("text_generation_server/models/custom_modeling/", "__init__"),
            ("lmdeploy/pytorch/models/", "__init__"),
            ("tensorrt_llm/_torch/models/", "__init__"),
            ("exllamav2/", "load load_gen load_autosplit*"),
            ("llama_cpp/", "__init__"),
            ("faster_whisper/", "__init__"),
        ),
    ),
    Mark(
        "serve-start",
        functions="from_engine_args initialize_kv_cache* _initialize_kv_cache* allocate_cpu_cache"
        " allocate_gpu_cache allocate_kv_cache* _allocate_kv_cache* initialize_cache"
        " _init_cache_engine initialize_from_config init_memory_pool from_vllm_config"
        " run_engine_core run_server* build_async_engine* run_scheduler_process launch_server",
        files="vllm/worker/cache_engine.py",
        calls="LLM( AsyncLLMEngine( LLMEngine(",
        scoped=(
            ("vllm/engine/", "__init__"),
            ("vllm/v1/engine/", "__init__"),
            ("vllm/entrypoints/llm.py", "__init__"),
            ("sglang/srt/", "__init__ _create_buffers"),
        ),
    ),
    Mark(
        "prepare",
        functions="prepare_model_for_kbit_training prepare_model_for_int8_training"
        " _prepare_deepspeed prepare_deepspeed _configure_optimizer _configure_zero_optimizer"
        " initialize_optimizer_states _ddp_init_helper _sync_module_states"
        " _verify_params_across_processes fully_shard _auto_wrap* _init_param_handle*"
        " _recursive_wrap get_peft_model inject_adapter _prepare_one prepare_model prepare"
        " _prepare_fsdp* fsdp2_prepare_model _wrap_model add_adapter resize_token_embeddings"
        " _resize_token_embeddings setup_optimizer* create_optimizer* create_reference_model"
        " _create_and_replace prepare_ref_model configure_optimizers _configure_distributed_model"
        " setup_model_and_optimizer get_megatron_optimizer*",
        calls="deepspeed.initialize( FullyShardedDataParallel( FSDP( DistributedDataParallel( DDP("
        " accelerator.prepare( get_peft_model( prepare_model_for_kbit_training( fully_shard(",
        scoped=(
            ("deepspeed/runtime/zero/", "__init__"),
            ("deepspeed/runtime/engine.py", "__init__"),
            ("deepspeed/pt/", "__init__"),
            ("torch/distributed/fsdp/", "__init__"),
        ),
    ),
    Mark(
        "load",
        functions="from_pretrained load_pretrained* _load_pretrained_model load_model*"
        " _load_state_dict_into_* load_weights load_checkpoint_in_model dispatch_model"
        " load_checkpoint_and_dispatch set_module_tensor_to_device create_quantized_param"
        " set_module_quantized_tensor_to_device caching_allocator_warmup load_torch_file"
        " _load_parameter_into_model load_diffusion_model* load_checkpoint_guess_config"
        " create_weights _load_model load_adapter load_lora* load_unet load_file from_single_file"
        " model_load* _materialize_copy process_weights_after_loading build_model setup_model"
        " convert_and_load_state_dict_in_model load_tokenizer_and_model initialize_model"
        " _initialize_model make_layers create_model* build_network create_network",
        files="vllm/model_executor/model_loader/ sglang/srt/model_loader/"
        " text_generation_server/utils/weights",
        calls=".from_pretrained( load_checkpoint_in_model( safe_open( load_model( build_model("
        " create_model( init_model( setup_model( load_pretrained(",
    ),
    Mark(
        "backward",
        functions="backward run_backward _engine_run_backward _backward backward_step"
        " unscale_and_backward _run_backward loss_backward backward_epilogue reduce_gradients"
        " reduce_ready_partitions* _post_backward* _pre_backward* post_backward"
        " reduce_partition_and_remove_grads allreduce_gradients custom_backward"
        " overlapping_partition_gradients_reduce_epilogue reduce_independent_p_g_buckets*"
        " reduce_ipg_grads* independent_gradient_partition_epilogue",
        files="torch/autograd/graph.py torch/autograd/__init__.py",
        calls=".backward(",
    ),
    Mark(
        "optimizer",
        functions="_init_group optimizer_step _optimizer_step _take_model_step unscale_"
        " clip_grad_norm_ clip_grad_norm _clip_grad* _single_tensor_* _multi_tensor_* init_state"
        " update_step zero_grad initialize_states step_param"
        " apply_gradients _resource_apply* _apply_dense* _apply_sparse* _distributed_apply",
        files="torch/optim/ amp/grad_scaler.py fused_adam cpu_adam bitsandbytes/optim/"
        " transformers/optimization.py galore_torch/",
        calls="optimizer.step( optim.step( scaler.step( opt.step( exp_avg max_exp_avg"
        " momentum_buffer",
        scoped=(("optim", "step"),),
    ),
    Mark(
        "generate",
        functions="generate _generate* generate_completions greedy_search sample _sample"
        " beam_search _beam_search _prefill chat stream_chat generate_step _contrastive_search"
        " assisted_decoding _assisted_decoding",
        files="transformers/generation/",
        calls=".generate(",
    ),
    Mark(
        "loss",
        functions="*cross_entropy *_loss *Loss loss_function loss_fn compute_losses loss"
        " *log_softmax get_batch_logps _get_batch_logps get_per_token_logps* loss_by_feat*"
        " _get_per_token_logps* *_per_token_logps *criterion kl_div label_and_sample_*"
        " get_targets _get_targets* assign_targets*",
        files="/loss/ /losses/ _loss.py loss.py losses.py /loss_",
        calls="cross_entropy( cross_entropy_loss( nll_loss( loss_fct( loss_fn( criterion("
        " .loss_function( log_softmax(",
        weak=True,
    ),
    Mark("save", functions="_unshard_fsdp_state_params _unshard_params_summon", weak=True),
    Mark(
        "serve",
        functions="execute_model step_async engine_step run_busy_loop _process_engine_step"
        " forward_batch_generation run_batch forward_decode forward_extend event_loop_*",
        scoped=(("vllm/engine/", "step"), ("vllm/v1/engine/", "step")),
        weak=True,
    ),
    Mark(
        "resume",
        functions="load_checkpoint",
        calls="torch.load( th.load(",
        scoped=(
            ("torch/serialization.py", "load _load persistent_load load_tensor restore_location"),
        ),
        weak=True,
    ),
    Mark(
        "load",
        functions="load_state_dict _load_from_state_dict _lazy_init",
        calls="model.to( model.cuda( model.half( net.to( net.cuda( network.to( network.cuda( "
        "encoder.to( encoder.cuda( decoder.to( decoder.cuda( pipe.to( pipeline.to(",
        scoped=(
            ("torch/nn/modules/module.py", "to cuda _apply convert half float bfloat16 <lambda>"),
        ),
        weak=True,
    ),
    Mark("import", functions="_load_library import_module", files="<frozen", weak=True),
    Mark(
        "forward",
        functions="forward* _forward* *_forward _call_impl __call__ compute_loss inner",
        calls="self.model( model( self.module(",
        scoped=(
            ("torch_geometric/", "propagate message* aggregate* edge_update"),
            ("dgl/", "update_all apply_edges invoke_* _gspmm _gsddmm gspmm gsddmm"),
            (
                "torch/nn/functional.py",
                (
                    "conv* linear bilinear relu* *elu silu softmax *_norm *_pool* interpolate"
                    " grid_sample pad dropout* embedding* multi_head_attention_forward unfold fold"
                ),
            ),
        ),
        weak=True,
    ),
)
