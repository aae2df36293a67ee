"""The case that is put to the test: what a diagnosis (its JSON) says, or a cause by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from oomdoctor.errors import InputError, Location
from oomdoctor.experiments.plan import Suspect
from oomdoctor.model.enums import Safety
from oomdoctor.model.plan import Patch, Prescription, Saving
from oomdoctor.model.trial import OomIdentity
from oomdoctor.record import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Json: TypeAlias = Any  # what json.loads returns

_VERSION = 1
_HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Suspects with their probabilities, the fixes that were prescribed, and what failed.

    `wanted` tells what ran out: a run that lacks the other kind of memory shows another failure.
    """

    suspects: tuple[Suspect, ...]
    fixes: Mapping[str, Prescription] = field(default_factory=dict)
    wanted: OomIdentity | None = None

    @property
    def probabilities(self) -> dict[str, float]:
        """Return the probabilities of the causes as they were read."""
        return {one.cause: one.probability for one in self.suspects}


def case_of_cause(cause: str) -> Case:
    """Return the case of somebody who suspects one cause."""
    return Case(suspects=(Suspect(cause=cause, probability=0.5),))


def case_of_diagnosis(data: Json, path: str) -> Case:
    """Return the case of a diagnosis; InputError where the document is none."""
    place = Location(path=path)
    if not isinstance(data, dict) or "causes" not in data:
        raise InputError(
            "this is no diagnosis",
            location=place,
            hint="write one with: oomdoctor diagnose crash.log -f json -o diagnosis.json",
        )
    if data.get("schema_version") != _VERSION:
        raise InputError(
            f"schema_version is {data.get('schema_version')!r}, expected 1", location=place
        )
    suspects = tuple(_suspects(data["causes"], place))
    if not suspects:
        raise InputError(
            "the diagnosis names no cause, so there is nothing to prove",
            location=place,
            hint="name one: oomdoctor confirm CAUSE (oomdoctor explain lists them)",
        )
    fixes = {fix.fix_id: fix for fix in _fixes(data.get("prescriptions"))}
    return Case(suspects=suspects, fixes=fixes, wanted=_wanted(data))


def _suspects(causes: Json, place: Location) -> Iterable[Suspect]:
    if not isinstance(causes, list):
        raise InputError("causes: expected a list", location=place)
    for number, one in enumerate(causes):
        share = one.get("probability") if isinstance(one, dict) else None
        if not isinstance(share, (int, float)) or not isinstance(one.get("cause"), str):
            raise InputError(
                f"causes[{number}]: expected an object with cause and probability", location=place
            )
        code = one.get("code")
        yield Suspect(
            cause=one["cause"],
            probability=float(share),
            code=code if isinstance(code, str) else None,
        )


def _fixes(listed: Json) -> Iterable[Prescription]:
    """Yield what is well formed of the prescriptions; the rest proves nothing anyway."""
    for one in listed if isinstance(listed, list) else ():
        if not isinstance(one, dict) or not isinstance(one.get("fix"), str):
            continue
        cost = one.get("cost")
        factor = cost.get("time_factor") if isinstance(cost, dict) else None
        known = [safety for safety in Safety if safety.value == one.get("safety")]
        yield Prescription(
            fix_id=one["fix"],
            cause=str(one.get("for", "")),
            code=str(one.get("code", "")),
            title=str(one.get("title", "")),
            safety=known[0] if known else Safety.NEEDS_CODE,
            patches=tuple(_patches(one.get("patches"))),
            saving=_saving(one.get("saves_bytes")),
            time_factor=float(factor) if isinstance(factor, (int, float)) else 1.0,
        )


def _patches(listed: Json) -> Iterable[Patch]:
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and isinstance(one.get("settings"), dict):
            file = one.get("file")
            yield Patch(
                dialect=str(one.get("dialect", "")),
                settings=one["settings"],
                file=file if isinstance(file, str) else None,
            )


def _saving(found: Json) -> Saving | None:
    names = ("low", "likely", "high")
    if not isinstance(found, dict) or not all(isinstance(found.get(n), int) for n in names):
        return None
    return Saving(low_bytes=found["low"], likely_bytes=found["likely"], high_bytes=found["high"])


def _wanted(data: dict[str, Json]) -> OomIdentity | None:
    """Return what ran out; the place in the code is another one in a run of our own."""
    resource = data.get("resource")
    if resource not in ("gpu", "cap", _HOST):
        return None
    return OomIdentity(backend=_HOST if resource == _HOST else "cuda", exception="OutOfMemoryError")
