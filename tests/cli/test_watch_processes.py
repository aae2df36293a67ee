"""`oomdoctor watch` of processes and cards, without a recorder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from tests.cli.watched import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs /proc and a program in Python")

SMI = """#!{python}
import sys
if any("compute-apps" in one for one in sys.argv):
    print("GPU-1, {pid}, python, 3000")
    print("GPU-1, 4194302, other, 500")
else:
    print("0, GPU-1, NVIDIA L4, 23034, 3510, 19524, Disabled")
"""


def watch(run_python: RunPython, *arguments: str, cwd: Path) -> CompletedProcess[bytes]:
    return run_python("-m", "oomdoctor", "watch", *arguments, cwd=cwd)


def with_card(folder: Path, pid: int) -> dict[str, str]:
    """Put an nvidia-smi there that tells of a card with this process on it, and another one."""
    program = folder / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(SMI.format(python=sys.executable, pid=pid), encoding="utf-8")
    program.chmod(0o755)
    return {"PATH": str(program.parent)}


def test_a_card_is_watched_with_all_its_processes(run_python: RunPython, tmp_path: Path) -> None:
    call = ("-m", "oomdoctor", "watch", "--gpu", "0", "--once", "--json")

    done = run_python(*call, cwd=tmp_path, environment=with_card(tmp_path, os.getpid()))

    look = json.loads(done.stdout)
    schema = json.loads((ROOT / "docs" / "watch.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(look, schema)
    (card,) = look["devices"]
    own = next(one for one in look["processes"] if one["pid"] == os.getpid())
    assert (card["total_bytes"], card["used_bytes"]) == (23034 * MIB, 3510 * MIB)
    assert own["device_bytes"] == 3000 * MIB
    assert own["host_bytes"] > 0


def test_where_several_processes_use_a_card_one_has_to_be_named(
    run_python: RunPython, tmp_path: Path
) -> None:
    environment = with_card(tmp_path, os.getpid())

    several = run_python("-m", "oomdoctor", "watch", cwd=tmp_path, environment=environment)
    no_card = run_python(
        "-m", "oomdoctor", "watch", "--gpu", "3", cwd=tmp_path, environment=environment
    )

    assert several.returncode == no_card.returncode == 2
    assert f"2 processes use a card: {os.getpid()} (python), 4194302" in several.stderr.decode()
    assert "there is no card 3" in no_card.stderr.decode()


def test_a_process_that_is_not_there_is_refused(run_python: RunPython, tmp_path: Path) -> None:
    done = watch(run_python, "4194303", cwd=tmp_path)

    assert done.returncode == 2
    assert "there is no process 4194303" in done.stderr.decode()


def test_a_card_without_a_driver_is_a_failure_with_a_way_out(
    run_python: RunPython, tmp_path: Path
) -> None:
    path = {"PATH": str(tmp_path)}

    done = run_python("-m", "oomdoctor", "watch", "--gpu", "0", cwd=tmp_path, environment=path)

    assert done.returncode == 3
    assert "`oomdoctor watch PID` watches host memory" in done.stderr.decode()


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose list grows by 4 MiB twenty times a second, until somebody ends it."""
    program = (
        "import time\nkept = []\n"
        "while len(kept) < 600: kept.append(b'x' * (4 << 20)); time.sleep(0.05)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path)
    yield process
    process.kill()
    process.wait()


def test_a_process_is_watched_from_outside(
    run_python: RunPython, tmp_path: Path, growing: subprocess.Popen[bytes]
) -> None:
    arguments = (str(growing.pid), "--every", "0.2s", "--fail-on", "growth", "--for", "60s")

    done = watch(run_python, *arguments, "--json", cwd=tmp_path)

    looks = [json.loads(line) for line in done.stdout.splitlines()]
    worst = looks[-1]["verdicts"][0]
    assert done.returncode == 1, done.stderr
    assert (worst["memory"], worst["kind"], worst["unit"]) == ("host", "host-leak", "second")


def test_a_watch_ends_with_its_process(run_python: RunPython, tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3)"])

    done = watch(run_python, str(process.pid), "--every", "0.2s", cwd=tmp_path)
    process.wait()

    assert done.returncode == 0, done.stderr
    assert "ended" in done.stdout.decode().splitlines()[0]
