"""What a diagnosis advises, as plain values: fixes, measurements, experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomdoctor.experiments.proofs import Proof
    from oomdoctor.model.plan import Measurement, Patch, Prescription, Saving
    from oomdoctor.render.json import Json


def prescription(one: Prescription) -> Json:
    """Return a fix as plain values, its best patch first."""
    patches = [_patch(patch) for patch in one.patches]
    with_diff = [shown for shown, patch in zip(patches, one.patches, strict=True) if patch.diff]
    return {
        "fix": one.fix_id,
        "for": one.cause,
        "code": one.code,
        "title": one.title,
        "safety": one.safety.value,
        "patch": next(iter([*with_diff, *patches]), None),
        "patches": list(patches),
        "saves_bytes": _saving(one.saving),
        "saves_formula": one.saving.formula if one.saving else None,
        "fits_after": one.sufficient,
        "cost": {"quality": one.quality, "time_factor": one.time_factor},
        "cautions": list(one.cautions),
        "advice": one.advice,
    }


def _patch(patch: Patch) -> Json:
    return {
        "dialect": patch.dialect,
        "settings": {key: _plain(value) for key, value in patch.settings.items()},
        "file": patch.file,
        "diff": patch.diff,
    }


def _saving(saving: Saving | None) -> Json:
    if saving is None:
        return None
    return {
        "low": saving.low_bytes,
        "likely": saving.likely_bytes,
        "high": saving.high_bytes,
    }


def measurement(one: Measurement) -> Json:
    """Return what to measure next as plain values."""
    return {
        "fact": one.fact,
        "command": one.command,
        "seconds": one.seconds,
        "gain_bits": round(one.gain_bits, 4),
        "decides_between": list(one.decides_between),
        "meanings": list(one.meanings),
    }


def proof(one: Proof) -> Json:
    """Return an experiment as plain values."""
    return {
        "cause": one.cause,
        "title": one.title,
        "command": one.command,
        "needs_card": one.needs_card,
    }


def _plain(value: object) -> Json:
    """Return a setting as JSON; what JSON does not know becomes text."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
