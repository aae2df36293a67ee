"""What kind of text an input is, told by its content: log, config, table, script, ...

One input may hold several kinds (a pasted issue: traceback, `nvidia-smi`, a command line);
`kinds_of` lists all of them, `kind_of` names the one that the input as a whole is.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomdoctor.evidence.source import Source

_CONFIG_SUFFIXES = (".yaml", ".yml", ".json", ".jsonc", ".toml", ".ini", ".cfg", ".conf")
_HEAD_LINES = 4000
_HEAD_CHARS = 512 * 1024
_SHARED_LINES = 1000
"""Of so many lines the share is taken that look like code or like settings."""
_LOG_WORDS = (
    "traceback (most recent call last)",
    "out of memory",
    "outofmemoryerror",
    "runtimeerror:",
    "out_of_memory",
    "alloc_failed",
    "oom_kill",
    "oom-kill",
    "killed by signal",
    "exits with return code",
)
_TABLE_WORDS = (
    "nvidia-smi ",
    "mib /",
    "rocm system management interface",
    "<nvidia_smi_log",
    "gpu memory |",
    "used_gpu_memory",
    "memory.used",
    "npu-smi",
    "amd-smi",
)
_MESSAGE_KEYS = ('"log":', '"message":', '"msg":', '"event":')
_RECORD_KEYS = ('"stream":', '"time', '"ts":', '"level', '"severity":', '"@timestamp":')
_MODEL_KEYS = ('"hidden_size"', '"model_type"', '"num_hidden_layers"', '"n_embd"', '"d_model"')


def kind_of(source: Source) -> str:
    """Name what the input is as a whole; `log` where nothing else is certain."""
    kinds = kinds_of(source)
    return kinds[0] if kinds else "log"


def kinds_of(source: Source) -> tuple[str, ...]:
    """List the kinds of text that the input holds, the one that describes it best first."""
    lines = _head(source)
    text = "\n".join(lines)
    lowered = text.lower()
    name = source.artifact.id.lower()
    found = [
        kind
        for kind, holds in (
            ("memory-summary", "memory summary, device id" in lowered),
            ("process-table", any(word in lowered for word in _TABLE_WORDS)),
            ("packages", _is_package_list(lines)),
        )
        if holds
    ]
    if any(word in lowered for word in _LOG_WORDS) or _frame_line().search(text):
        return ("log", *found)
    closing = next((line for _, line in reversed(source.lines) if line.strip()), "")
    whole = None if "packages" in found else _document(text, name, closing.rstrip()[-1:])
    return tuple(found) if whole is None else (whole, *found)


def _head(source: Source) -> list[str]:
    """Return the first lines: enough to tell a kind, and few enough however long they are."""
    lines: list[str] = []
    room = _HEAD_CHARS
    for _, line in source.lines[:_HEAD_LINES]:
        lines.append(line)
        room -= len(line)
        if room < 0:
            break
    return lines


def _document(text: str, name: str, last: str) -> str | None:
    """Recognise a text that is one document of a format: JSON, YAML, TOML, Python, shell."""
    stripped = text.lstrip()
    if stripped.startswith(("{", "[")) and last in ("}", "]"):
        return _json_kind(stripped, name)
    tests = (
        ("script", stripped.startswith("#!") and "python" in stripped.partition("\n")[0]),
        ("shell", stripped.startswith("#!")),
        ("config", name.endswith(_CONFIG_SUFFIXES)),
        ("script", name.endswith((".py", ".ipynb"))),
        ("shell", name.endswith((".sh", ".bash", ".slurm", ".sbatch"))),
        ("script", _share(stripped, _python_line()) >= 0.25),
        ("shell", _shell_line().search(stripped) is not None),
        ("config", _share(stripped, _setting_line()) >= 0.8 and _keys_differ(stripped)),
    )
    return next((kind for kind, holds in tests if holds and stripped), None)


def _json_kind(text: str, name: str) -> str | None:
    if _is_record_log(text):
        return None
    if '"device_traces"' in text[:4096]:
        return "snapshot"
    if sum(key in text for key in _MODEL_KEYS) >= 2:
        return "model-config"
    if name.endswith(".ipynb") or '"nbformat"' in text:
        return "script"
    is_object = re.match(r'[{\[]\s*(?:"|\}|\]|\{|\d)|\{\s*(?://|/\*|#)', text)
    if name.endswith((".json", ".jsonc")) or (is_object and not text.startswith("[20")):
        return "config"
    return None


def _is_record_log(text: str) -> bool:
    """Say whether every line is a record of its own with a message: docker, structured loggers."""
    lines = [line for line in text.split("\n", 8)[:8] if line.strip()]
    return all(
        line.startswith("{") and any(key in line for key in _MESSAGE_KEYS) for line in lines
    ) and any(key in text for key in _RECORD_KEYS)


def _keys_differ(text: str) -> bool:
    """Say whether lines that look like settings set different things: `3: text` is a prefix."""
    keys = [found[1] for line in text.split("\n") if (found := _setting_key().match(line))]
    return len(keys) < 3 or 3 * len(set(keys)) > len(keys)


def _is_package_list(lines: list[str]) -> bool:
    hits = sum(1 for line in lines if _package_line().match(line))
    return hits >= 3 and hits >= 0.3 * sum(1 for line in lines if line.strip())


def _share(text: str, pattern: re.Pattern[str]) -> float:
    """Return the share of the lines that say something which `pattern` matches."""
    lines = [line for line in text.split("\n", _SHARED_LINES)[:_SHARED_LINES] if line.strip()]
    hits = sum(1 for line in lines if pattern.match(line))
    return hits / len(lines) if lines and hits >= 2 else 0.0


@cache
def _package_line() -> re.Pattern[str]:
    return re.compile(
        r"\s*(?:\[(?:pip3|conda)\]\s+)?[A-Za-z][\w.\-]*(?:==|\s@\s|\s{1,60})v?\d+\.\d+\S*"
        r"(?:\s+\S+){0,3}\s*$"
    )


@cache
def _python_line() -> re.Pattern[str]:
    return re.compile(
        r"\s*(?:import [\w.]+|from [\w.]+ import |def \w+\(|class \w+[(:]|@\w+|return\b"
        r"|(?:if|for|while|with|elif) .*:\s*$|[\w.\[\]]+ = [\w.]+\()"
    )


@cache
def _frame_line() -> re.Pattern[str]:
    return re.compile(r'^[ \t]*File "[^"\n]{1,400}", line \d+, in ', re.MULTILINE)


@cache
def _shell_line() -> re.Pattern[str]:
    return re.compile(
        r"^[ \t]*(?:#SBATCH |export \w+=|(?:\w+=\S+ +)*(?:torchrun|deepspeed|accelerate launch"
        r"|python3?|srun|vllm serve|llamafactory-cli|axolotl|tune run) +\S)",
        re.MULTILINE,
    )


@cache
def _setting_line() -> re.Pattern[str]:
    return re.compile(r"\s*(?:- .*|[\w.\-/]+\s*[:=](?:\s.*)?|[\w.\-]+\s*=\s*\S.*|#.*|\[[\w.]+\])$")


@cache
def _setting_key() -> re.Pattern[str]:
    return re.compile(r"([\w.\-/]+)\s*[:=](?:\s|$)")
