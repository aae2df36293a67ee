"""Take names of people and machines, addresses and secrets out of a diagnosis before it is shared.

The same name gets the same placeholder everywhere (USER1, HOST1, ADDRESS1, SECRET1), so that a
reader still sees what belongs together. A name that one text tells is taken out of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from oomdoctor.evidence.source import Source
    from oomdoctor.model.plan import Diagnosis
    from oomdoctor.redaction.redactor import Redactor
    from oomdoctor.render.page import Page

T = TypeVar("T")

_BETWEEN = "\n\x1e\n"
"""Stands between texts that are redacted in one go; a record separator joins no words."""


class Names:
    """The names that inputs tell: learned while they are read, and then taken out of the answer.

    A name may stand in a line that nothing quotes. What a process of its own read is read again
    here: the whole of it, or of a large file its head and tail.
    """

    def __init__(self) -> None:
        """Start without any name."""
        from oomdoctor.redaction.redactor import Redactor

        self._redactor = Redactor()
        self._heard: set[str] = set()

    @contextmanager
    def learned(self) -> Iterator[None]:
        """Learn the names of all inputs that are read meanwhile."""
        from oomdoctor.evidence.hearing import heard_by

        with heard_by(self._hear):
            yield

    def out_of(self, diagnosis: Diagnosis) -> Diagnosis:
        """Return the diagnosis with placeholders for the names."""
        from oomdoctor.errors import InputError
        from oomdoctor.evidence.ends import read_ends

        for artifact in diagnosis.artifacts:
            path = artifact.path
            if artifact.id not in self._heard and path is not None and Path(path).is_file():
                with suppress(InputError, OSError):
                    self._redactor.learn(read_ends(path).text)
        return redacted_by(self._redactor, diagnosis)

    def out_of_page(self, page: Page) -> Page:
        """Return the page with placeholders for the names, those that it tells itself as well.

        Before it is written: a mark-up that escapes characters hides names and secrets.
        """
        return redacted_by(self._redactor, page)

    def _hear(self, source: Source) -> None:
        if source.artifact.id not in self._heard:
            self._heard.add(source.artifact.id)
            self._redactor.learn(source.text)


def redacted_by(redactor: Redactor, shown: T, *, renamed: Mapping[str, str] | None = None) -> T:
    """Return the same diagnosis or page with the placeholders of a redactor that read its inputs.

    `renamed` says how paths of inputs are to be written.
    """
    found: dict[str, None] = {}
    if renamed:
        paths = sorted(renamed.items(), key=lambda pair: -len(pair[0]))
        shown = _walk(shown, lambda text: _in_other_words(text, paths))
    _walk(shown, lambda text: found.setdefault(text) or text)
    joined = _BETWEEN.join(text.replace("\x1e", "") for text in found)
    redactor.learn(joined)
    parts = redactor.redact(joined).split(_BETWEEN)
    without = dict(zip(found, parts, strict=True))
    return _walk(shown, lambda text: without[text])


def _in_other_words(text: str, paths: Sequence[tuple[str, str]]) -> str:
    for path, name in paths:
        if path in text:
            text = text.replace(path, name)
    return text


def _walk(value: T, change: Callable[[str], str]) -> T:
    """Return a copy of a value of the model in which every text is changed."""
    if isinstance(value, Enum) or value is None:
        return value
    if isinstance(value, str):
        return cast("T", change(value))
    if isinstance(value, (tuple, list)):
        parts = [_walk(part, change) for part in value]
        make = getattr(value, "_make", type(value))  # a named tuple takes its parts one by one
        return cast("T", make(parts))
    if isinstance(value, Mapping):
        return cast(
            "T",
            {
                _walk(key, change) if isinstance(key, str) else key: _walk(part, change)
                for key, part in value.items()
            },
        )
    if is_dataclass(value) and not isinstance(value, type):
        changed = {one.name: _walk(getattr(value, one.name), change) for one in fields(value)}
        return cast("T", replace(value, **changed))
    return value
