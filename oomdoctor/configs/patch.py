"""Turns settings of a fix into diffs of the files that were given, or into settings to make.

{"axolotl": {"gradient_checkpointing": True}, "env": {"PYTORCH_CUDA_ALLOC_CONF": "..."}}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from oomdoctor.configs import change, segments
from oomdoctor.configs.difference import flattened, same, unified
from oomdoctor.configs.reader import SUFFIXES, suffix_of
from oomdoctor.configs.setting import Lines, SyntaxFault, normal
from oomdoctor.model.plan import Patch
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from oomdoctor.configs.dialect import ConfigReading

KIN = {  # dialects whose files take the settings of the key as well
    "hf_trainer": ("trl", "llamafactory", "unsloth"),
    "python": (),
}
FRAMEWORKS = {"transformers": "hf_trainer"}
SCRIPTS = ("python", "unsloth", "diffusers", "nanogpt", "torchtitan")
ALWAYS = ("env", "cli")
NO_FLAGS = ("deepspeed", "fsdp")  # dialects of files alone


class Editor(Protocol):
    """What a module offers that edits a syntax."""

    def edit(self, text: str, wanted: Mapping[str, object], /) -> str:
        """Return the text with the wanted settings."""

    def held(self, text: str, key: str, /) -> tuple[bool, object]:
        """Say whether a text has a key, and its value."""

    def whole(self, text: str, /) -> object:
        """Return all settings of a text, as Python has them."""


class Target(NamedTuple):
    """A stretch of a file that can be edited: its syntax, its rows, its text.

    `whole` says that it is the whole file, so that the dialect of the reading is its dialect.
    """

    kind: str
    first: int
    last: int
    text: str
    whole: bool = True


def patch(
    readings: Sequence[ConfigReading], settings_by_dialect: Mapping[str, Mapping[str, object]]
) -> tuple[Patch, ...]:
    """Return one patch per dialect: a unified diff of the file that takes it, else the settings.

    Settings that a file already has give no patch. Once a file takes a framework's settings, the
    other frameworks' are left out.
    """
    made: dict[str, Patch] = {}
    cut: dict[tuple[str, str | None], tuple[Target, ...]] = {}
    for reading in readings:
        at = (reading.text, reading.path)
        cut[at] = cut[at] if at in cut else tuple(_targets(reading))
    satisfied: set[str] = set()
    for dialect, wanted in settings_by_dialect.items():
        flat = flattened(wanted)
        for reading, written_for in _homes(readings, dialect, settings_by_dialect, flat):
            targets = cut[reading.text, reading.path]
            outcome = _edited(reading, targets, written_for, (dialect, flat))
            if outcome is None:
                continue
            satisfied.add(dialect)
            if outcome != reading.text:
                made[dialect] = _diff(reading, dialect, wanted, outcome)
            break
    frameworks = _frameworks(readings)
    taken = {dialect for dialect in satisfied if dialect not in ALWAYS}
    for dialect, wanted in settings_by_dialect.items():
        if dialect in satisfied or (dialect not in ALWAYS and taken):
            continue
        if dialect in ALWAYS or not frameworks or dialect in frameworks:
            made[dialect] = Patch(dialect=dialect, settings=dict(wanted))
    return _distinct(made[dialect] for dialect in settings_by_dialect if dialect in made)


def _distinct(made: Iterable[Patch]) -> tuple[Patch, ...]:
    """Leave out a diff that another spelling makes just as well: a script and what starts it."""
    kept: dict[object, Patch] = {}
    for one in made:
        kept.setdefault((one.file, one.diff) if one.diff else one.dialect, one)
    return tuple(kept.values())


def are_held(
    readings: Sequence[ConfigReading], settings_by_dialect: Mapping[str, Mapping[str, object]]
) -> bool:
    """Say whether a file has a dialect's settings already; one that takes none has none."""
    return any(
        edited([reading], dialect, wanted) == reading.text
        for reading in readings
        for dialect, wanted in settings_by_dialect.items()
    )


def edited(
    readings: Sequence[ConfigReading], dialect: str, settings: Mapping[str, object]
) -> str | None:
    """Return the whole text of one file after settings of a dialect; None where it takes none.

    `readings` are those of the one file.
    """
    wanted = (dialect, flattened(settings))
    for reading, written_for in _homes(readings, dialect, {}, wanted[1]):
        outcome = _edited(reading, tuple(_targets(reading)), written_for, wanted)
        if outcome is not None:
            return outcome
    return None


def _diff(reading: ConfigReading, dialect: str, wanted: Mapping[str, object], after: str) -> Patch:
    name = reading.path or reading.source_id
    diff = unified(reading.text, after, name)
    return Patch(dialect=dialect, settings=dict(wanted), file=name, diff=diff)


def _frameworks(readings: Sequence[ConfigReading]) -> set[str]:
    """Name the dialects that the readings' framework is spelled in."""
    names: set[str] = set()
    for reading in readings:
        for fact in reading.facts:
            if fact.key == "job.framework":
                name = str(fact.value)
                names.add(FRAMEWORKS.get(name, name))
        if reading.dialect not in ("notes", "shell", "hub_config", "adapter_config"):
            names.add(reading.dialect)
    if names & {"trl", "llamafactory", "unsloth"}:
        names.add("hf_trainer")
    return names


def _homes(
    readings: Sequence[ConfigReading],
    dialect: str,
    others: Mapping[str, object],
    wanted: Mapping[str, object],
) -> Iterator[tuple[ConfigReading, str]]:
    """Go through the readings that can take a dialect's settings, the best place first.

    A key is changed where it stands; a new one goes into the job's config rather than into the
    command that starts it.
    """
    readings = list({(r.text, r.path, r.dialect): r for r in readings}.values())
    if dialect in ALWAYS:
        yield from ((reading, reading.dialect) for reading in readings)
        return
    own = [(r, r.dialect) for r in readings if r.dialect == dialect]
    scripts = [(r, dialect) for r in readings if r.dialect in SCRIPTS and r.dialect != dialect]
    kin = [
        (r, r.dialect)
        for r in readings
        if r.dialect in KIN.get(dialect, ()) and r.dialect not in others
    ]
    yield from sorted(
        (*own, *scripts, *kin), key=lambda home: (not _holds(home[0], wanted), _is_command(home[0]))
    )


def _holds(reading: ConfigReading, wanted: Mapping[str, object]) -> bool:
    """Say whether any of the wanted keys is set in a reading."""
    listed = next((str(f.value) for f in reading.facts if f.key == "job.settings"), "")
    held = {line.partition(" = ")[0] for line in listed.split("\n")}
    last = {key.rpartition(".")[2] for key in held}
    names = {normal(key) for key in wanted}
    return not names.isdisjoint(held) or any("." not in name and name in last for name in names)


def _is_command(reading: ConfigReading) -> bool:
    """Say whether a reading is a command line: no file of another syntax by its name."""
    kind = SUFFIXES.get(suffix_of(reading.path or reading.source_id))
    return kind == "command" if kind is not None else reading.dialect == "shell"


def _edited(
    reading: ConfigReading,
    targets: Sequence[Target],
    home: str,
    wanted: tuple[str, Mapping[str, object]],
) -> str | None:
    """Return a file's text after the edit, unchanged where it is so already; None if it cannot."""
    for target in targets:
        try:
            after = _edit(target, home, *wanted)
        except (SyntaxFault, ValueError, IndexError):
            after = None
        if after is not None:
            rows = reading.text.split("\n")
            return "\n".join([*rows[: target.first], *after.split("\n"), *rows[target.last :]])
    return None


def _targets(reading: ConfigReading) -> Iterator[Target]:
    """Cut a text into the stretches that the reader saw."""
    kind = SUFFIXES.get(suffix_of(reading.path or reading.source_id))
    rows = reading.text.split("\n")
    if kind is not None:
        yield Target(kind, 0, len(rows), reading.text)
    if kind == "command":
        from oomdoctor.configs import shell_script

        pieces = shell_script.split(reading.source_id, reading.text)
        pieces = tuple(piece for piece in pieces if piece.kind != kind)
    else:
        pieces = segments.split(reading.source_id, reading.text) if kind is None else ()
    for piece in pieces:
        first = piece.lines.rows[0][0] - 1
        last = piece.lines.rows[-1][0]
        while last > first + 1 and not rows[last - 1].strip():
            last -= 1
        yield Target(piece.kind, first, last, "\n".join(rows[first:last]), whole=False)


def _edit(target: Target, home: str, dialect: str, wanted: Mapping[str, object]) -> str | None:
    """Edit one stretch by its syntax; None where it takes no such settings."""
    kind = target.kind
    if kind == "command":
        from oomdoctor.configs import cli_edit, env_edit

        if dialect == "env":
            return env_edit.set_variables(target.text, wanted)
        named = home not in NO_FLAGS and cli_edit.is_command(target.text)
        return cli_edit.edit(target.text, wanted, home) if named else None
    if dialect in ALWAYS:
        return None
    if kind in ("python", "notebook"):
        from oomdoctor.configs import notebook_edit, python_edit

        edit = python_edit.edit if kind == "python" else notebook_edit.edit
        return edit(target.text, wanted, dialect)
    if kind not in ("yaml", "json", "toml") or not (target.whole or _is_of(target, home)):
        return None
    if kind == "yaml" and target.text.lstrip()[:1] == "{":
        kind = "json"
    editor = _editor(kind)
    return _checked(target.text, editor.edit(target.text, wanted), wanted, editor)


def _editor(kind: str) -> Editor:
    if kind == "yaml":
        from oomdoctor.configs import yaml_edit

        return yaml_edit
    if kind == "toml":
        from oomdoctor.configs import toml_edit

        return toml_edit
    from oomdoctor.configs import json_edit

    return json_edit


def _is_of(target: Target, home: str) -> bool:
    """Say whether a stretch of a mixed text is the one that is written in a dialect."""
    from oomdoctor.configs import parts

    lines = Lines.of_text("", target.text)
    return parts.read(segments.Segment(target.kind, lines), loose=False).dialect == home


def _checked(before: str, after: str, wanted: Mapping[str, object], editor: Editor) -> str | None:
    """Read an edit back; one that did not arrive as meant, or did more, is not offered."""
    touched = {key.split(".")[0] for key in wanted}
    touched |= {name for value in wanted.values() if (name := change.new_name(value))}
    if _rest(editor.whole(before), touched) != _rest(editor.whole(after), touched):
        return None
    for key, value in wanted.items():
        there, found = editor.held(after, key)
        if there is not change.sets(value):
            return None
        if there and not same(found, value):
            return None
    return after


def _rest(settings: object, touched: set[str]) -> object:
    """Return the settings below other top keys than those that an edit touches."""
    if not isinstance(settings, dict):
        return settings
    return {key: value for key, value in settings.items() if key not in touched}
