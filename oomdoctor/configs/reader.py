"""Reads whatever describes a job: a config file of any dialect, a script, a command, a few notes.

train.yaml, ds_config.json, run.sh, train.py        a certain syntax: errors name their place
config.txt, something pasted                        taken apart, each part read as what it is
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import parts, segments
from oomdoctor.configs.dialect import ConfigReading
from oomdoctor.configs.setting import Lines, SyntaxFault, TooMuch
from oomdoctor.errors import InputError, Location, SizeError
from oomdoctor.model.core import Fact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.configs.segments import Segment

SUFFIXES = {
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".py": "python",
    ".sh": "command",
    ".bash": "command",
    ".sbatch": "command",
    ".slurm": "command",
    ".toml": "toml",
    ".ipynb": "notebook",
}
CERTAIN = ("yaml", "json")
MAX_CHARACTERS = 4_000_000
MAX_CHARACTERS_NOTEBOOK = 250_000_000  # pictures that it shows, mostly
MAX_TEXT_LINES = 5000


def read_config(text: str, *, name: str, path: str | None = None) -> tuple[ConfigReading, ...]:
    """Read a config text into one reading per config in it, the facts with their places.

    A syntax error in a file that is certainly YAML or JSON is an InputError with its place; any
    other text that cannot be parsed is read line by line as notes, and a note says so.
    """
    kind = SUFFIXES.get(suffix_of(path or name))
    if len(text) > (MAX_CHARACTERS_NOTEBOOK if kind == "notebook" else MAX_CHARACTERS):
        raise SizeError(
            f"{len(text):,} characters are too many for a config",
            location=Location(path=path or name),
            hint="give logs without --config",
        )
    text = text.removeprefix("\ufeff")
    try:
        pieces = _pieces(kind, name, text)
        read = [part for piece in pieces for part in _read_piece(piece, certain=kind in CERTAIN)]
    except SyntaxFault as fault:
        place = Location(path=path or name, line=fault.line, column=fault.column)
        if isinstance(fault, TooMuch):
            raise SizeError(
                fault.message,
                location=place,
                hint="give the config of one run; no trainer reads one that is larger",
            ) from None
        raise InputError(fault.message, location=place, hint=_hint(kind)) from None
    return _readings(read, text, name, path)


def _pieces(kind: str | None, name: str, text: str) -> tuple[Segment, ...]:
    """Take a text apart by what its name says that it is."""
    if kind == "notebook":
        from oomdoctor.configs import notebook

        return notebook.segments(name, text)
    if kind == "command":
        from oomdoctor.configs import shell_script

        return shell_script.split(name, text)
    if kind is None:
        return segments.split(name, text)
    return (segments.Segment(kind, Lines.of_text(name, text)),)


def suffix_of(path: str) -> str:
    """Return the lower-case suffix of a file name, the dot included."""
    base = path.replace("\\", "/").rpartition("/")[2].lower()
    return "." + base.rpartition(".")[2] if "." in base else ""


def _hint(kind: str | None) -> str:
    return f"correct it, or rename the file if it is no {(kind or 'yaml').upper()}"


def _read_piece(piece: Segment, *, certain: bool) -> list[parts.Part]:
    """Read one segment; without certainty a syntax error makes it notes."""
    if not piece.lines.rows:
        return []
    try:
        return [parts.read(piece, loose=not certain)]
    except SyntaxFault as fault:
        if certain:
            may = piece.kind == "json" and not isinstance(fault, TooMuch)
            relaxed = _relaxed(piece, fault) if may else None
            if relaxed is None:
                raise
            return [relaxed]
        said = f"line {fault.line}: read as notes, not as {piece.kind} ({fault.message})"
        return [parts.read(segments.Segment("notes", piece.lines), loose=True).noted(said)]


def _relaxed(piece: Segment, fault: SyntaxFault) -> parts.Part | None:
    """Read JSON with comments, commas before a bracket or NaN, and say where it is no JSON."""
    try:
        read = parts.read(piece, loose=True)
    except SyntaxFault:
        return None
    return read.noted(
        f"line {fault.line}, column {fault.column}: no strict JSON ({fault.message}), read all"
        " the same; the program that is given this file may refuse it"
    )


def _readings(
    read: Sequence[parts.Part], text: str, name: str, path: str | None
) -> tuple[ConfigReading, ...]:
    """Merge neighbouring parts of one dialect, and give the first reading the whole text."""
    merged: list[parts.Part] = []
    for part in read:
        if merged and merged[-1].dialect == part.dialect and part.kind != "json":
            merged[-1] = merged[-1].joined(part)
        else:
            merged.append(part)
    if not merged:
        return ()
    whole = _whole(name, text, path)
    readings = []
    for number, part in enumerate(merged):
        facts = part.facts if number or whole is None else (*part.facts, whole)
        readings.append(
            ConfigReading(
                source_id=name,
                dialect=part.dialect,
                facts=facts,
                text=text,
                path=path,
                notes=part.notes,
                closes=part.closes,
            )
        )
    return tuple(readings)


def _whole(name: str, text: str, path: str | None) -> Fact | None:
    """Return the fact of all lines, of a notebook those of its code."""
    if SUFFIXES.get(suffix_of(path or name)) != "notebook":
        return job_text(Lines.of_text(name, text))
    from oomdoctor.configs import notebook

    rows = notebook.code(name, text)[:MAX_TEXT_LINES]
    value = "\n".join(row for row, _ in rows)
    quotes = tuple(quote for _, quote in rows)
    return Fact(key="job.text", value=value, quotes=quotes) if rows else None


def job_text(lines: Lines) -> Fact | None:
    """Return the fact of all lines that are not blank, one quote per line; None for no line."""
    rows = [i for i, (_, row) in enumerate(lines.rows) if row.strip()][:MAX_TEXT_LINES]
    if not rows:
        return None
    return Fact(
        key="job.text",
        value="\n".join(lines.rows[row][1] for row in rows),
        quotes=tuple(lines.quote(row) for row in rows),
    )
