"""Make the package's tables from the knowledge folder: `python tools/make_tables.py FOLDER`.

FOLDER holds gpus.yaml, models.yaml and config_schemas.yaml; the result is
oomdoctor/tables/{gpus,models,model_configs,defaults}.json, one compact line per entry and
sorted keys.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml
from default_rows import CONSTANT, FROM_SCHEMA, HISTORY
from model_configs import completed, configs
from more_cards import more_cards
from more_models import MORE_ALIASES, more_rows
from published_models import ALIASES, PUBLISHED

TABLES = Path(__file__).resolve().parent.parent / "oomdoctor" / "tables"
GPU_FLAGS = ("fp16_tensor_cores", "fp8_tensor_cores", "flash_attn_2", "flash_attn_3", "bnb_int8")
SHAPE = (
    "hidden",
    "layers",
    "heads",
    "kv_heads",
    "head_dim",
    "intermediate",
    "vocab",
    "max_positions",
    "params",
    "experts",
    "experts_per_token",
    "moe_intermediate",
    "decoder_layers",
)
KINDS = {
    "causal-lm": "causal-lm",
    "moe": "causal-lm",
    "encoder": "encoder",
    "encoder-decoder": "seq2seq",
    "encoder-decoder (audio)": "speech",
    "vision": "vision",
    "clip": "vision",
    "diffusion-unet": "diffusion",
    "vae": "diffusion",
}
# Boards that report an ordinary name with another size (gpus.yaml, notes).
MODIFIED_MIB = {
    "NVIDIA GeForce RTX 4090": [49140, 46068],
    "NVIDIA GeForce RTX 4090 D": [49140],
    "NVIDIA RTX A6000": [46068],
}
# Fine-tunes and renamed copies whose published config.json has the shape of a listed model.
SAME_SHAPE = {
    "meta-llama/Llama-2-7b-hf": ("huggyllama/llama-7b", "lmsys/vicuna-7b-v1.5"),
    "meta-llama/Llama-2-13b-hf": ("huggyllama/llama-13b", "lmsys/vicuna-13b-v1.5"),
    "meta-llama/Llama-3.1-8B": ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B",),
    "meta-llama/Llama-3.1-70B": ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B",),
    "Qwen/Qwen2.5-1.5B": (
        "Qwen/Qwen2.5-Coder-1.5B",
        "Qwen/Qwen2.5-Math-1.5B",
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B",
    ),
    "Qwen/Qwen2.5-0.5B": ("Qwen/Qwen2.5-Coder-0.5B",),
    "Qwen/Qwen2.5-3B": ("Qwen/Qwen2.5-Coder-3B",),
    "Qwen/Qwen2.5-7B": ("Qwen/Qwen2.5-Coder-7B", "Qwen/Qwen2.5-Math-7B"),
    "Qwen/Qwen2.5-14B": (
        "Qwen/Qwen2.5-Coder-14B",
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B",
    ),
    "Qwen/Qwen2.5-32B": (
        "Qwen/Qwen2.5-Coder-32B",
        "Qwen/QwQ-32B",
        "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
    ),
    "mistralai/Mistral-7B-v0.1": ("HuggingFaceH4/zephyr-7b-beta", "mistralai/Mistral-7B-v0.2"),
    "mistralai/Mixtral-8x7B-v0.1": ("mistralai/Mixtral-8x7B",),
    "microsoft/Phi-3-mini-4k-instruct": (
        "microsoft/Phi-3-mini-128k-instruct",
        "microsoft/Phi-3.5-mini-instruct",
    ),
    "microsoft/Phi-3-medium-4k-instruct": ("microsoft/Phi-3-medium-128k-instruct",),
}


CALLED = {  # what people say and the driver does not
    "NVIDIA H100 80GB HBM3": ("H100 SXM", "H100 SXM5", "H100-SXM5-80GB", "H100 SXM 80GB"),
}


def gpu_rows(cards: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one compact row per card."""
    rows = []
    for card in cards:
        nominal = card["nominal_gb"]
        wddm = card.get("windows_wddm_torch_total_mib") or []
        row = {
            "name": card["name"],
            "aliases": [*(card.get("aliases") or []), *CALLED.get(card["name"], ())],
            "vendor": card["vendor"],
            "architecture": card["arch"],
            "compute_capability": card["compute_capability"],
            "nominal_gb": nominal if isinstance(nominal, list) else [nominal],
            "smi_mib": (card["smi_total_mib"] or []) + MODIFIED_MIB.get(card["name"], []),
            "torch_mib": (card["torch_total_mib"] or [])
            + (wddm if isinstance(wddm, list) else [wddm]),
            "bf16": str(card["bf16"]).startswith("native"),
            **{flag: bool(card.get(flag)) for flag in GPU_FLAGS},
        }
        rows.append({key: value for key, value in row.items() if value not in ([], None)})
    return rows


def model_rows(models: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one compact row per model, fine-tunes of the same shape as its aliases."""
    rows = []
    for name, model in models.items():
        aliases = [re.sub(r" \(.*\)$", "", alias) for alias in model.get("aliases") or []]
        row = {
            "name": re.sub(r" \(text part\)$", "", name),
            "aliases": [*aliases, *SAME_SHAPE.get(name, ()), *ALIASES.get(name, ())],
            "architecture": model["arch"],
            "kind": "vlm" if model["kind"].startswith("vlm") else KINDS[model["kind"]],
            "tied": model.get("tied_embeddings"),
            **{key: model.get(key) for key in SHAPE},
        }
        rows.append({key: value for key, value in row.items() if value not in ([], None)})
    for name, (architecture, kind, params, aliases) in PUBLISHED.items():
        row = {"name": name, "architecture": architecture, "kind": kind, "params": params}
        rows.append(row | ({"aliases": list(aliases)} if aliases else {}))
    return rows


def default_rows(schemas: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return, per source of defaults, its package and the intervals of every fact's default."""
    made: dict[str, dict[str, Any]] = {}
    for source, (package, classes, fields) in FROM_SCHEMA.items():
        facts: dict[str, list[list[Any]]] = {}
        for key, names in fields.items():
            facts[key] = _intervals(schemas, classes, names)
        made[source] = {"package": package, "facts": facts}
    for source, (package, newest, facts_of) in CONSTANT.items():
        entry = made.setdefault(source, {"package": package, "facts": {}})
        for key, value in facts_of.items():
            entry["facts"][key] = [[None, newest, value]]
    for source, (package, runs) in HISTORY.items():
        made.setdefault(source, {"package": package, "facts": {}})["facts"].update(runs)
    return made


def _intervals(
    schemas: dict[str, Any], classes: tuple[str, ...], names: tuple[tuple[str, dict[str, Any]], ...]
) -> list[list[Any]]:
    """Return [first version, last version, value] runs; value None where the default says none."""
    runs: list[list[Any]] = []
    seen: dict[str, Any] = {}
    for owner in classes:
        schema = schemas[owner]
        for version in schema["versions_read"]:
            for name, words in names:
                field = schema["fields"].get(name)
                text = _default_at(schema["versions_read"], field, version)
                if text is not None and version not in seen:
                    seen[version] = words.get(text, _plain(text))
    for version in sorted(seen, key=_key):
        if runs and runs[-1][2] == seen[version]:
            runs[-1][1] = version
        else:
            runs.append([version, version, seen[version]])
    return runs


def _default_at(versions: list[str], field: dict[str, Any] | None, version: str) -> str | None:
    """Return the default's source text at a version, None where the field does not exist."""
    if field is None:
        return None
    order = versions.index
    if not order(field["first_seen"]) <= order(version) <= order(field["last_seen"]):
        return None
    text = None
    for since, default in field["default_since"].items():
        if order(str(since)) <= order(version):
            text = str(default)
    return text


def _plain(text: str) -> Any:  # noqa: ANN401 - a Python literal out of a table
    """Return the value of a default's source text, None for None and for what is no literal."""
    if text in ("True", "False"):
        return text == "True"
    number = text.replace(".", "", 1).isdecimal()
    return (float(text) if "." in text else int(text)) if number else None


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def write(name: str, rows: list[dict[str, Any]] | dict[str, Any]) -> None:
    """Write a table, one entry per line, keys sorted."""
    if isinstance(rows, dict):
        lines = [f"{json.dumps(key)}:{_compact(rows[key])}" for key in sorted(rows)]
        text = "{\n" + ",\n".join(lines) + "\n}\n"
    else:
        text = "[\n" + ",\n".join(map(_compact, rows)) + "\n]\n"
    (TABLES / name).write_text(text, encoding="utf-8")


def _compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def main(folder: Path) -> None:
    """Make the four tables."""
    loaded = {
        name: yaml.safe_load((folder / f"{name}.yaml").read_text(encoding="utf-8"))
        for name in ("gpus", "models", "config_schemas")
    }
    write("gpus.json", [*gpu_rows(loaded["gpus"]["gpus"]), *more_cards()])
    models = completed(model_rows(loaded["models"]["models"]) + more_rows())
    for one in models:
        names = [*one.get("aliases", ()), *MORE_ALIASES.get(one["name"], ())]
        one.update({"aliases": list(dict.fromkeys(names))} if names else {})
    bare = [{key: value for key, value in row.items() if key != "config"} for row in models]
    write("models.json", bare)
    write("model_configs.json", configs(models))
    write("defaults.json", default_rows(loaded["config_schemas"]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
