"""How weights are loaded, what the loop holds, and whose defaults are in force, by settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.facts import derive_lint
from oomdoctor.facts.derive import derive
from oomdoctor.model.enums import Origin
from tests.unit.facts.stated import GIB, book

if TYPE_CHECKING:
    from oomdoctor.model.core import Fact

Values = dict[str, "bool | float | str"]


def derived(key: str, facts: Values, *, closes: tuple[str, ...] = ()) -> Fact | None:
    return derive_lint.derive(derive(book(facts, closes=closes))).get(key)


def value(key: str, facts: Values, *, closes: tuple[str, ...] = ()) -> object:
    fact = derived(key, facts, closes=closes)
    return None if fact is None else fact.value


TRL: Values = {"job.framework": "trl", "env.transformers": "5.24.0"}
PLAIN_LOSS = "transformers/loss/loss_utils.py:46 fixed_cross_entropy | loss = cross_entropy("


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("sfttrainer.model = Qwen/Qwen2.5-7B", True),
        ("sfttrainer.model = <model>\nfrom_pretrained.model = Qwen/Qwen2.5-7B", False),
        ("sftconfig.output_dir = out", None),
    ],
)
def test_a_name_given_to_a_trainer_is_loaded_by_it(settings: str, expected: object) -> None:
    assert value("load.by_name", {**TRL, "job.settings": settings}) == expected


@pytest.mark.parametrize(
    ("framework", "script", "expected"),
    [
        ("trl", "sft.py", "trl"),
        ("trl", "ours.py", None),
        ("transformers", "run_clm.py", "transformers"),
        ("transformers", "ours.py", None),
    ],
)
def test_how_a_script_of_ones_own_loads_is_not_known(
    framework: str, script: str, expected: object
) -> None:
    facts: Values = {**TRL, "job.framework": framework, "job.script": script, "env.trl": "1.16.0"}
    settings = "model_name_or_path = a/b\noutput_dir = o"
    found = value("load.default_of", {**facts, "job.settings": settings}, closes=("train-config",))

    assert found == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("sfttrainer.model = a/b", "trl"),
        ("sfttrainer.model = a/b\nsftconfig.model_init_kwargs.dtype = bfloat16", None),
        ("sfttrainer.model = a/b\nsftconfig.model_init_kwargs.quantization_config = <q>", None),
    ],
)
def test_a_default_decides_only_where_no_dtype_is_given(settings: str, expected: object) -> None:
    facts: Values = {**TRL, "env.trl": "1.16.0", "job.settings": settings}

    assert value("load.default_of", facts) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"job.framework": "trl", "env.trl": "0.16.1", "job.task": "sft"}, "full"),
        ({"job.framework": "trl", "env.trl": "1.9.0", "job.task": "sft"}, "chunked"),
        ({"job.framework": "trl", "env.trl": "1.16.0", "job.task": "dpo"}, "fused"),
        ({"job.framework": "trl", "env.trl": "1.16.0", "job.task": "reward"}, "full"),
        ({"job.framework": "unsloth"}, "fused"),
        ({"job.framework": "trl", "job.task": "sft"}, None),
        ({"job.framework": "trl", "trace.stack": PLAIN_LOSS}, "full"),
        ({"loss.impl": "liger", "trace.stack": PLAIN_LOSS}, "liger"),
        ({"job.framework": "llamafactory"}, "full"),
        ({"job.framework": "llamafactory", "loss.impl": "liger"}, "liger"),
        ({"job.framework": "llamafactory", "job.settings": "kernel_config.name = auto"}, None),
        ({"job.framework": "plain"}, None),
    ],
)
def test_the_loss_is_that_of_the_framework_in_its_version(facts: Values, expected: object) -> None:
    assert value("loss.used", facts) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"dist.param_offload": "cpu"}, True),
        ({"dist.device_map": "auto"}, True),
        ({"dist.device_map": "auto", "gpu.count": 1}, False),
        ({"job.settings": "max_memory.0 = 20GiB", "gpu.count": 1}, True),
        ({"dist.kind": "zero3", "dist.world_size": 8}, True),
        ({"dist.kind": "zero2", "dist.world_size": 8}, False),
        ({"dist.kind": "zero3"}, None),
        ({"job.settings": "deepspeed = ds.json"}, None),
        ({"job.framework": "axolotl"}, None),
    ],
)
def test_what_splits_the_weights(facts: Values, expected: object) -> None:
    assert value("load.split", facts) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# tune run lora_finetune_single_device --config x", "none"),
        (
            "# tune run --nproc_per_node 2 full_finetune_distributed\n# tune run a_single_device",
            "fsdp2",
        ),
        ("batch_size: 2", "fsdp2"),
    ],
)
def test_torchtune_shards_but_in_recipes_of_one_device(text: str, expected: str) -> None:
    assert value("dist.kind", {"job.framework": "torchtune", "job.text": text}) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"job.framework": "axolotl", "job.settings": "adapter = qlora"}, True),
        ({"job.framework": "axolotl", "job.settings": "adapter = lora"}, None),
        ({"job.framework": "llamafactory"}, True),
        (
            {"job.framework": "plain", "job.settings": "bitsandbytesconfig.load_in_4bit = true"},
            False,
        ),
    ],
)
def test_whether_scales_are_quantised_is_the_framework_s_default(
    facts: Values, expected: object
) -> None:
    assert value("quant.double", {"quant.kind": "bnb4", **facts}) == expected


HF: Values = {"job.framework": "transformers"}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({**HF, "job.settings": "trainingarguments.output_dir = o"}, True),
        ({**HF, "job.settings": "trainingarguments.per_device_train_batch_size = 1"}, False),
        ({**HF, "job.settings": "output_dir = o"}, None),
        ({"job.framework": "axolotl", "job.settings": "output_dir = o"}, None),
        (
            {"job.framework": "llamafactory", "job.settings": "output_dir = o\ndo_predict = true"},
            None,
        ),
        (
            {**HF, "job.settings": "trainingarguments.output_dir = o", "train.auto_batch": True},
            None,
        ),
    ],
)
def test_the_library_s_rows_are_in_force_where_a_whole_call_leaves_them_out(
    facts: Values, expected: object
) -> None:
    assert value("train.batch_unset", facts) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"optimizer.name": "adamw_torch", "job.settings": "optim = adamw_torch"}, True),
        ({"optimizer.name": "adamw_torch_fused", "optimizer.fused": True}, False),
        ({"optimizer.name": "torch.optim.AdamW"}, True),
        ({"optimizer.name": "adamw_8bit", "job.settings": "optim = adamw_8bit"}, False),
        ({"optimizer.name": "AdamW", "optimizer.offload": "cpu"}, False),
        ({**HF, "env.transformers": "4.46.3"}, True),
        ({**HF, "env.transformers": "4.57.1"}, False),
        ({**HF, "env.transformers": "4.57.1", "env.torch": "2.5.1"}, True),
    ],
)
def test_a_step_holds_temporaries_unless_it_is_fused(facts: Values, expected: object) -> None:
    assert value("optimizer.foreach", facts) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"optimizer.name": "paged_adamw_32bit"}, True),
        ({"optimizer.name": "adamw_torch", "job.settings": "use_badam = true"}, True),
        ({"optimizer.name": "adamw_torch", "job.settings": "use_badam = false"}, False),
        ({}, None),
    ],
)
def test_some_optimizers_keep_few_states_on_the_card(facts: Values, expected: object) -> None:
    assert value("optimizer.few_states", facts) == expected


METRICS: Values = {
    "eval.compute_metrics": True,
    "train.seq_len": 1024,
    "model.vocab": 32000,
    "model.kind": "causal-lm",
}


@pytest.mark.parametrize(
    ("facts", "expected", "origin"),
    [
        ({"data.eval_rows": 500, "gpu.total": 80 * GIB}, True, Origin.DERIVED),
        ({"data.eval_rows": 5, "gpu.total": 80 * GIB}, False, Origin.DERIVED),
        ({"gpu.total": 80 * GIB}, True, Origin.ASSUMED),
        ({"data.eval_rows": 500}, True, Origin.ASSUMED),
        ({"job.task": "classification"}, False, Origin.DERIVED),
        ({"job.framework": "llamafactory"}, False, Origin.DERIVED),
    ],
)
def test_kept_predictions_are_much_where_rows_times_vocabulary_are(
    facts: Values, expected: bool, origin: Origin
) -> None:
    fact = derived("eval.keeps_much", {**METRICS, **facts})

    assert fact is not None
    assert (expected, origin) == (fact.value, fact.origin)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"env.transformers": "4.46.3"}, True),
        ({"env.transformers": "4.46.3", "train.use_cache": False}, False),
        ({"env.transformers": "5.24.0"}, False),
    ],
)
def test_evaluation_builds_a_cache_up_to_transformers_4(facts: Values, expected: bool) -> None:
    assert value("eval.uses_cache", {**HF, "model.kind": "causal-lm", **facts}) is expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"job.text": "Trainer(model=model, args=args).train()"}, True),
        ({"job.text": "p.requires_grad = False"}, None),
        ({"job.text": "model = get_peft_model(model, config)"}, None),
        ({"job.text": "Trainer(model=model)", "quant.kind": "bnb4"}, False),
    ],
)
def test_a_whole_script_that_freezes_nothing_trains_all(facts: Values, expected: object) -> None:
    found = derived("train.full_finetune", facts, closes=("train-script",))

    assert (None if found is None else found.value) == expected
    assert value("train.full_finetune", facts) is not True
