"""What makes a trial the same as another one: a key that a journal and a folder go by."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from oomdoctor.lab.protocol import encode

if TYPE_CHECKING:
    from oomdoctor.model.trial import TrialSpec

_NOT_OF_THE_TRIAL = ("seconds",)  # how long one waits for a trial does not make it another one


def key_of(spec: TrialSpec) -> str:
    """Return the key of a trial: equal for equal specs, whatever order their mappings have."""
    return digest({k: v for k, v in encode(spec).items() if k not in _NOT_OF_THE_TRIAL})


def digest(values: object) -> str:
    """Return the SHA-256 of plain values as canonical JSON."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
