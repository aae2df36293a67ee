"""Patches of fixes are made against a sample config of each dialect and read again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.configs import change
from oomdoctor.configs.dialect import ConfigReading
from oomdoctor.errors import OomdoctorError, RuleError
from oomdoctor.rules.nodes import compose, data_of
from oomdoctor.rules.settings import KINDS, expression_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from oomdoctor.rules.shape import Fix

# Dialects whose settings stand in a file of keys and values; the others are code or command lines.
YAML_SAMPLE = "# kept\nseed: 17  # as it was\n"
JSON_SAMPLE = '{\n  "seed": 17\n}\n'
SAMPLES = {
    "hf_trainer": YAML_SAMPLE,
    "trl": YAML_SAMPLE,
    "axolotl": YAML_SAMPLE,
    "llamafactory": YAML_SAMPLE,
    "accelerate": YAML_SAMPLE,
    "fsdp": YAML_SAMPLE,
    "torchtune": YAML_SAMPLE,
    "deepspeed": JSON_SAMPLE,
}
SEED = 17
SAMPLE_VALUE = 4  # stands for what an expression would give
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? ")


def patch_faults(fix: Fix) -> Iterator[str]:
    """Yield what is wrong with the patches of a fix: no strings, no diff, other values after."""
    for dialect, written in fix.patch.items():
        try:
            settings = _sampled(written)
        except OomdoctorError as error:
            yield f"fix {fix.id}: {dialect}: {error.message}"
            continue
        if dialect == "env":
            for key, value in settings.items():
                if not isinstance(value, str):
                    yield f"fix {fix.id}: env {key} is {value!r}; quote it, it must be a text"
        elif dialect in SAMPLES:
            for message in _reread_faults(dialect, settings):
                yield f"fix {fix.id}: {dialect}: {message}"


def _sampled(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the settings with a sample value for each expression; RuleError for a wrong one."""
    done: dict[str, object] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            done[key] = _sampled(value)
            continue
        wrong = change.fault(value)
        if wrong is not None:
            raise RuleError(f"{key}: {wrong}")
        expression = expression_of(value)
        if expression is not None and expression.kind not in KINDS:
            message = f"{key}: an expression of kind {expression.kind.value} is no setting"
            raise RuleError(message)
        done[key] = value if expression is None else SAMPLE_VALUE
    return done


def _reread_faults(dialect: str, settings: Mapping[str, object]) -> Iterator[str]:
    try:
        from oomdoctor.configs.patch import patch
    except ImportError:
        return  # patches are no part of this build: nothing to read again
    text = _with_ordered(SAMPLES[dialect], settings)
    reading = ConfigReading(
        source_id="sample", dialect=dialect, facts=(), text=text, path="sample.yaml"
    )
    diffs = [made.diff for made in patch((reading,), {dialect: settings}) if made.diff]
    if not diffs:
        yield "the patch makes no diff of a sample config"
        return
    after = values_of(applied(diffs[0], text))
    for path, value in flattened(settings):
        name = change.new_name(value)
        if not change.sets(value) and path in after:
            yield f"{path} is still there after the patch"
        elif name is not None and after.get(change.sibling(path, name)) != SAMPLE_VALUE:
            yield f"{path} is not called {name} after the patch"
        elif change.sets(value) and after.get(path) != value:
            yield f"{path} is {after.get(path)!r} after the patch, expected {value!r}"
    if after.get("seed") != SEED and "seed" not in settings:
        yield "the patch changes a setting that it does not name"


def _with_ordered(text: str, settings: Mapping[str, object]) -> str:
    """Put keys that a patch takes out or renames into a sample config."""
    from oomdoctor.configs import json_edit, yaml_edit

    edit = json_edit.edit if text.startswith("{") else yaml_edit.edit
    ordered = [path for path, value in flattened(settings) if not change.sets(value)]
    return edit(text, dict.fromkeys(ordered, SAMPLE_VALUE))


def applied(diff: str, text: str) -> str:
    """Apply a unified diff of one file to its text."""
    old = text.splitlines(keepends=True)
    new: list[str] = []
    at = 0
    for line in diff.splitlines(keepends=True):
        hunk = _HUNK.match(line)
        if hunk:
            start = int(hunk[1]) - (0 if hunk[2] == "0" else 1)
            new += old[at:start]
            at = start
        elif line.startswith(("---", "+++", "\\")):
            continue
        elif line.startswith("+"):
            new.append(line[1:])
        elif line.startswith("-"):
            at += 1
        else:
            new.append(old[at])
            at += 1
    return "".join([*new, *old[at:]])


def values_of(text: str) -> dict[str, object]:
    """Return the settings of a YAML or JSON text by dotted path."""
    node, problems = compose(text, path="sample")
    if node is None or problems:
        return {}
    return dict(flattened(data_of(node)))


def flattened(data: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield (dotted path, value) of all settings of nested mappings."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from flattened(value, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, data
