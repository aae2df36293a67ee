"""A command as one trial runs it: edited copies stand in the place of its configs.

python train.py --bs 8 --config train.yaml      with train.yaml: micro_batch_size = 8
python train.py --bs 8 --config .oomdoctor/.../0/train.yaml
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.configs.difference import same
from oomdoctor.errors import InputError, Location
from oomdoctor.lab.journal import unwritable
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Protocol

    from oomdoctor.model.trial import CommandSpec, FileEdit

    class _Editor(Protocol):
        def edit(self, text: str, wanted: Mapping[str, object], /) -> str | None: ...
        def held(self, text: str, key: str, /) -> tuple[bool, object]: ...


_EDITED = ".yaml, .yml, .json, .toml or .py"


def with_copies(command: CommandSpec, folder: Path) -> CommandSpec:
    """Write the edited copies into a folder; the arguments name them instead of the originals.

    A script finds the modules that stand beside the original by PYTHONPATH.
    """
    arguments, environment = list(command.arguments), dict(command.environment)
    by_file: dict[Path, list[FileEdit]] = {}
    for edit in command.edits:
        by_file.setdefault((Path(command.folder) / edit.path).resolve(), []).append(edit)
    for number, (original, edits) in enumerate(by_file.items()):
        copy = folder / str(number) / original.name
        named = [_with_path(one, original, copy, Path(command.folder)) for one in arguments]
        if named == arguments:
            raise InputError(
                "the command does not name this file, so a copy of it would not be read",
                location=Location(path=str(edits[0].path)),
                hint="give the file as an argument of the command, or set the value by a flag",
            )
        text = _edited(original, edits)
        try:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, encoding="utf-8")
        except OSError as error:
            raise unwritable(copy, error) from error
        arguments = named
        if original.suffix == ".py":
            before = environment.get("PYTHONPATH")
            environment["PYTHONPATH"] = ":".join(
                [str(original.parent), *([before] if before else [])]
            )
    return replace(command, arguments=tuple(arguments), environment=environment, edits=())


def keys_added(command: CommandSpec) -> tuple[str, ...]:
    """Return the edited keys that a config does not have by itself, each with its file."""
    found = []
    for edit in command.edits:
        path = Path(command.folder) / edit.path
        there, _ = _editor(path.suffix.lower()).held(path.read_text(encoding="utf-8"), edit.key)
        if not there:
            found.append(f"{edit.key} of {edit.path}")
    return tuple(found)


def _with_path(argument: str, original: Path, copy: Path, folder: Path) -> str:
    """Return an argument with the copy's path where it is, or ends in `=` and, the original's."""
    flag, equals, path = argument.rpartition("=")
    if path and (folder / path).resolve() == original:
        return f"{flag}{equals}{copy}"
    return argument


def _edited(path: Path, edits: Iterable[FileEdit]) -> str:
    from oomdoctor.configs.setting import SyntaxFault

    wanted: dict[str, object] = {one.key: one.value for one in edits}
    place = Location(path=str(path))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", location=place) from error
    try:
        return _edit(path, text, wanted)
    except (SyntaxFault, ValueError, IndexError) as error:
        hint = f"what ends in {_EDITED} can be edited, where it has a place for the key"
        raise InputError(f"cannot be edited: {error}", location=place, hint=hint) from error


def _edit(path: Path, text: str, wanted: Mapping[str, object]) -> str:
    """Return the text with the wanted values; ValueError where they do not arrive in it."""
    editor = _editor(path.suffix.lower())
    after = editor.edit(text, wanted)
    if after is None:
        raise ValueError(f"no place was found for {', '.join(wanted)}")
    for key, value in wanted.items():
        there, found = editor.held(after, key)
        if not there or not same(found, value):
            raise ValueError(f"{key} would not be {value!r}")
    return after


def _editor(suffix: str) -> _Editor:
    match suffix:
        case ".yaml" | ".yml":
            from oomdoctor.configs import yaml_edit

            return yaml_edit
        case ".json":
            from oomdoctor.configs import json_edit

            return json_edit
        case ".toml":
            from oomdoctor.configs import toml_edit

            return toml_edit
        case ".py":
            return _Script()
    raise ValueError(f"its kind, {suffix or 'without an ending'}, is not known")


class _Script:
    """Edits a Python script as the other editors edit their files."""

    def edit(self, text: str, wanted: Mapping[str, object], /) -> str | None:
        from oomdoctor.configs import python_edit

        return python_edit.edit(text, wanted, "python")

    def held(self, text: str, key: str, /) -> tuple[bool, object]:
        from oomdoctor.configs import python_edit

        return python_edit.held(text, key, "python")
