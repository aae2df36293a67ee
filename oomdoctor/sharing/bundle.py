"""A bundle to share: redacted inputs, the diagnosis as text and JSON, and what was replaced.

README.txt  diagnosis.md  diagnosis.json  manifest.json  inputs/01-crash.log  inputs/02-train.yaml
"""

from __future__ import annotations

import json
import os
import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor import __version__
from oomdoctor.evidence.sniff import kind_of
from oomdoctor.pipeline import diagnose
from oomdoctor.redaction.redactor import Redactor
from oomdoctor.render.json import to_json
from oomdoctor.render.markdown import to_markdown
from oomdoctor.render.redact import redacted_by
from oomdoctor.sharing.inputs import shared_names, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from oomdoctor.model.plan import Diagnosis
    from oomdoctor.sharing.inputs import Inputs

SCHEMA_VERSION = 1
_README = """\
oomdoctor {version} wrote this bundle for sharing.

diagnosis.md, diagnosis.json  what oomdoctor says about the inputs
inputs/                       the inputs; placeholders such as USER1, HOST1-7 and SECRET1 stand for
                              what was taken out, the same one everywhere
manifest.json                 what was replaced (how often, never what), and what was left out

Look through it before you send it: a pattern finds what looks like a name or a secret, and a
sentence about your company looks like any other sentence.
"""


class Bundle:
    """What a bundle holds; `files` makes one after the other."""

    def __init__(
        self,
        inputs: Inputs,
        *,
        facts: Sequence[str] = (),
        rules: Sequence[str] = (),
        diagnose: Callable[[], Diagnosis] | None = None,
    ) -> None:
        """Learn the names of all inputs; `diagnose` makes their diagnosis in its own way."""
        self._diagnose = diagnose
        self.inputs = inputs
        self.redactor = Redactor()
        self._facts = facts
        self._rules = rules
        for item in inputs.items:
            self.redactor.learn(text_of(inputs.read(item)))
        self.redactor.learn("\n".join(_own_names(inputs)))
        named = shared_names(inputs.items)
        self._names = {
            item.path: self._shared(number, named[item.path])
            for number, item in enumerate(inputs.items, 1)
        }
        self.answer = ""

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield name and content of each file; the manifest comes last, when all is counted."""
        yield "README.txt", _README.format(version=__version__)
        listed = []
        for item in self.inputs.items:
            source = self.inputs.read(item)
            text = self.redactor.redact(text_of(source))
            name = self._names[item.path]
            listed.append(
                {
                    "name": name,
                    "kind": kind_of(source),
                    "given_as": "config" if item.is_config else "input",
                    "bytes": source.artifact.size_bytes,
                    "lines": text.count("\n"),
                    "notes": [self._renamed(note) for note in source.notes],
                }
            )
            yield name, text
        diagnosis = self._diagnosis()
        self.answer = diagnosis.answer
        yield "diagnosis.md", to_markdown(diagnosis)
        yield "diagnosis.json", to_json(diagnosis)
        yield "manifest.json", self._manifest(listed, diagnosis)

    def _diagnosis(self) -> Diagnosis:
        make = self._diagnose or self._of_the_inputs
        return redacted_by(self.redactor, make(), renamed=self._names)

    def _of_the_inputs(self) -> Diagnosis:
        items = self.inputs.items
        return diagnose(
            [item.path for item in items if not item.is_config],
            config=[item.path for item in items if item.is_config] or None,
            facts=self._facts,
            rules=self._rules,
        )

    def _manifest(self, listed: Sequence[object], diagnosis: Diagnosis) -> str:
        values = self.redactor.distinct
        held = {
            "schema_version": SCHEMA_VERSION,
            "oomdoctor_version": __version__,
            "python_version": platform.python_version(),
            "system": platform.system(),
            "answer": diagnosis.answer,
            "inputs": listed,
            "left_out": [self._renamed(note) for note in self.inputs.left_out],
            "replaced": {
                kind: {"places": places, "values": values.get(kind, 0)}
                for kind, places in self.redactor.counts.items()
            },
        }
        return json.dumps(held, indent=2, sort_keys=True) + "\n"

    def _renamed(self, note: str) -> str:
        for path, name in sorted(self._names.items(), key=lambda pair: -len(pair[0])):
            note = note.replace(path, name)
        return self.redactor.redact(note)

    def _shared(self, number: int, name: str) -> str:
        name = self.redactor.redact(name)
        return f"inputs/{number:02d}-{re.sub(r'[^A-Za-z0-9._-]', '_', name)}"


def _own_names(inputs: Inputs) -> Iterator[str]:
    """Yield texts that tell the names of this user and this machine, who may stand in a log."""
    for key in ("USER", "LOGNAME", "USERNAME", "HOSTNAME", "COMPUTERNAME"):
        yield f"{key}={os.environ.get(key, '')}"
    yield f"HOSTNAME={platform.node()}"
    yield f"{Path.home()}/"
    for item in inputs.items:
        yield os.path.realpath(item.given) if item.given == item.path else ""
