"""Documents for tests of readers: one line of the log per line of the text."""

from __future__ import annotations

import re
from pathlib import Path

from oomdoctor.model.core import Artifact, Document, LogLine

RAW = Path(__file__).resolve().parents[3] / "fixtures" / "raw"
_RANK = re.compile(r"\[rank(\d+)\]: ?")


def document_of(text: str, *, name: str = "crash.log") -> Document:
    """Return `text` as a document; a prefix `[rankN]: ` becomes rank and stream."""
    lines = []
    for number, raw in enumerate(text.split("\n"), start=1):
        prefix = _RANK.match(raw)
        lines.append(
            LogLine(
                number=number,
                text=raw[prefix.end() :] if prefix else raw,
                raw=raw,
                rank=int(prefix[1]) if prefix else None,
                stream=f"rank{prefix[1]}" if prefix else "",
            )
        )
    return Document(artifact=Artifact(id=name, kind="log"), lines=tuple(lines))


def raw_text(*parts: str) -> str:
    """Return the text of a file below fixtures/raw."""
    return RAW.joinpath(*parts).read_text(encoding="utf-8")
