"""How runs end badly, and what is said of it: host memory, the kernel, silence, a dead recorder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hang import no_hang
from tests.recorder.running import environment, last_run, record, under_way

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
PROGRAMS = Path(__file__).resolve().parents[2] / "fixtures" / "runs"
GROUPS = Path("/sys/fs/cgroup")
MIB = 1 << 20


@pytest.fixture(autouse=True)
def _guard() -> Iterator[None]:
    with no_hang():
        yield


@contextmanager
def limited_group(limit_bytes: int) -> Iterator[Path]:
    """Make a memory group with a limit, of the version that is there; skip where nobody may."""
    first = (GROUPS / "memory" / "memory.limit_in_bytes").exists()
    parent = GROUPS / "memory" if first else GROUPS
    folder = parent / f"oomdoctor-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no memory group can be made: {error.strerror}")
    try:
        limit = folder / ("memory.limit_in_bytes" if first else "memory.max")
        try:
            limit.write_text(str(limit_bytes))
        except OSError as error:
            pytest.skip(f"no memory group can be limited: {error.strerror}")
        yield folder
    finally:
        for _ in range(100):
            with suppress(OSError):
                folder.rmdir()
                break
            time.sleep(0.05)


def test_memory_that_is_refused_below_a_limit_of_address_space(tmp_path: Path) -> None:
    program = (sys.executable, str(PROGRAMS / "fills_host.py"), "1000", "700")

    done = record(tmp_path, *program)

    assert done.code == 1
    assert done.told["outcome"] == "out-of-host-memory"
    assert done.causes[0] == "address-space-limit"
    assert done.run.processes[0].errors[0].exception == "MemoryError"


def test_memory_that_the_kernel_kills_for_in_a_limited_group(tmp_path: Path) -> None:
    with limited_group(200 * MIB) as group:
        enter = 'echo $$ > "$0/cgroup.procs"; exec "$@"'
        program = (sys.executable, str(PROGRAMS / "fills_host.py"), "1000")
        done = record(tmp_path, "sh", "-c", enter, str(group), *program)

    assert done.code == 137
    assert done.told["outcome"] == "killed-by-kernel"
    assert done.told["kernel_kills"]["on_machine"] >= 1
    assert "the kernel killed" in done.told["why"] or "it killed process" in done.told["why"]
    assert done.causes[0] == "slurm-cgroup-limit"
    assert done.output.startswith(b"block 0\n")


def test_a_recorder_in_the_limited_group_tells_of_the_limit(tmp_path: Path) -> None:
    with limited_group(400 * MIB) as group:
        enter = ("sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', str(group))
        program = (sys.executable, str(PROGRAMS / "fills_host.py"), "1000")
        done = record(tmp_path, *program, wrapped=enter)

    assert done.code == 137
    assert done.told["outcome"] == "killed-by-kernel"
    assert done.told["kernel_kills"]["in_group"] >= 1
    assert {one.host.get("cgroup_limit_bytes") for one in done.run.samples} == {400 * MIB}


def test_a_command_that_hangs_is_noted_and_goes_on(tmp_path: Path) -> None:
    script = "echo begun; sleep 3; echo done"

    done = record(tmp_path, "sh", "-c", script, options=("--silent-after", "1s"))

    assert (done.code, done.output) == (0, b"begun\ndone\n")
    assert done.told["outcome"] == "succeeded"
    silence = done.told["silences"][0]
    assert silence["worked"] is False
    assert {one["name"] for one in silence["processes"]} >= {"sleep"}


def test_a_command_that_hangs_is_ended_where_that_is_asked_for(tmp_path: Path) -> None:
    program = (sys.executable, str(PROGRAMS / "waits.py"))

    done = record(tmp_path, *program, options=("--stop-after", "1s"))

    assert done.code == 143
    assert done.told["outcome"] == "hung"
    assert done.last_line.startswith("oomdoctor: hung")


def test_a_run_that_works_on_without_a_word_is_no_waiting_one(tmp_path: Path) -> None:
    script = "import time\nuntil = time.time() + 3\nwhile time.time() < until: pass"

    done = record(tmp_path, sys.executable, "-c", script, options=("--silent-after", "1s"))

    assert done.told["silence"]["worked"] is True


def test_the_bundle_of_a_killed_recorder_is_shown(tmp_path: Path) -> None:
    script = "print('ready', flush=True); input()"
    with under_way(tmp_path, sys.executable, "-c", script) as (process, _):
        process.kill()

    shown = subprocess.run(
        [sys.executable, "-m", "oomdoctor", "show", "last"],
        cwd=tmp_path,
        capture_output=True,
        env=environment(),
        check=False,
    )

    assert not last_run(tmp_path).has_ended
    assert shown.returncode == 0
    assert b"end unknown" in shown.stdout
    assert b"the recorder was killed first" in shown.stdout


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Make a disk of one MiB; skip where nobody may mount one."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1m", "oomdoctor", str(folder)]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no disk can be mounted")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


FILLS_DISK = """
import sys
try:
    with open('big', 'wb', buffering=0) as file:
        while file.write(bytes(4096)): pass
except OSError as error:
    print(error)
sys.exit(3)
"""


def test_the_end_of_a_run_that_fills_the_disk_is_kept_in_the_room_taken_before(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        done = record(disk, sys.executable, "-c", FILLS_DISK)

    assert done.code == 3
    assert done.output == b"[Errno 28] No space left on device\n"
    assert done.run.has_ended
    assert done.told["exit_code"] == 3
    assert done.last_line.startswith("oomdoctor: crashed; exit code 3")


def test_an_end_that_cannot_be_written_at_all_is_said(tmp_path: Path) -> None:
    removes = "import glob, os; os.unlink(glob.glob('.oomdoctor/runs/*/.run.json.end')[0])"

    with small_disk(tmp_path / "disk") as disk:
        done = record(disk, sys.executable, "-c", f"{removes}\n{FILLS_DISK}")

    assert done.code == 3
    assert not done.run.has_ended
    assert done.last_line.startswith("oomdoctor: exit code 3 after ")
    assert "that is not in the bundle: No space left on device" in done.last_line
