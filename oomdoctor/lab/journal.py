"""The journal of a run: JSON lines that are only ever appended, each on the disk before the next.

    {"type": "run", "v": 1, "plan": "5f1c...", "started": "2026-01-31T12:00:00Z", "arguments": []}
    {"type": "begin", "key": "9b0d...", "values": {"batch": 8}}
    {"type": "result", "result": {"key": "9b0d...", "values": {"batch": 8}, "outcome": "fit", ...}}

A run that was killed leaves at most a last line that is not whole, which is cut off, and a trial
that began and has no result, which runs again. The folder also holds `run.sh`, which starts the
same run again, and `environment.json`, which says where it ran.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, Location, UsageError
from oomdoctor.lab.protocol import ProtocolError, decode, encode
from oomdoctor.model.trial import CRASH, TIMEOUT, TrialResult
from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import BinaryIO

    from typing_extensions import Self

VERSION = 1
ROOT = ".oomdoctor"
JOURNAL = "journal.jsonl"
RUN_FILE = "run.sh"
ENVIRONMENT = "environment.json"
_PLAN_DIGITS = 8
# names only: a value may be a secret, and none of these is
_RECORDED = (
    *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "OMP_NUM_THREADS", "LD_LIBRARY_PATH"),
    *("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"),
    *("CUDA_MODULE_LOADING", "CUDA_LAUNCH_BLOCKING", "HF_HUB_OFFLINE", "HF_HOME", "PYTHONPATH"),
    *("TOKENIZERS_PARALLELISM", "NCCL_DEBUG", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "CONDA_PREFIX"),
    *("VIRTUAL_ENV", "PATH"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a journal holds: the run's head, results by key, and keys that began without an end.

    `whole_bytes` is where the last whole line ends.
    """

    head: Mapping[str, object]
    results: Mapping[str, TrialResult]
    begun: tuple[str, ...]
    whole_bytes: int


class Journal:
    """Appends to one journal; `results` are those of the run so far, by key."""

    def __init__(
        self, folder: Path, file: BinaryIO, results: Mapping[str, TrialResult] | None = None
    ) -> None:
        """Keep an open file; `create` and `resume` open one."""
        self.folder = folder
        self.results: dict[str, TrialResult] = dict(results or {})
        self._file = file

    @classmethod
    def create(
        cls,
        root: Path,
        plan: str,
        *,
        arguments: Sequence[str],
        started: float,
        facts: Mapping[str, object] | None = None,
    ) -> Self:
        """Begin the journal of a new run in a folder of its own below `root`.

        `facts` are kept in its head: what a part that resumes the run has to do as this one did.
        """
        folder = _new_folder(root, plan, started)
        file = (folder / JOURNAL).open("xb")
        made = cls(folder, file)
        made.append(
            {
                "type": "run",
                "v": VERSION,
                "plan": plan,
                "started": _stamp(started, "%Y-%m-%dT%H:%M:%SZ"),
                "arguments": list(arguments),
                "cwd": str(Path.cwd()),
                "facts": dict(facts or {}),
            }
        )
        _write_run_file(folder / RUN_FILE, arguments)
        _sync_folder(folder)
        return made

    @classmethod
    def resume(cls, folder: Path) -> Self:
        """Go on with a journal; what a kill left of its last line is cut off.

        Trials that told nothing run again: what disturbed them may be over.
        """
        path = folder / JOURNAL
        recorded = read_journal(path)
        try:
            file = path.open("r+b")
            file.truncate(recorded.whole_bytes)
            file.seek(recorded.whole_bytes)
        except OSError as error:
            raise _unreadable(path, error) from error
        told = {
            key: one for key, one in recorded.results.items() if one.outcome not in (CRASH, TIMEOUT)
        }
        return cls(folder, file, told)

    def begin(self, key: str, values: Mapping[str, object]) -> None:
        """Record that a trial starts."""
        self.append({"type": "begin", "key": key, "values": dict(values)})

    def finish(self, result: TrialResult) -> None:
        """Record what came of a trial."""
        self.append({"type": "result", "result": encode(result)})
        self.results[result.key] = result

    def append(self, entry: Mapping[str, object]) -> None:
        """Write one line, and wait until the disk has it."""
        line = json.dumps(entry, separators=(",", ":"), ensure_ascii=True) + "\n"
        try:
            self._file.write(line.encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise unwritable(self.folder / JOURNAL, error) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_journal(path: Path) -> Recorded:
    """Return what a journal holds; InputError where a whole line is not what it should be."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    whole = data.rfind(b"\n") + 1
    head: Mapping[str, object] = {}
    results: dict[str, TrialResult] = {}
    begun: dict[str, None] = {}
    for number, line in enumerate(data[:whole].splitlines(), 1):
        entry = _entry(line, path, number)
        kind = entry.get("type")
        if kind == "run" and not head:
            head = entry
        elif kind == "begin":
            begun[str(entry.get("key"))] = None
        elif kind == "result":
            result = _result(entry.get("result"), path, number)
            results[result.key] = result
            begun.pop(result.key, None)
    if not head:
        what = "the journal has no head" if whole else "the journal is empty"
        raise InputError(what, location=Location(path=str(path)), hint="start without --resume")
    return Recorded(head=head, results=results, begun=tuple(begun), whole_bytes=whole)


def latest_run(root: Path, plan: str) -> Path:
    """Return the folder of the last run of a plan; UsageError where there is none."""
    faults: list[InputError] = []
    folders = root.glob(f"*-{plan[:_PLAN_DIGITS]}*")
    found = [one for one in folders if _plan_of(one / JOURNAL, faults) == plan]
    if faults and not found:
        raise faults[-1]
    if not found:
        raise UsageError(
            f"--resume: no earlier run of this command below {root}",
            hint="what is resumed has the same config, command, axes, back end, cap and steps",
        )
    return max(found, key=lambda folder: folder.name)


def write_environment(
    folder: Path, facts: Mapping[str, object], environ: Mapping[str, str]
) -> None:
    """Record where a run takes place: what the caller found out, and the variables that matter."""
    variables = {name: environ[name] for name in _RECORDED if name in environ}
    text = json.dumps({**facts, "variables": variables}, indent=2, sort_keys=True)
    try:
        (folder / ENVIRONMENT).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise unwritable(folder / ENVIRONMENT, error) from error


def _plan_of(path: Path, faults: list[InputError]) -> object:
    try:
        return read_journal(path).head.get("plan")
    except InputError as error:
        if error.location is not None and error.location.line is not None:
            faults.append(error)  # one without a head was killed at once, and has nothing to tell
        return None


def _new_folder(root: Path, plan: str, started: float) -> Path:
    name = f"{_stamp(started, '%Y%m%d-%H%M%S')}-{plan[:_PLAN_DIGITS]}"
    for number in range(1, 1000):
        folder = root / (name if number == 1 else f"{name}-{number:03}")
        try:
            root.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)  # command lines may hold what is nobody else's business
        except FileExistsError:
            continue
        except OSError as error:
            raise unwritable(folder, error) from error
        _ignore(root)
        return folder
    raise UsageError(f"{root}: too many runs began in this second")


def _ignore(root: Path) -> None:
    """Keep what runs leave out of the user's repository."""
    with suppress(OSError), (root / ".gitignore").open("x", encoding="utf-8") as file:
        file.write("*\n")


def _write_run_file(path: Path, arguments: Sequence[str]) -> None:
    text = "\n".join(
        (
            "#!/bin/sh",
            "# Starts the same run again, from the beginning.",
            f"cd {shlex.quote(str(Path.cwd()))} || exit 2",
            f"exec {shlex.join(arguments)}",
            "",
        )
    )
    try:
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        path.chmod(0o755)
    except OSError as error:
        raise unwritable(path, error) from error


def _sync_folder(folder: Path) -> None:
    """Put the names of new files on the disk as well."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _entry(line: bytes, path: Path, number: int) -> dict[str, object]:
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    if not isinstance(entry, dict):
        raise _faulty(path, number, "no JSON object stands here")
    return entry


def _result(data: object, path: Path, number: int) -> TrialResult:
    try:
        return decode(TrialResult, data)
    except ProtocolError as error:
        raise _faulty(path, number, f"no result of a trial: {error}") from error


def _faulty(path: Path, number: int, what: str) -> InputError:
    return InputError(
        what,
        location=Location(path=str(path), line=number),
        hint="a journal is never edited: start without --resume",
    )


def _stamp(seconds: float, form: str) -> str:
    return time.strftime(form, time.gmtime(seconds))


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot read: {error.strerror}", location=Location(path=str(path)))


def unwritable(path: Path, error: OSError) -> InputError:
    """Return the error of a file of a run that cannot be written."""
    return InputError(
        f"cannot write: {error.strerror}",
        location=Location(path=str(path)),
        hint="trials keep their journal in .oomdoctor below the current folder",
    )
