"""Commands inside manifests: containers of Kubernetes, services of a compose file.

image: vllm/vllm-openai:v0.8.5
args: ["--model", "Qwen/Qwen2.5-14B-Instruct", "--max-model-len", "32768"]

An image's own program stands before arguments that begin with a flag.
"""

from __future__ import annotations

import json
import re
import shlex
from functools import cache

PROGRAMS = (
    ("vllm", "vllm serve"),
    ("sglang", "python -m sglang.launch_server"),
    ("text-generation-inference", "text-generation-launcher"),
    ("llama.cpp", "llama-server"),
)
_KEYS = ("command", "args", "entrypoint")


@cache
def _line() -> re.Pattern[str]:
    return re.compile(r"^(?P<indent>[ -]*)(?P<key>image|command|args|entrypoint):\s*(?P<rest>.*)$")


def commands_in(text: str) -> str | None:
    """Return the commands of a manifest's containers, one for each line; None where it has none."""
    if "image:" not in text or not any(f"{key}:" in text for key in _KEYS):
        return None
    lines = text.splitlines()
    found: list[str] = []
    words: list[str] = []
    image = ""
    for at, line in enumerate(lines):
        match = _line().match(line)
        if match is None:
            continue
        if match["key"] == "image":
            found += _command(image, words)
            image, words = match["rest"].strip("\"' "), []
        else:
            words += _items(lines, at, len(match["indent"]), match["rest"].strip())
    found += _command(image, words)
    return "\n".join(found) or None


def _command(image: str, words: list[str]) -> list[str]:
    """Return the command of one container; a script in one word is its lines."""
    if not image or not words:
        return []
    script = next((word for word in words if " " in word.strip() and len(words) <= 3), None)
    if script is not None:
        words = [script] if not script.lstrip().startswith("-") else script.split()
    if words[0].startswith("-"):
        program = next((name for mark, name in PROGRAMS if mark in image), None)
        return [] if program is None else [f"{program} {_quoted(words)}"]
    return [words[0].strip()] if script is not None else [_quoted(words)]


def _quoted(words: list[str]) -> str:
    return " ".join(
        word if "=" in word and " " not in word else shlex.quote(word) for word in words
    )


def _items(lines: list[str], at: int, indent: int, rest: str) -> list[str]:
    """Return the words of a list: in brackets, over lines, or a text."""
    if rest.startswith("["):
        return _bracketed(" ".join([rest, *lines[at + 1 : at + 60]]))
    if rest[:1] in ("|", ">"):
        return [_block(lines, at, indent)]
    if rest:
        return shlex.split(rest.strip("\"'"), posix=True) if "'" not in rest[1:-1] else [rest]
    words = []
    for place in range(at + 1, len(lines)):
        line = lines[place]
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        depth = len(line) - len(line.lstrip())
        if not stripped.startswith("- ") or depth < indent:
            if depth <= indent:
                break
            continue
        word = stripped[2:].strip()
        words.append(_block(lines, place, depth) if word[:1] in ("|", ">") else word.strip("\"'"))
    return words


def _bracketed(text: str) -> list[str]:
    inner = text[: text.find("]") + 1]
    try:
        found = json.loads(inner)
    except ValueError:
        return [word.strip().strip("\"'") for word in inner.strip("[]").split(",") if word.strip()]
    return [str(word) for word in found]


def _block(lines: list[str], at: int, indent: int) -> str:
    kept = []
    for line in lines[at + 1 :]:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        kept.append(line.strip())
    return "\n".join(kept)
