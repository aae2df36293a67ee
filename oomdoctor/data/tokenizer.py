"""A tokenizer from a folder on this machine: `tokenizer.json`, and what lies beside it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oomdoctor.data.layouts import BadRowError
from oomdoctor.data.template import CONFIG, renderer, template_text
from oomdoctor.errors import InputError, Location
from oomdoctor.extras import need
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.data.layouts import Render

FILE = "tokenizer.json"
LONGEST_LIMIT = 10_000_000
"""Tokenizers without a limit state a number such as 10**30."""


class Tokens(NamedTuple):
    """A loaded tokenizer: the library's object, its description, its folder's configuration."""

    machine: Any
    description: Mapping[str, Any]
    config: Mapping[str, Any]
    template: str | None
    path: str

    def render(self) -> Render | None:
        """Return the chat template ready to be filled in; InputError where it is none."""
        if self.template is None:
            return None
        try:
            return renderer(self.template, self.config)
        except BadRowError as error:
            raise InputError(
                str(error),
                location=Location(path=self.path),
                hint="--no-template counts without it",
            ) from error

    @property
    def limit(self) -> int | None:
        """Return the longest input that the folder states, if it states one."""
        held = self.config.get("model_max_length")
        known = isinstance(held, (int, float)) and 0 < held < LONGEST_LIMIT
        return int(held) if known and held is not None else None


def file_of(given: str) -> Path:
    """Return the path of `tokenizer.json`, given its folder or itself."""
    path = Path(given)
    found = path / FILE if path.is_dir() else path
    if found.is_file():
        return found
    slow = path.is_dir() and ((path / "tokenizer.model").exists() or (path / "vocab.txt").exists())
    raise InputError(
        f"no {FILE}" + (" (only the form that is read without it)" if slow else ""),
        location=Location(path=given),
        hint="give the folder of the model: AutoTokenizer.from_pretrained(NAME)"
        ".save_pretrained(DIR) writes it",
    )


@cache
def load(given: str) -> Tokens:
    """Load a tokenizer; the same one is loaded once in each process."""
    tokenizers = need("tokenizers", purpose="counting tokens", extra="data")
    path = file_of(given)
    try:
        text = path.read_text(encoding="utf-8")
        description = json.loads(text)
        machine = tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # the library raises plain Exception
        raise InputError(
            f"cannot be read as a tokenizer: {error}",
            location=Location(path=str(path)),
            hint=f"it has to be a {FILE} of the tokenizers library",
        ) from error
    machine.no_truncation()
    machine.no_padding()
    config = _config(path.parent)
    template = template_text(path.parent, config)
    return Tokens(machine, description, config, template, str(path))


def _config(folder: Path) -> Mapping[str, Any]:
    path = folder / CONFIG
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, dict) else {}
