"""What a process told of its job: the model, the framework's arguments, the batch under way.

processes/4711-1378510/arguments.json  {"framework": "transformers", "arguments": {...},
 "model": {"class": "LlamaForCausalLM", "parameters": 1235814400, "config": {...}}}
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from oomdoctor.configs.reader import read_config
from oomdoctor.errors import OomdoctorError
from oomdoctor.facts.registry import specs
from oomdoctor.model.core import Quote
from oomdoctor.recorder.places import PROCESSES, content_of, parsed
from oomdoctor.recorder.quoting import seen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from oomdoctor.model.core import Fact
    from oomdoctor.recorder.bundle import Run
    from oomdoctor.recorder.quoting import Quoting
    from oomdoctor.recorder.told import OutOfMemory, Process

ARGUMENTS_FILE = "arguments.json"
_SPOKEN_OF = ("train.", "eval.", "optim.", "model.", "data.", "peft.", "precision.", "attention.")
_LONGEST = 200
_WHOLE = 0.999  # of the parameters, from which on all are trained: biases may be frozen


def job_facts(run: Run, process: Process, quoting: Quoting) -> Iterator[Fact]:
    """Yield what the process itself knows of its job."""
    told = _Arguments.read(run.folder / PROCESSES / process.key / ARGUMENTS_FILE)
    if told is not None:
        yield from told.facts()
    for oom in process.ooms[-1:]:
        yield from batch_facts(process, oom, quoting)


def batch_facts(process: Process, oom: OutOfMemory, quoting: Quoting) -> Iterator[Fact]:
    """Yield the rows and tokens of the batch at which memory ran out, beside those before it."""
    rows, longest, tokens = oom.rows, oom.longest, oom.tokens

    def told(key: str, value: float, name: str) -> Fact:
        quote = quoting.event(process.key, oom.line, name)
        return seen(key, value, quote, source="the batch that was under way")

    if rows:
        yield told("train.micro_batch", rows, "rows")
    if longest:
        yield told("train.longest_row", longest, "longest")
        yield told("train.seq_len", longest, "longest")
    if tokens:
        yield told("data.tokens_seen", tokens, "tokens")
    before = [one for one in process.steps if one.longest and one.number <= (oom.step or 0)]
    if longest and before:
        best = max(before, key=lambda one: one.longest or 0)
        quotes = (
            quoting.event(process.key, oom.line, "longest"),
            quoting.event(process.key, best.line, "longest"),
        )
        yield seen("run.longest_rise", longest / (best.longest or 1), *quotes)


class _Arguments:
    """One arguments.json, with the lines that its values stand in."""

    def __init__(self, path: Path, text: str, told: Mapping[str, Any]) -> None:
        self._path = path
        self._lines = text.split("\n")
        self._told = told

    @classmethod
    def read(cls, path: Path) -> _Arguments | None:
        """Return what a file holds; None without one that can be read."""
        try:
            text = content_of(path).decode(errors="replace")
            told = parsed(text)
        except ValueError:
            return None
        return cls(path, text, told) if isinstance(told, dict) else None

    def facts(self) -> Iterator[Fact]:
        """Yield the facts of the arguments and of the model."""
        found: dict[str, Fact] = {}
        for name in ("arguments", "config"):
            for fact in self._of_config(name):
                found.setdefault(fact.key, fact)
        for fact in self._of_model():
            found[fact.key] = fact
        yield from found.values()

    def _of_config(self, name: str) -> Iterator[Fact]:
        owner = self._told if name == "arguments" else self._told.get("model") or {}
        data = owner.get(name)
        if not isinstance(data, dict) or not data:
            return
        try:
            readings = read_config(json.dumps(data, indent=1), name=f"{name}.json")
        except OomdoctorError:
            return
        for fact in (fact for reading in readings for fact in reading.facts):
            if fact.key.startswith(_SPOKEN_OF):
                texts = [one.text.strip() for one in fact.quotes[:1]]
                yield seen(fact.key, fact.value, *map(self._quote, texts))

    def _of_model(self) -> Iterator[Fact]:
        model = self._told.get("model")
        if not isinstance(model, dict):
            return
        total, trained = model.get("parameters"), model.get("trainable")
        if isinstance(total, int) and total:
            yield seen("model.params", total, self._quote('"parameters"'))
            if isinstance(trained, int):
                quote = self._quote('"trainable"')
                yield seen("train.trainable_params", trained, quote)
                yield seen("train.full_finetune", trained >= _WHOLE * total, quote)
        checkpointing = model.get("gradient_checkpointing")
        if isinstance(checkpointing, bool) and model.get("config"):
            quote = self._quote('"gradient_checkpointing"')
            yield seen("train.grad_checkpointing", checkpointing, quote)
        yield from self._dtypes(model.get("dtypes"))

    def _dtypes(self, dtypes: object) -> Iterator[Fact]:
        """Yield the dtype of the weights, where they have one."""
        known = specs()["train.base_dtype"].choices
        if isinstance(dtypes, dict) and len(dtypes) == 1:
            name = _SHORT.get(str(*dtypes).removeprefix("torch."))
            if name is not None and name in known:
                quote = self._quote(f'"{next(iter(dtypes))}"')
                yield seen("train.base_dtype", name, quote)
                yield seen("train.param_dtype", name, quote)

    def _quote(self, text: str) -> Quote:
        """Quote the first line of the file that has a text."""
        for number, line in enumerate(self._lines, start=1):
            if text and text.rstrip(",") in line:
                return Quote(artifact=str(self._path), line=number, text=line.strip()[:_LONGEST])
        return Quote(artifact=str(self._path), line=1, text=self._lines[0][:_LONGEST])


_SHORT = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
