"""Which model a server's command names, where it is a GGUF file, a tag of Ollama, or a pipeline.

llama-server -m models/Qwen2.5-7B-Instruct-Q4_K_M.gguf -ngl 99      ollama run llama3.1:8b
FROM llama3.1:8b-instruct-q4_K_M                                     Llama(model_path="some.gguf")
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.memory.formula_pipeline import known
from oomdoctor.memory.gguf_names import file_name, tag_name
from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin
from oomdoctor.model.serving import DIFFUSERS, LLAMA_CPP, LOCAL, OLLAMA, SHARED, VLLM

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook

ENGINE, NAME, TYPE = "serve.engine", "model.name", "serve.file_type"
TASK = "job.task"
RUNS = (None, "serve", "generate", "evaluate")
SOURCE = "name of the file"
_STARTS = (
    r"\bllama-(?:server|cli|bench|run)\b|llama_cpp|koboldcpp|llamafile|\bollama\b|\B-ngl\b"
    r"|n_gpu_layers|PARAMETER num_"
)
_TRAINING = r"Trainer\b|\.backward\(|learning_rate|save_pretrained_gguf|convert_hf_to_gguf"
_TRAINS = ("optimizer.name", "train.optimizer", "train.lr", "train.grad_accum")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


def named(book: FactBook) -> FactBook:
    """Return the book with the model that a file or a tag means, before anything is derived."""
    if book.value(TASK) not in RUNS:
        return book
    stated = book.value(NAME)
    engine = book.value(ENGINE)
    text = str(book.value("job.text") or "")
    name = stated if isinstance(stated, str) else None
    if name is not None and known(name) is not None and _makes_images(book, text):
        return _with(book, {ENGINE: DIFFUSERS})
    runs = engine in LOCAL or _runs_locally(book, text)
    file = name if name is not None and _is_file(name) else (_file_in(text) if runs else None)
    if file is not None:
        found = file_name(file)
        engine = engine if engine in (LLAMA_CPP, OLLAMA) else LLAMA_CPP
    else:
        tag = name if engine == OLLAMA else (_tag_in(text) if runs else None)
        if tag is None:
            return book
        found, engine = tag_name(tag), OLLAMA
    facts = {ENGINE: str(engine), NAME: found.model, TASK: "serve"}
    if found.file_type is not None:
        facts[TYPE] = found.file_type
    return _with(book, facts)


def engine_of(book: FactBook) -> str | None:
    """Return the engine that a completed book serves with, None where it is no server."""
    task, engine = book.value("job.task"), book.value("serve.engine")
    if task not in (None, "serve", "generate", "evaluate"):
        return None
    if engine in (*SHARED, *LOCAL, DIFFUSERS) and (task is not None or _only_serves(book)):
        return str(engine)
    return VLLM if task == "serve" and engine is None else None


def _only_serves(book: FactBook) -> bool:
    return not any(book.value(key) is not None for key in _TRAINS)


def _is_file(name: str) -> bool:
    low = name.lower()
    return low.endswith(".gguf") or "-gguf" in low


def _file_in(text: str) -> str | None:
    for found in _compiled(r"[^\s\"'=,()]+\.gguf\b").finditer(text):
        if "mmproj" not in found[0].lower():
            return found[0]
    hub = _compiled(r"(?<![\w-])(?:-hf|-hfr|--hf-repo)[ =]+[\"']?([\w./:-]+)").search(text)
    return None if hub is None else hub[1]


def _tag_in(text: str) -> str | None:
    found = _compiled(r"\bollama\s+(?:run|pull)\s+([\w./:-]+)").search(text)
    if found is None and "PARAMETER num_" in text:
        found = _compiled(r"^FROM\s+([\w./:-]+)").search(text)
    return None if found is None else found[1]


def _runs_locally(book: FactBook, text: str) -> bool:
    """Say whether a text starts llama.cpp or Ollama, and does not train what is then exported."""
    if book.value("job.framework") is not None or _compiled(_TRAINING).search(text):
        return False
    return _compiled(_STARTS).search(text) is not None


def _makes_images(book: FactBook, text: str) -> bool:
    """Say whether a pipeline runs: by its engine, its task, or a script that trains nothing."""
    if book.value(ENGINE) == DIFFUSERS or book.value(TASK) in ("serve", "generate"):
        return True
    calls = str(book.value("job.calls") or "")
    trains = ".backward" in text or "optimizer" in text.lower()
    return "Pipeline" in calls and not trains


def _with(book: FactBook, values: dict[str, str]) -> FactBook:
    facts = [
        Fact(key=key, value=value, origin=Origin.STATED, source=SOURCE)
        for key, value in values.items()
        if key != TYPE or book.value(TYPE) is None
    ]
    return book.without(fact.key for fact in facts).add(facts)
