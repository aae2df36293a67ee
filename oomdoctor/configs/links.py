"""Which other files of a job a file names: ds_config.json, accelerate.yaml, a model's folder.

deepspeed: configs/zero2.json                         in a config or a script
accelerate launch --config_file acc.yaml train.py --config sft.yaml
model_name_or_path: ./checkpoints/ours                a folder with config.json
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from oomdoctor.configs.setting import normal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.configs.dialect import ConfigReading

FILES = frozenset(  # settings whose value is another config of the job
    (
        *("deepspeed", "deepspeed_config", "deepspeed_config_file", "ds_config", "ds_config_file"),
        *("config_file", "accelerate_config", "accelerate_config_file", "config", "config_path"),
        *("fsdp_config", "fsdp_config_file", "training_config", "train_config", "cfg", "cfg_path"),
        *("recipe", "config_name", "job_config_file", "ds_config_path", "hf_ds_config"),
    )
)
FOLDERS = frozenset(  # settings whose value may be a folder with a model
    (
        *("model_name_or_path", "model_name", "model", "model_path", "base_model", "model_dir"),
        *("pretrained_model_name_or_path", "checkpoint_dir", "adapter_name_or_path"),
        *("lora_model_dir", "tokenizer_name_or_path", "ref_model", "reward_model", "config_name"),
    )
)
IN_FOLDERS = ("config.json", "adapter_config.json")
SUFFIXES = (".yaml", ".yml", ".json", ".toml")
SCRIPTS = (".py", ".yaml", ".yml", ".toml", ".sh", ".bash", ".ipynb")
MOST = 20
_LONGEST = 400


def linked(readings: Sequence[ConfigReading]) -> tuple[str, ...]:
    """Return the paths of the files that are there and that readings of one file name."""
    found: dict[str, None] = {}
    for reading in readings:
        for name in _named(reading):
            path = _there(name, reading.path)
            if path is not None:
                found[path] = None
    own = {os.path.realpath(reading.path) for reading in readings if reading.path}
    return tuple(path for path in found if os.path.realpath(path) not in own)[:MOST]


def _named(reading: ConfigReading) -> Iterator[str]:
    """Go through what may be the names of other files, folders as the files in them."""
    for fact in reading.facts:
        if fact.key != "job.settings":
            continue
        for line in str(fact.value).split("\n"):
            key, _, value = line.partition(" = ")
            last = key.rpartition(".")[2]
            if last in FILES and value.lower().endswith(SUFFIXES):
                yield value
            if last in FOLDERS and value and "," not in value:
                yield from (f"{value.rstrip('/')}/{name}" for name in IN_FOLDERS)
    if any(fact.key in ("job.launcher", "job.script") for fact in reading.facts) or (
        reading.path or ""
    ).endswith((".sh", ".bash", ".sbatch", ".slurm")):
        yield from _words(reading)


def _words(reading: ConfigReading) -> Iterator[str]:
    """Go through the words of commands that are scripts or configs without a flag before them."""
    from oomdoctor.configs import command_line, shell_text
    from oomdoctor.configs.setting import Lines

    if (reading.path or "").endswith((".py", ".ipynb", *SUFFIXES)):
        return
    lines = Lines.of_text(reading.source_id, reading.text)
    variables = command_line.read(lines).variables
    for words in shell_text.commands(lines):
        for at, word in enumerate(words):
            said = shell_text.expand(word.text, variables)
            flag = words[at - 1].text if at else ""
            plain = not flag.startswith("-") or normal(flag.lstrip("-")) in FILES
            if plain and said.lower().endswith(SCRIPTS):
                yield said


def _there(name: str, path: str | None) -> str | None:
    """Return the file of a name, seen from the file that names it or from here."""
    if not name or len(name) > _LONGEST or "\0" in name:
        return None
    places = [os.path.expanduser(name)]
    if path and not os.path.isabs(name):
        places.insert(0, os.path.join(os.path.dirname(path), name))
    found = next((place for place in places if os.path.isfile(place)), None)
    return None if found is None else os.path.normpath(found)
