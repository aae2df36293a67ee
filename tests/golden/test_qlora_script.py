"""A QLoRA script of 2023 with the advice of its time: each mistake, and when each key breaks."""

from __future__ import annotations

from pathlib import Path

from oomdoctor.linting.run import Wanted, lint

SCRIPT = Path(__file__).resolve().parents[2] / "fixtures" / "lint" / "qlora-script" / "train.py"
PINS = (
    *("torch==2.1.0", "transformers==4.36.0", "peft==0.7.0", "trl==0.7.4"),
    *("accelerate==0.25.0", "bitsandbytes==0.41.3"),
)
OLD = Wanted(versions=PINS, gpu="RTX 4090", search=False)
TODAY = Wanted(
    versions=("transformers==5.24.0", "trl==1.16.0", "peft==0.21.2", "accelerate==1.15.0"),
    gpu="RTX 4090",
    search=False,
)


def rows(wanted: Wanted) -> dict[str, tuple[str, str]]:
    """Return severity and the text of the line of each finding by its rule."""
    lines = SCRIPT.read_text(encoding="utf-8").split("\n")
    return {
        one.rule: (one.severity.value, lines[one.line - 1].strip() if one.line else "")
        for one in lint([str(SCRIPT)], wanted).findings
    }


def test_with_the_versions_of_its_time_it_stops_at_two_places() -> None:
    errors = {rule: line for rule, (severity, line) in rows(OLD).items() if severity == "error"}
    assert errors == {
        "optim-args-offload-fake": 'optim_args="offload",',
        "accelerator-cpu-offload-fake": "accelerator = Accelerator(cpu_offload=True)",
    }


def test_what_runs_and_does_harm_is_a_warning() -> None:
    warnings = {rule: line for rule, (severity, line) in rows(OLD).items() if severity == "warning"}
    assert warnings == {
        "pad-eq-eos-labels": "tokenizer.pad_token = tokenizer.eos_token",
        "kbit-prepare-fp32-upcast": "model = prepare_model_for_kbit_training(model)",
        "merge-quantized-base": "merged = model.merge_and_unload()",
        "logits-dominate": 'tokenizer, dataset, dataset_text_field="text", seq_length=2048,'
        " chars_per_token=3.6",
    }


def test_each_key_that_a_later_version_refuses_is_named_with_that_version() -> None:
    told = {
        one.rule: (one.severity.value, one.breaks)
        for one in lint([str(SCRIPT)], OLD).findings
        if one.breaks
    }
    assert told == {
        "constant-length-dataset-gone": (
            "info",
            "works with trl 0.7.4; refused from 0.20.0 on",
        ),
        "warmup-ratio-removed": (
            "info",
            "works with transformers 4.36.0; refused from 5.15.0 on",
        ),
        "evaluation-strategy-removed": (
            "info",
            "works with transformers 4.36.0; refused from 4.51.0 on",
        ),
        "group-by-length-removed": (
            "info",
            "works with transformers 4.36.0; refused from 5.2.0 on",
        ),
    }


def test_with_the_versions_of_today_these_keys_are_errors() -> None:
    found = rows(TODAY)
    refused = (
        "constant-length-dataset-gone",
        "warmup-ratio-removed",
        "evaluation-strategy-removed",
        "group-by-length-removed",
    )
    assert {rule: found[rule][0] for rule in refused} == dict.fromkeys(refused, "error")


def test_no_patch_sets_what_the_old_version_does_not_have() -> None:
    settings = {
        key
        for one in lint([str(SCRIPT)], OLD).findings
        for fix in one.fixes
        for patch in fix.patches
        for key, value in patch.settings.items()
        if not str(value).startswith("!")
    }
    new = {"use_liger_kernel", "eval_strategy", "activation_checkpointing", "warmup_steps_ratio"}
    assert settings.isdisjoint(new)
