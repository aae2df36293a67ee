"""Reads one segment of a config text into facts, by the syntax it has and the dialect it shows."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.configs import dialects, listing, mapping
from oomdoctor.configs.claims import Claim
from oomdoctor.configs.impossible import facts_of as impossible_facts
from oomdoctor.configs.impossible import impossible
from oomdoctor.configs.setting import Lines, Setting, Settings
from oomdoctor.facts.bounds import can_be
from oomdoctor.model.enums import Origin
from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oomdoctor.configs.mapping import Dialect
    from oomdoctor.configs.python_script import Scripts
    from oomdoctor.configs.segments import Segment
    from oomdoctor.model.core import Fact, Quote

FRAMEWORKS = {"transformers": "hf_trainer"}  # framework -> dialect, where the names differ
LISTS = (listing.KEY, "job.calls", "job.open")  # texts that every part adds to
HELPERS = ("deepspeed", "accelerate")  # configs that serve a framework which others name
SCRIPTED = ("unsloth", "diffusers")  # frameworks whose scripts are a dialect of their own
VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


class Part(NamedTuple):
    """The facts of a segment, in which syntax and dialect it is written, and what it closes."""

    kind: str
    dialect: str
    facts: tuple[Fact, ...]
    closes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def noted(self, note: str) -> Part:
        """Return the part with one more note."""
        return self._replace(notes=(*self.notes, note))

    def joined(self, other: Part) -> Part:
        """Return both parts as one; facts of the first one stay."""
        held = {*LISTS, *(fact.key for fact in self.facts)}
        both = (*self.facts, *other.facts)
        lists = [listing.joined([fact for fact in both if fact.key == key]) for key in LISTS]
        own = [fact for fact in self.facts if fact.key not in LISTS]
        new = [fact for fact in other.facts if fact.key not in held]
        return self._replace(
            facts=(*own, *new, *(fact for facts in lists for fact in facts)),
            closes=tuple(dict.fromkeys((*self.closes, *other.closes))),
            notes=(*self.notes, *other.notes),
        )


def read(piece: Segment, *, loose: bool) -> Part:
    """Read a segment; `loose` also reads comments and unknown values as notes."""
    match piece.kind:
        case "yaml":
            return _yaml(piece.lines, loose=loose)
        case "json":
            return _json(piece.lines, loose=loose)
        case "toml":
            return _toml(piece.lines)
        case "command":
            return _command(piece.lines)
        case "python":
            return _python(piece.lines)
        case _:
            return _notes(piece.lines)


def _yaml(lines: Lines, *, loose: bool) -> Part:
    from oomdoctor.configs import yaml_text
    from oomdoctor.configs.setting import SyntaxFault

    found = yaml_text.read(lines)
    if loose and not found.is_mapping:
        raise SyntaxFault("no mapping", line=lines.rows[0][0], column=1)
    return _settings("yaml", lines, found.settings, found.notes, loose=loose)


def _json(lines: Lines, *, loose: bool) -> Part:
    from oomdoctor.configs import json_text

    node, said = json_text.load(
        lines.text.rstrip(" \t\n,;") if loose else lines.text, strict=not loose
    )
    return _settings("json", lines, json_text.settings_of(node, lines), said, loose=False)


def _toml(lines: Lines) -> Part:
    from oomdoctor.configs import toml_text

    return _settings("toml", lines, toml_text.read(lines), (), loose=False)


def _settings(
    kind: str, lines: Lines, rows: Iterable[Setting], said: tuple[str, ...], *, loose: bool
) -> Part:
    settings = Settings(rows)
    dialect = dialects.choose(settings)
    closes = dialect.closes(settings)
    made = list(mapping.facts_of(settings, dialect))
    made += _framework(settings, dialect)
    if loose and not closes:
        made += _loose(lines, settings, dialect)
    made += listing.listing(settings.in_force)
    return _checked(Part(kind, dialect.name, tuple(made), closes, said), settings, dialect)


def _checked(part: Part, settings: Iterable[Setting], dialect: Dialect) -> Part:
    """Drop what no job can have, and say so of the settings that state it."""
    found = impossible(settings, dialect)
    facts = [fact for fact in (*part.facts, *impossible_facts(found)) if can_be(fact)]
    notes = dict.fromkeys(one.note for one in found)
    return part._replace(facts=mapping.unique(facts), notes=(*part.notes, *notes))


def _framework(settings: Settings, dialect: Dialect) -> list[Fact]:
    if dialect.framework is None or not settings.rows:
        return []
    helper = dialect.name in HELPERS
    claim = Claim(
        "job.framework",
        dialect.framework,
        source=f"a {dialect.name} config" if helper else None,
        origin=Origin.DERIVED if helper else Origin.STATED,
    )
    return [mapping.fact_of(claim, settings.rows[0].quote)]


def _loose(lines: Lines, settings: Settings, dialect: Dialect) -> list[Fact]:
    """Read values of unknown keys and comments as notes."""
    made: list[Fact] = []
    for row in settings:
        told = isinstance(row.value, str) and not tuple(mapping.claims_of(row, dialect))
        if told and len(row.path) < 4:
            place = next((i for i, (n, _) in enumerate(lines.rows) if n == row.quote.line), 0)
            text = lines.rows[place][1].partition(" #")[0]
            made += _told(lines, place, text, 0, dialect)
    made += comments(lines, dialect)
    return made


def comments(lines: Lines, dialect: Dialect) -> list[Fact]:
    """Read what stands behind a `#` as notes."""
    from oomdoctor.configs import notes

    made: list[Fact] = []
    for place, (_, row) in enumerate(lines.rows[: notes.MAX_LINES]):
        at = row.find("#")
        if at < 0 or _is_code(row[at + 1 :]):
            continue
        if (at == 0 or row[at - 1] in " \t") and row.count('"', 0, at) % 2 == 0:
            made += _told(lines, place, row[at + 1 :], at + 1, dialect)
    return made


@cache
def _code() -> re.Pattern[str]:
    return re.compile(r"\s*(?:--?[A-Za-z][\w-]*(?:[ =]|$)|[A-Za-z_][\w.]*\s?=\s?[^=\s]|[\w.]+\()")


def _is_code(comment: str) -> bool:
    """Say whether a comment is a line of code or a flag that was taken out: it is not in force."""
    return _code().match(comment) is not None


def _told(lines: Lines, place: int, text: str, start: int, dialect: Dialect) -> list[Fact]:
    from oomdoctor.configs import notes

    return [
        mapping.fact_of(found.claim, lines.quote(place, start + found.start, start + found.end))
        for found in notes.claims_in(text[: notes.MAX_WIDTH], dialect)
    ]


def _notes(lines: Lines) -> Part:
    from oomdoctor.configs import notes

    dialect = dialects.choose(Settings(notes.settings_in(lines)))
    made = [mapping.fact_of(claim, quote) for claim, quote in notes.read(lines, dialect)]
    if dialect.framework is not None and made:
        made.append(mapping.fact_of(Claim("job.framework", dialect.framework), *made[0].quotes))
    return Part("notes", "notes", mapping.unique(filter(can_be, made)))


def _command(lines: Lines) -> Part:
    from oomdoctor.configs import command_line

    found = command_line.read(lines)
    settings = Settings(found.settings)
    claimed = next((str(c.value) for c, _ in found.claims if c.key == "job.framework"), None)
    choose = dialects.of_flags if found.scripts else dialects.choose
    dialect = choose(settings)
    if claimed is not None:
        dialect = dialects.named(FRAMEWORKS.get(claimed, claimed))
    made = [mapping.fact_of(claim, quote) for claim, quote in found.claims]
    made += mapping.facts_of(settings, dialect)
    made += _framework(settings, dialect)
    made += _visible_conflict(found.settings)
    made += comments(lines, dialect)
    made += listing.listing(settings.in_force)
    name = "shell" if dialect is dialects.NOTES else dialect.name
    facts = tuple(_of_script(made) if found.scripts else made)
    closes = dialect.closes(settings)
    if name in ("vllm", "sglang") and any(fact.key == "model.name" for fact in facts):
        closes = ("serve-config",)
    return _checked(Part("command", name, facts, closes), settings, dialect)


def _of_script(facts: list[Fact]) -> list[Fact]:
    """Believe a rank that a script is given, and only suppose that it trains no adapter."""
    from dataclasses import replace

    ranked = any(fact.key == "lora.rank" for fact in facts)
    why = "a rank is given to the script" if ranked else "no flag of the script names an adapter"
    return [
        replace(fact, value=ranked, origin=Origin.ASSUMED, source=why)
        if fact.key == "lora.on" and fact.value is False and fact.origin is Origin.DERIVED
        else fact
        for fact in facts
    ]


def _visible_conflict(rows: Iterable[Setting]) -> list[Fact]:
    """Say so where two different lists of visible devices are set."""
    shown = [row for row in rows if row.path[-1] in VISIBLE]
    if len({str(row.value) for row in shown}) < 2:
        return []
    quotes = tuple(row.quote for row in shown)
    return [mapping.fact_of(Claim("env.visible_devices_conflict", value=True), *quotes)]


def _python(lines: Lines) -> Part:
    from oomdoctor.configs import python_script

    found = python_script.read(lines)
    settings = _firsts(found.settings)
    claims = _ranked(found.claims)
    made = [mapping.fact_of(claim, quote) for claim, quote in claims]
    framework = next((str(c.value) for c, _ in claims if c.key == "job.framework"), None)
    dialect = _scripted(settings, framework, found)
    rows = _firsts([*found.sections, *found.settings]) if dialect.name == "torchtitan" else settings
    made += mapping.facts_of(rows, dialect)
    made += _framework(rows, dialect)
    made += comments(lines, dialect)
    flags = dialects.named("diffusers") if framework == "diffusers" else dialect
    made += [_supposed(fact) for fact in mapping.facts_of(_firsts(found.defaults), flags)]
    made += listing.listing([*found.all, *(found.sections if rows is not settings else ())])
    made += found.calls
    closes = dialect.closes(rows) or python_script.closes(settings, found)
    name = framework if framework in SCRIPTED and dialect.name == "python" else dialect.name
    return _checked(Part("python", name or "python", tuple(made), closes), rows, dialect)


def _scripted(settings: Settings, framework: str | None, found: Scripts) -> Dialect:
    """Choose how a script's names are read: a file of settings has its framework's own."""
    from oomdoctor.configs import nanogpt, python_script, torchtitan

    if framework in (None, "nanogpt") and nanogpt.matches(settings):
        return nanogpt.DIALECT
    if framework == "torchtitan" and torchtitan.matches_sections(Settings(found.sections)):
        return torchtitan.DIALECT
    return python_script.DIALECT


def _firsts(rows: Iterable[Setting]) -> Settings:
    """Keep the first setting of each key, line by line."""
    firsts: dict[str, Setting] = {}
    for row in sorted(rows, key=lambda row: row.quote.line):
        firsts.setdefault(row.key, row)
    return Settings(firsts.values())


def _supposed(fact: Fact) -> Fact:
    """Return what the default of a flag says: assumed, for the command line may say otherwise."""
    from dataclasses import replace

    return replace(fact, origin=Origin.ASSUMED, source="default of the script's own flag")


def _ranked(claims: list[tuple[Claim, Quote]]) -> list[tuple[Claim, Quote]]:
    """Order framework claims so that the most telling one stands first."""
    from oomdoctor.configs.python_script import MODULES

    order = {framework: rank for rank, (_, framework) in enumerate(MODULES)}
    return sorted(claims, key=lambda pair: order.get(str(pair[0].value), len(order)))
