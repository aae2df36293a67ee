"""Record the runs of fixtures/watch: programs of tools/watch_programs.py, as `oomdoctor run` does.

    python tools/record_watch.py --host-python VENV/bin/python --card-python CUDA_VENV/bin/python
    python tools/record_watch.py --only graph-of-losses ...

Programs for a card run on a virtual one of 16 GB. Those of the host run in a memory group of 3 GiB
where one can be made, which takes root. Of a bundle is kept what `oomdoctor watch` reads.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from oomdoctor.recorder import sampling
from oomdoctor.recorder.recording import Settings, record
from oomdoctor.virtual.card import card_named
from oomdoctor.virtual.run import virtual_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "tools" / "watch_programs.py"
FIXTURES = ROOT / "fixtures" / "watch"
CARD = "Tesla T4"
GROUPS = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))
LIMIT_BYTES = 3 << 30
KEPT_EVENTS = {"hello", "cards", "step", "sample", "phase", "oom", "exit"}
DROPPED = {"world", "at", "argv", "executable", "versions", "device", "cards_used"}
OF_PROCESSES = ("pid", "parent", "name", "rank", "rss_bytes", "pss_bytes")


def main() -> int:
    """Record what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--host-python", default=sys.executable)
    parser.add_argument("--card-python", default=sys.executable)
    parser.add_argument("--only", action="append", help="a program's name; may be given again")
    given = parser.parse_args()
    # these runs are short: they are looked at more often than others
    sampling._SHARES = sampling._PAGE_SHARES = 20
    sampling.EACH_S = 0.5
    for name in given.only or listed():
        on_card = name in listed("CARD")
        python = given.card_python if on_card else given.host_python
        with tempfile.TemporaryDirectory() as folder:
            bundle = recorded(name, python, Path(folder), on_card=on_card)
            keep(bundle, FIXTURES / name)
        size = sum(one.stat().st_size for one in (FIXTURES / name).rglob("*") if one.is_file())
        print(f"{name}: {size / 1024:.0f} KiB", flush=True)
    return 0


def listed(*tables: str) -> list[str]:
    """Return the names of the programs, without an import of torch."""
    import ast

    found = []
    for node in ast.parse(PROGRAMS.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            name = node.target.id if isinstance(node.target, ast.Name) else ""
            if name in (tables or ("CARD", "HOST")):
                found += [key.value for key in node.value.keys if isinstance(key, ast.Constant)]
    return [str(one) for one in found]


def recorded(name: str, python: str, folder: Path, *, on_card: bool) -> Path:
    """Run a program; return its bundle."""
    environment: dict[str, str] = {"PYTHONUNBUFFERED": "1"}
    if on_card:
        played = virtual_environment(card_named(CARD), python=python, base={})
        environment |= {"OMP_NUM_THREADS": "1", **played}
    with limited(wanted=not on_card):
        ended = record(
            [python, str(PROGRAMS), name],
            Settings(runs=folder, environment=environment, virtual=CARD if on_card else None),
        )
    print(f"{name}: exit code {ended.exit_code}, {ended.folder}", flush=True)
    return ended.folder


@contextmanager
def limited(*, wanted: bool) -> Iterator[None]:
    """Put this process into a memory group with a limit, and back at the end."""
    before = Path("/proc/self/cgroup").read_text(encoding="ascii") if wanted else ""
    root = next((one for one in GROUPS if (one / "memory.stat").exists()), None)
    group = None if root is None else root / f"oomdoctor-watch-{os.getpid()}"
    if not wanted or root is None or group is None:
        yield
        return
    old = next((line.split(":")[2] for line in before.splitlines() if "memory" in line), "/")
    try:
        group.mkdir()
        limit = "memory.max" if root == GROUPS[1] else "memory.limit_in_bytes"
        (group / limit).write_text(str(LIMIT_BYTES), encoding="ascii")
        (group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    except OSError as error:
        print(f"no memory group: {error.strerror}", flush=True)
        yield
        return
    try:
        yield
    finally:
        home = root / old.lstrip("/")
        (home / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        with suppress(OSError):
            group.rmdir()


def keep(bundle: Path, place: Path) -> None:
    """Copy what a watch reads, with the paths and names of this machine left out."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    run = json.loads((bundle / "run.json").read_text(encoding="utf-8"))
    run["command"] = ["python", "tools/watch_programs.py", place.name]
    run["id"] = place.name
    for name in ("folder", "python", "recorder", "configs", "environment", "process"):
        run.pop(name, None)
    (place / "run.json").write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    copy_lines(bundle / "samples.jsonl", place / "samples.jsonl", sample)
    for path in sorted((bundle / "processes").glob("*/events.jsonl")):
        (place / "processes" / path.parent.name).mkdir(parents=True)
        copy_lines(path, place / "processes" / path.parent.name / path.name, event)


def copy_lines(source: Path, target: Path, kept: Any) -> None:
    """Copy JSON lines, each as `kept` returns it; None leaves it out."""
    told = [json.loads(one) for one in source.read_text(encoding="utf-8").splitlines()]
    lines = [kept(one) for one in told]
    text = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in lines if one)
    target.write_text(text, encoding="utf-8")


def sample(told: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a sample."""
    told["processes"] = [
        {key: one[key] for key in OF_PROCESSES if key in one} for one in told["processes"]
    ]
    return told


def event(told: dict[str, Any]) -> dict[str, Any] | None:
    """Return what is kept of an event."""
    if told.get("type") not in KEPT_EVENTS:
        return None
    return {key: one for key, one in told.items() if key not in DROPPED and one is not None}


if __name__ == "__main__":
    sys.exit(main())
