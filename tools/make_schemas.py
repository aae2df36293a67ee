"""Make oomdoctor/tables/schemas.json from the knowledge folder: `make_schemas.py FOLDER`.

FOLDER holds config_schemas.yaml: the fields of each class, for some with the versions that have
them. The result names, per dialect, which keys stand at which level, and per class since which
version a field was seen and by which one it was gone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

TABLE = Path(__file__).resolve().parent.parent / "oomdoctor" / "tables" / "schemas.json"
TRAINER = "transformers.TrainingArguments"
TRL = ("trl.SFTConfig", "trl.DPOConfig", "trl.GRPOConfig", "trl.ModelConfig", "trl._BaseConfig")
PEFT = "peft.LoraConfig"
# Keys that a framework takes beside the classes that were read: what its programs add.
OF_SCRIPTS = """
config env model_name_or_path dataset_name dataset_config dataset_train_split dataset_test_split
dataset_streaming dataset_mixer dataset_mixture dataset_splits chat_template tokenizer_name
config_name cache_dir use_fast_tokenizer token model_revision train_file validation_file test_file
dataset_config_name max_train_samples max_eval_samples max_predict_samples streaming block_size
overwrite_cache validation_split_percentage preprocessing_num_workers keep_linebreaks datasets
text_column summary_column source_lang target_lang max_source_length max_target_length
max_seq_length pad_to_max_length num_beams ignore_pad_token_for_loss source_prefix task_name
generation_max_length generation_num_beams predict_with_generate sortish_sampler system_prompt
reward_funcs reward_weights benchmarks callbacks dataset_text_field torch_dtype dtype
data_path model_max_length conv_template version
"""
OF_DEEPSPEED = """
train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps optimizer scheduler
fp16 bf16 bfloat16 amp gradient_clipping prescale_gradients gradient_predivide_factor
sparse_gradients communication_data_type seq_parallel_communication_data_type zero_optimization
steps_per_print wall_clock_breakdown dump_state activation_checkpointing aio flops_profiler
zero_allow_untested_optimizer zero_force_ds_cpu_optimizer tensorboard wandb csv_monitor comet
comms_logger logging autotuning elasticity compression_training data_efficiency
curriculum_learning progressive_layer_drop hybrid_engine checkpoint data_types pipeline
sparse_attention nebula compile memory_breakdown eigenvalue quantize_training tensor_parallel
disable_allgather torch_autocast sequence_parallel_size dataloader_drop_last timers
weight_quantization use_data_before_expert_parallelism graph_harvesting train_steps
gradient_accumulation_dtype zero_quantized_weights
"""
# Other names of ZeRO's fields (alias in runtime/zero/config.py) and those of older versions.
OF_ZERO = """
stage3_prefetch_bucket_size stage3_param_persistence_threshold stage3_model_persistence_threshold
stage3_max_live_parameters stage3_max_reuse_distance stage3_gather_16bit_weights_on_model_save
stage3_module_granularity_threshold stage3_use_all_reduce_for_fetch_params zeropp_loco_param
mics_shard_size mics_hierarchical_params_gather
"""
OF_ACCELERATE = """
fsdp_config deepspeed_config megatron_lm_config parallelism_config fp8_config dynamo_config
mpirun_config ipex_config tpu_name tpu_zone tpu_use_cluster tpu_use_sudo tpu_env commands
command_file gpu_ids num_processes debug enable_cpu_affinity downcast_bf16
"""
OF_AXOLOTL = """
cut_cross_entropy liger_rope liger_rms_norm liger_layer_norm liger_glu_activation liger_swiglu
liger_fused_linear_cross_entropy liger_cross_entropy wandb_project wandb_entity wandb_watch
wandb_name wandb_log_model wandb_run_id wandb_mode mlflow_tracking_uri mlflow_experiment_name
mlflow_run_name comet_project_name comet_workspace llmcompressor diffusion kd_trainer model_type
revision_of_model trust_remote_code tokenizer_config loraplus_lr_ratio group_by_length strict
is_llama_derived_model gpu gpu_count provider secrets volumes env branch memory project_name
launcher launcher_args main_process_port dataloader_num_workers
"""


def main(folder: str) -> None:
    """Write the table."""
    text = (Path(folder) / "config_schemas.yaml").read_text(encoding="utf-8")
    schemas: dict[str, Any] = yaml.safe_load(text)
    made = {"levels": levels(schemas), "versions": versions(schemas)}
    rows = [f"{json.dumps(key)}: {{\n{body(part)}\n}}" for key, part in made.items()]
    TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def body(part: dict[str, Any]) -> str:
    """Write one entry per line."""
    return ",\n".join(
        f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in part.items()
    )


def fields(schemas: dict[str, Any], start: str) -> list[str]:
    """Return the names of the fields of the entries whose title begins so."""
    names: set[str] = set()
    for title, schema in schemas.items():
        if title.startswith(start):
            names |= set(schema.get("fields", schema))
    return sorted(names)


def levels(schemas: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Return, per dialect, the keys of each level by the dotted path to it."""
    trainer = fields(schemas, TRAINER)
    trl = sorted({name for owner in TRL for name in fields(schemas, owner)})
    scripts = OF_SCRIPTS.split()
    zero = "deepspeed 0.19.8 "
    titan = "torchtitan 0.3.0 "
    offloads = {
        f"zero_optimization.{part}": fields(schemas, zero + part)
        for part in ("offload_param", "offload_optimizer")
    }
    return {
        "hf_trainer": {"": joined(trainer, scripts, fields(schemas, PEFT))},
        "trl": {"": joined(trainer, trl, scripts)},
        "axolotl": {
            "": joined(fields(schemas, "axolotl 0.19.0 top level"), OF_AXOLOTL.split()),
            "fsdp_config": fields(schemas, "axolotl 0.19.0 fsdp_config"),
            "trl": fields(schemas, "axolotl 0.19.0 trl"),
        },
        "llamafactory": {"": joined(trainer, fields(schemas, "llamafactory 0.9.5"), scripts)},
        "deepspeed": {
            "": joined(OF_DEEPSPEED.split()),
            "zero_optimization": joined(
                fields(schemas, f"{zero}zero_optimization"), OF_ZERO.split()
            ),
            **offloads,
        },
        "accelerate": {"": joined(fields(schemas, "accelerate 1.15.0"), OF_ACCELERATE.split())},
        "torchtitan": {
            "training": fields(schemas, f"{titan}TrainingConfig"),
            "parallelism": fields(schemas, f"{titan}ParallelismConfig"),
            "compile": fields(schemas, f"{titan}CompileConfig"),
            "comm": fields(schemas, f"{titan}CommConfig"),
        },
        "python": {
            "trainingarguments": trainer,
            "seq2seqtrainingarguments": joined(trainer, scripts),
            "sftconfig": joined(trainer, fields(schemas, TRL[0]), fields(schemas, TRL[4])),
            "dpoconfig": joined(trainer, fields(schemas, TRL[1]), fields(schemas, TRL[4])),
            "grpoconfig": joined(trainer, fields(schemas, TRL[2]), fields(schemas, TRL[4])),
            "loraconfig": fields(schemas, PEFT),
        },
    }


def joined(*lists: list[str]) -> list[str]:
    """Return all names once, sorted."""
    return sorted({name for names in lists for name in names})


def versions(schemas: dict[str, Any]) -> dict[str, dict[str, list[str | None]]]:
    """Return, per class, of each field that came or went the first version and the one without."""
    made: dict[str, dict[str, list[str | None]]] = {}
    for owner in (TRAINER, *TRL, PEFT):
        schema = schemas[owner]
        first = schema["versions_read"][0]
        rows = {
            name: [None if str(f["first_seen"]) == str(first) else str(f["first_seen"]), gone(f)]
            for name, f in schema["fields"].items()
        }
        made[owner] = {name: row for name, row in rows.items() if row != [None, None]}
    return made


def gone(field: dict[str, Any]) -> str | None:
    """Return the version by which a field was gone."""
    return str(field["removed_by"]) if "removed_by" in field else None


if __name__ == "__main__":
    main(sys.argv[1])
