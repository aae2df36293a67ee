"""Reading what people paste: notes, commands, scripts, and mixtures of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoctor.configs.reader import read_config

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "configs"
G = 1 << 30

WHOLE = ("job.text", "job.settings", "job.calls")


def said(text: str, name: str = "config.txt") -> dict[str, object]:
    """Return all facts of a text but its lines."""
    facts = [fact for reading in read_config(text, name=name) for fact in reading.facts]
    return {fact.key: fact.value for fact in facts if fact.key not in WHOLE}


def fixture(name: str) -> dict[str, object]:
    return said((FIXTURES / name).read_text(), name)


def test_one_line_of_notes_gives_card_batch_length_model_and_rank() -> None:
    assert said("RTX 4090, bs 4, seq 2048, Qwen2.5-7B, lora r16, 24GB") == {
        "gpu.name": "RTX 4090",
        "gpu.total": 24 * G,
        "train.micro_batch": 4,
        "train.seq_len": 2048,
        "lora.rank": 16,
        "lora.on": True,
        "model.name": "Qwen2.5-7B",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8x H100-80GB", {"gpu.name": "H100", "gpu.count": 8, "gpu.total": 80 * G}),
        ("2 x V100 16GB", {"gpu.name": "V100", "gpu.count": 2, "gpu.total": 16 * G}),
        ("48 GB cards", {"gpu.total": 48 * G}),
        ("24 GB GPU, 15 GB RAM", {"gpu.total": 24 * G, "host.ram_total": 15 * G}),
        ("weights about 60 GB", {}),
        ("a model on an A100", {"gpu.name": "A100"}),
        ("single 3090", {"gpu.name": "3090"}),
        ("lr 4090", {}),
        (
            "2 nodes x 8 GPUs of 80 GB",
            {"gpu.total": 80 * G, "gpu.count": 8, "dist.world_size": 16},
        ),
        (
            "A30 MIG 1g.6gb",
            {
                "gpu.mig": True,
                "gpu.mig_slice": 6 * G,
                "gpu.total": 6 * G,
                "gpu.name": "A30",
            },
        ),
        ("gfx1100, Windows", {"gpu.architecture": "gfx1100", "env.platform": "windows"}),
    ],
)
def test_cards_are_read_from_words(text: str, expected: dict[str, object]) -> None:
    assert said(text) == expected


def test_a_nominal_size_keeps_the_slack_of_nominal_sizes() -> None:
    (reading,) = read_config("one A100-80GB", name="n")
    (total,) = [fact for fact in reading.facts if fact.key == "gpu.total"]

    assert total.slack == int(80 * G * 0.03)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "batch size: 2, gradient accumulation 16",
            {"train.micro_batch": 2, "train.grad_accum": 16},
        ),
        ("per-device batch size of 2", {"train.micro_batch": 2}),
        (
            "ZeRO-3 with no gradient checkpointing",
            {"dist.kind": "zero3", "train.grad_checkpointing": False},
        ),
        ("gradient checkpointing: off", {"train.grad_checkpointing": False}),
        (
            "full fine-tuning, FSDP2",
            {"train.full_finetune": True, "lora.on": False, "dist.kind": "fsdp2"},
        ),
        ("QLoRA under WSL2", {"lora.on": True, "quant.kind": "bnb4", "env.platform": "wsl"}),
        ("13B parameters", {"model.params": 13 * 10**9}),
        ("not LoRA", {}),
        ("IMS_PER_BATCH: 2", {"train.micro_batch": 2}),
        ("context length 8k", {"train.seq_len": 8192}),
    ],
)
def test_set_phrases_are_understood(text: str, expected: dict[str, object]) -> None:
    assert said(text) == expected


def test_a_sentence_is_not_taken_for_a_value() -> None:
    assert said("precision: 16-mixed or bf16-mixed\nmodel: decoding in one step\n") == {}


def test_a_mixture_is_taken_apart() -> None:
    text = (FIXTURES / "notes/mixed.txt").read_text()
    readings = read_config(text, name="config.txt")

    assert [reading.dialect for reading in readings] == ["hf_trainer", "deepspeed", "shell"]
    facts = fixture("notes/mixed.txt")
    keys = ("train.micro_batch", "dist.kind", "optimizer.offload", "train.seq_len", "gpu.count")
    assert [facts[key] for key in keys] == [4, "zero2", "cpu", 1024, 1]
    assert facts["gpu.total"] == 24 * G


def test_only_the_first_reading_holds_the_text() -> None:
    text = (FIXTURES / "notes/mixed.txt").read_text()
    held = [
        any(fact.key == "job.text" for fact in reading.facts)
        for reading in read_config(text, name="config.txt")
    ]

    assert held == [True, False, False]


def test_a_launch_script_resolves_variables_and_multiplies_nodes() -> None:
    facts = fixture("shell/launch.sh")
    keys = [
        "model.name",
        "train.micro_batch",
        "dist.world_size",
        "job.launcher",
        "job.script",
        "train.amp",
        "train.grad_checkpointing",
        "alloc.expandable_segments",
        "gpu.count",
    ]

    assert [facts[key] for key in keys] == [
        *("Qwen/Qwen3-8B", 4, 16, "torchrun", "train.py", "bf16", True, True, 8)
    ]


def test_a_server_command_names_engine_model_and_limits() -> None:
    facts = fixture("vllm/serve.sh")
    keys = [
        "job.framework",
        "job.task",
        "model.name",
        "serve.utilization",
        "serve.max_len",
        "serve.tensor_parallel",
        "serve.eager",
        "env.visible_devices",
        "gpu.count",
    ]

    assert [facts[key] for key in keys] == [
        *("vllm", "serve", "Qwen/Qwen3-8B", 0.92, 32768, 2, True, "0,1", 2)
    ]


def test_a_server_with_its_model_is_a_whole_serving_config() -> None:
    command = (FIXTURES / "vllm/serve.sh").read_text()
    script = 'from vllm import LLM\nllm = LLM("gpt2", max_model_len=64)\n'

    assert ("serve-config",) in [r.closes for r in read_config(command, name="s.sh")]
    assert [r.closes for r in read_config(script, name="s.py")] == [("serve-config",)]
    assert [r.closes for r in read_config("--max-model-len 64\n", name="s")] == [()]


def test_flags_alone_are_read() -> None:
    facts = said("--mem-fraction-static 0.8\n--tp 2\n")

    assert (facts["job.framework"], facts["serve.static_fraction"]) == ("sglang", 0.8)


def test_a_diffusers_command_is_image_training() -> None:
    facts = fixture("diffusers/dreambooth.sh")
    keys = ["job.task", "job.framework", "train.micro_batch", "lora.rank", "optimizer.state_bits"]

    assert [facts[key] for key in keys] == ["diffusion", "diffusers", 1, 8, 8]
    assert facts["vision.image_pixels"] == 1024 * 1024


def test_two_lists_of_visible_devices_are_a_conflict() -> None:
    text = "export CUDA_VISIBLE_DEVICES=3\nCUDA_VISIBLE_DEVICES=0 python train.py\n"

    assert said(text)["env.visible_devices_conflict"] is True
    assert "env.visible_devices_conflict" not in said("CUDA_VISIBLE_DEVICES=0 python train.py\n")


def test_workers_of_a_web_server_are_no_data_workers() -> None:
    assert said("gunicorn main:app --workers 9 --bind 0.0.0.0:80") == {}


def test_a_container_has_its_own_shared_memory() -> None:
    facts = said(
        "docker run --gpus all --shm-size=8g -e NCCL_DEBUG=INFO img python train.py --bf16"
    )
    keys = ("env.container", "host.shm_total", "job.launcher", "train.amp")

    assert [facts[key] for key in keys] == [True, 8 * G, "python", "bf16"]


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/bash\n#SBATCH --mem=16Gb\nsrun python train.py\n",
        "services:\n  t:\n    image: x\n    mem_limit: 16g\n",
        "docker run --gpus all --memory 16g img python train.py\n",
        "podman run -m=16g img python train.py\n",
    ],
)
def test_the_memory_of_a_job_is_the_limit_of_its_group(text: str) -> None:
    assert said(text)["host.group_limit"] == 16 * G


def test_overrides_in_hydra_style_are_flags() -> None:
    facts = said("python main.py trainer.n_gpus_per_node=4 actor.model.path=gpt2 use_peft=false\n")

    assert (facts["gpu.count"], facts["lora.on"]) == (4, False)


def test_a_script_is_read_through_its_constructors() -> None:
    facts = fixture("python/train.py")
    keys = [
        *("job.framework", "job.task", "model.name", "train.base_dtype", "quant.kind"),
        *("quant.double", "lora.rank", "lora.targets", "train.micro_batch", "train.seq_len"),
        *("cudnn.benchmark", "alloc.expandable_segments"),
    ]

    assert [facts[key] for key in keys] == [
        *("trl", "sft", "Qwen/Qwen3-4B", "bf16", "bnb4", True, 64),
        *("all-linear", 4, 2048, True, True),
    ]


def test_unsloth_is_told_by_its_import() -> None:
    facts = fixture("unsloth/train.py")
    keys = ("job.framework", "train.seq_len", "lora.rank", "train.grad_checkpointing")

    assert [facts[key] for key in keys] == ["unsloth", 4096, 16, True]


def test_costly_habits_are_seen_and_careful_code_is_not_blamed() -> None:
    habits = [
        "code.loss_accumulated",
        "code.retain_graph",
        "code.appends_outputs",
        "code.empty_cache_in_loop",
        "code.eval_without_no_grad",
        "code.load_on_device",
    ]
    careless, careful = fixture("python/loop.py"), fixture("python/clean_loop.py")

    assert [careless.get(key) for key in habits] == [True] * 6
    assert [bool(careful.get(key)) for key in habits] == [False] * 6


def test_a_snippet_that_is_no_module_is_read_piece_by_piece() -> None:
    text = (
        "    args = TrainingArguments(\n        per_device_train_batch_size=4,\n    )\n"
        "    ... and so on ...\n"
        "    torch.backends.cudnn.benchmark = True\n"
    )

    assert said(text) == {
        "job.framework": "transformers",
        "train.micro_batch": 4,
        "trainer.micro_batch": 4,
        "cudnn.benchmark": True,
    }


def test_names_that_stay_open_are_no_values() -> None:
    facts = said("from trl import SFTTrainer\nt = SFTTrainer(model=model, args=args)\n")

    named = {
        key: value for key, value in facts.items() if not key.startswith(("code.", "job.open"))
    }
    assert named == {"job.framework": "trl", "job.task": "sft"}


WILD = ("{", "[[[", "a" * 70_000, "=" * 5000, "--" * 9000, "x = (" * 300, "'" * 4001, "$" * 5000)
WILDER = ("8 x " * 20_000, "def f(:\n" * 200, "- " * 3000, "\\\n" * 500, "", "\n\n", "\x00\x01")


@pytest.mark.parametrize("text", WILD + WILDER, ids=lambda text: repr(text[:8]))
def test_any_text_is_read_without_an_exception(text: str) -> None:
    assert isinstance(read_config(text, name="config.txt"), tuple)
