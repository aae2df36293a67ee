r"""Command lines: launcher, script and flags as settings, variables and environment in front.

CUDA_VISIBLE_DEVICES=0,1 accelerate launch --num_processes 2 train.py --bf16 --lr=1e-4
deepspeed --num_gpus 8 run_clm.py --deepspeed ds_config.json
docker run --gpus all --shm-size=16g image python train.py trainer.devices=4
#SBATCH --gres=gpu:8
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from oomdoctor.configs import command_facts, scalars, shell_text
from oomdoctor.configs.setting import Lines, Setting, SyntaxFault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.configs.claims import Claim
    from oomdoctor.configs.setting import Plain
    from oomdoctor.configs.shell_text import Word
    from oomdoctor.model.core import Quote

WRAPPERS = frozenset(
    (
        "sudo",
        "nohup",
        "time",
        "exec",
        "env",
        "uv",
        "poetry",
        "conda",
        "run",
        "stdbuf",
        "$",
        "!",
        "%",
        ">",
    )
)
CONTAINERS = ("docker", "podman", "nvidia-docker")
SWITCHES = frozenset(("-u", "-m", "-it", "-d", "-i", "-t", "-rm", "--rm", "-O", "-y"))


@dataclass(slots=True, kw_only=True)
class Commands:
    """What some command lines say: settings per command's flags, and claims of their own."""

    settings: list[Setting] = field(default_factory=list)
    claims: list[tuple[Claim, Quote]] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    comments: list[tuple[int, int]] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)


def read(lines: Lines) -> Commands:
    """Read all commands of some lines, first to last."""
    found = Commands()
    for words in shell_text.commands(lines):
        _read_one(_plain(words, found.variables), lines, found)
    return found


def _plain(words: Sequence[Word], variables: dict[str, str]) -> list[Word]:
    return [word._replace(text=shell_text.expand(word.text, variables)) for word in words]


def _read_one(words: list[Word], lines: Lines, found: Commands) -> None:
    """Read one command: assignments in front, the program, its launcher's and script's flags."""
    rest = _skip_front(words, lines, found)
    if not rest:
        return
    program = rest[0].text.rpartition("/")[2]
    if program in ("export", "set", "setx", "%env", "ENV", "declare"):
        _exports(rest[1:], lines, found)
        return
    if rest[0].text.startswith("-"):
        _flags(rest, lines, found, ())
        return
    found.programs.append(program)
    if program in CONTAINERS:
        rest = _container(rest, lines, found)
        if not rest:
            return
        program = rest[0].text.rpartition("/")[2]
    at = _script_at(rest)
    launcher = command_facts.launcher_of([word.text for word in rest[:at]])
    if launcher:
        where = shell_text.quote(rest[0], lines)
        found.claims.append((command_facts.launched(launcher), where))
    _flags(rest[1:at], lines, found, (launcher or program,))
    if at < len(rest) and command_facts.is_script(rest, at):
        script = rest[at]
        found.scripts.append(script.text)
        where = shell_text.quote(script, lines)
        found.claims += [(claim, where) for claim in command_facts.script(script.text)]
        at += 1
    if program not in command_facts.WEB_SERVERS:
        _flags(rest[at:], lines, found, ())
    found.claims += command_facts.program(rest, lines)


def _skip_front(words: list[Word], lines: Lines, found: Commands) -> list[Word]:
    """Take assignments and wrappers off the front; an assignment alone sets a variable."""
    at = 0
    while at < len(words):
        pair = shell_text.assignment(words[at])
        if pair is not None:
            found.variables[pair[0]] = pair[1]
            where = shell_text.quote_value(words[at], lines)
            found.settings.append(Setting((pair[0],), pair[1], where))
        elif words[at].text not in WRAPPERS:
            break
        at += 1
    return words[at:]


def _exports(words: list[Word], lines: Lines, found: Commands) -> None:
    for at, word in enumerate(words):
        pair = shell_text.assignment(word)
        if pair is not None:
            found.variables[pair[0]] = pair[1]
            where = shell_text.quote_value(word, lines)
            found.settings.append(Setting((pair[0],), pair[1], where))
        elif at == 0 and len(words) == 2 and word.text.isidentifier():
            where = shell_text.quote(words[1], lines)
            found.settings.append(Setting((word.text,), words[1].text, where))
            return


def _container(words: list[Word], lines: Lines, found: Commands) -> list[Word]:
    """Read `docker run`'s own options and return the command that runs inside."""
    found.claims += command_facts.container(words, lines)
    at = next((i for i, word in enumerate(words) if word.text in ("run", "exec")), 0) + 1
    while at < len(words):
        text = words[at].text
        if text in ("-e", "--env") and at + 1 < len(words):
            _exports([words[at + 1]], lines, found)
            at += 2
        elif text.startswith("-"):
            lone = "=" in text or text in SWITCHES or at + 1 >= len(words)
            at += 1 if lone or words[at + 1].text.startswith("-") else 2
        else:
            return words[at + 1 :]
    return []


def _script_at(words: list[Word]) -> int:
    """Return where the script (or the subcommand that plays its part) stands."""
    for at, word in enumerate(words):
        text = word.text
        if text == "-m" and at + 1 < len(words):
            if words[at + 1].text in command_facts.LAUNCH_MODULES:
                continue
            return at + 1
        if text.endswith((".py", ".sh", ".ipynb")) and not text.startswith("-"):
            return at
    return min(1, len(words))


def _flags(words: Sequence[Word], lines: Lines, found: Commands, prefix: tuple[str, ...]) -> None:
    """Read `--key value`, `--key=value`, `--switch`, `-k v` and `key=value`."""
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not word.text.startswith("-") or word.quoted:
            _override(word, lines, found, prefix)
            continue
        name, equals, value = word.text.lstrip("-").partition("=")
        if not name or name[0].isdecimal():
            continue
        if equals:
            where = shell_text.quote_value(word, lines)
            found.settings.append(Setting(_path(prefix, name), scalars.value_of(value), where))
            continue
        values = values_of(words, at)
        at += len(values)
        _add(found, prefix, name, (word, values), lines)


def _add(
    found: Commands,
    prefix: tuple[str, ...],
    name: str,
    words: tuple[Word, list[Word]],
    lines: Lines,
) -> None:
    flag, values = words
    value: Plain
    if not values:
        negative = name.startswith(("no-", "no_"))
        name = name[3:] if negative else name
        value, where = not negative, shell_text.quote(flag, lines)
    elif len(values) == 1:
        value, where = scalars.value_of(values[0].text), shell_text.quote(values[0], lines)
        found.settings += _inside(_path(prefix, name), values[0], lines)
    else:
        value = tuple(scalars.scalar_of(word.text) for word in values)
        last = values[-1].end if values[-1].row == values[0].row else None
        where = lines.quote(values[0].row, values[0].start, last)
    found.settings.append(Setting(_path(prefix, name), value, where))


def _inside(path: tuple[str, ...], word: Word, lines: Lines) -> list[Setting]:
    """Read the settings inside a JSON object that is the value of a flag."""
    text = word.text
    row = lines.rows[word.row][1]
    if text[:1] != "{" or not word.quoted or row[word.start : word.end] != text:
        return []
    from oomdoctor.configs import json_text

    try:
        node, _ = json_text.load(text, strict=False)
    except SyntaxFault:
        return []
    part = Lines(lines.artifact, [(lines.rows[word.row][0], text)], shift=lines.shift + word.start)
    inner = json_text.settings_of(node, part)
    return [setting._replace(path=(*path, *setting.path)) for setting in inner]


def _override(word: Word, lines: Lines, found: Commands, prefix: tuple[str, ...]) -> None:
    """Read an override in Hydra's way: `trainer.devices=8`, `+model.lora=true`."""
    name, equals, value = word.text.partition("=")
    name = name.lstrip("+~")
    if equals and name and all(part.isidentifier() for part in name.replace("-", "_").split(".")):
        where = shell_text.quote_value(word, lines)
        found.settings.append(Setting(_path(prefix, name), scalars.value_of(value), where))


def values_of(words: Sequence[Word], at: int) -> list[Word]:
    """Return the words from `at` on that are values of the flag before them."""
    values: list[Word] = []
    for word in words[at:]:
        if not _is_value(word) or not _goes_on(values, word):
            break
        values.append(word)
    return values


def _goes_on(values: list[Word], word: Word) -> bool:
    """Say whether a word can be a further value: one like the first, no override, no script."""
    if "[@]" in word.text or "[*]" in word.text or word.text in ("$@", "$*"):
        return False
    if not values or word.quoted:
        return True
    text = word.text
    if text.startswith("$") or "=" in text or text.endswith(command_facts.SCRIPTS):
        return False
    numbers = [scalars.number_of(one) is not None for one in (values[0].text, text)]
    return numbers[0] is numbers[1]


def _is_value(word: Word) -> bool:
    text = word.text
    told = text.lstrip("0123456789&").startswith((">", "<"))
    if told and not word.quoted and not (text[0] == "<" and text[-1] == ">"):
        return False  # where the output goes
    if word.quoted or not text.startswith("-"):
        return True
    return scalars.number_of(text) is not None


def _path(prefix: tuple[str, ...], name: str) -> tuple[str, ...]:
    return (*prefix, *(part for part in name.split(".") if part))
