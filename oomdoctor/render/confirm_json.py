"""The verdicts of `confirm` as JSON: sorted keys, bytes as int, schema version 1.

The schema is docs/confirm.schema.json.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oomdoctor import __version__
from oomdoctor.lab.protocol import encode

if TYPE_CHECKING:
    from oomdoctor.model.confirm import Confirmed

DIGITS = 6


def to_json(made: Confirmed) -> str:
    """Return a run, or its plan, as a JSON document."""
    return json.dumps(as_dict(made), indent=2, sort_keys=True, allow_nan=False) + "\n"


def as_dict(made: Confirmed) -> dict[str, object]:
    """Return a run as plain values."""
    return {
        "schema_version": 1,
        "oomdoctor": __version__,
        "backend": made.backend,
        "planned": [encode(one) for one in made.planned],
        "trials_at_most": made.trials_at_most,
        "failing_trials": made.failing,
        "confirmations": [encode(one) for one in made.confirmations],
        "ranking": {
            "before": {name: round(share, DIGITS) for name, share in made.before.items()},
            "after": {name: round(share, DIGITS) for name, share in made.after.items()},
        },
        "minimal": None if made.minimal is None else encode(made.minimal),
        "job": None if made.job is None else encode(made.job),
        "command": None if made.command is None else list(made.command.arguments),
        "card": made.card,
        "cap_bytes": made.cap_bytes,
        "host_cap_bytes": made.host_cap_bytes,
        "trials": [encode(one) for one in made.trials],
        "replayed": made.replayed,
        "seconds": round(made.seconds, DIGITS),
        "folder": made.folder,
        "stopped": made.stopped,
        "notes": list(made.notes),
    }
