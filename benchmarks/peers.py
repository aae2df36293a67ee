"""What other estimators say of a job's peak, in bytes: those that run offline from a shape.

They are run as commands out of an environment of their own (`pip install canifinetune vramcalc
peft-doctor`); what they add as a safety margin is left out where they tell it apart.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.naive import parameters
from oomdoctor.memory.formula_shape import shape_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from oomdoctor.model.job import Job

NAMES = ("canifinetune", "vramcalc", "peft-doctor")
GIB = 1 << 30
SECONDS = 60
VRAM = "40"


def peers(job: Job, folder: Path) -> Mapping[str, float]:
    """Return what each estimator in a folder of commands says; one that fails is left out."""
    if not job.trains or job.task == "image-classification":
        return {}
    return dict(_said(job, folder))


def _said(job: Job, folder: Path) -> Iterator[tuple[str, float]]:
    with tempfile.TemporaryDirectory() as scratch:
        for name, ask in zip(NAMES, (_canifinetune, _vramcalc, _peft_doctor), strict=True):
            with suppress(OSError, KeyError, ValueError, subprocess.SubprocessError):
                yield name, ask(job, folder / name, Path(scratch))


def _canifinetune(job: Job, command: Path, scratch: Path) -> float:
    shape = shape_of(job.model.config)
    path = scratch / "shape.json"
    path.write_text(
        json.dumps(
            {
                "hidden_size": shape.hidden,
                "num_hidden_layers": shape.layers,
                "num_attention_heads": shape.heads,
                "num_key_value_heads": shape.kv_heads,
                "intermediate_size": shape.width,
                "vocab_size": shape.vocab,
                "tie_word_embeddings": shape.tied,
                "num_parameters": job.model.params or parameters(shape),
                "family": job.model.config.get("model_type"),
            }
        )
    )
    four = "nf4_double_quant" if job.quant is not None and job.quant.double else "nf4"
    wide = job.lora is not None and len(job.lora.targets) > 3
    method = "full" if job.lora is None else "qlora" if job.quant is not None else "lora"
    found = _run(
        *(str(command), "estimate", "--model", "a/b", "--offline", "--json"),
        *("--gpu-vram-gb", VRAM, "--override-json", str(path), "--method", method),
        *("--seq-len", str(job.seq_len), "--micro-batch-size", str(job.batch)),
        *("--lora-rank", str(1 if job.lora is None else job.lora.rank), "--base-dtype", job.dtype),
        *("--target-scope", "all_linear" if wide else "attention"),
        *("--quantization", "none" if job.quant is None else four, "--optimizer", "adamw"),
        "--no-gradient-checkpointing" if job.checkpointing is None else "--gradient-checkpointing",
    )
    memory = found["memory"]
    return float(memory["total_estimated_gb"] - memory["safety_margin_gb"]) * GIB


def _vramcalc(job: Job, command: Path, scratch: Path) -> float:
    if job.quant is not None:
        raise ValueError("it knows no quantised base")
    (scratch / "config.json").write_text(json.dumps(dict(job.model.config)))
    found = _run(
        *(str(command), str(scratch), "--train", "--json", "--dtype", job.dtype),
        *("--batch", str(job.batch), "--seq", str(job.seq_len)),
        *(() if job.lora is None else ("--lora", str(job.lora.rank))),
        *("--precision", "amp" if job.amp else "pure", "--attn", job.attention),
        *(() if job.checkpointing is None else ("--grad-checkpoint",)),
    )
    return float(found["estimate"]["total"])


def _peft_doctor(job: Job, command: Path, _scratch: Path) -> float:
    shape = shape_of(job.model.config)
    count = job.model.params or parameters(shape)
    found = _run(
        *(str(command), "estimate", "--model", "model", "--output", "json"),
        *("--seq-len", str(job.seq_len), "--batch-size", str(job.batch)),
        *("--params-billion", str(count / 1e9), "--hidden-size", str(shape.hidden)),
        *("--num-layers", str(shape.layers)),
        *(("--no-lora",) if job.lora is None else ()),
        *(("--qlora",) if job.quant is not None else ()),
        *(("--no-gradient-checkpointing",) if job.checkpointing is None else ()),
    )
    return float(found["metadata"]["estimated_total_gb"]) * GIB


def _run(*command: str) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    found: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return found
