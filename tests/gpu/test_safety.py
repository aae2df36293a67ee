"""A virtual card leaves the machine alone: no driver, no device file, no file of the system.

The driver of the machine is one that we made: it leaves a mark when anybody loads it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.virtual.compiling import find_compiler
from tests.gpu.shell import oomdoctor, program, shell, skip_without_libraries

if TYPE_CHECKING:
    from pathlib import Path

# the process looks at itself: what it opened, what it has open, what it has mapped
LOOKS = """\
import ctypes, json, os, pathlib, subprocess, sys

opened = []
sys.addaudithook(lambda name, given: opened.append(str(given[0])) if name == "open" else None)

import torch

for name in ("libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1"):
    ctypes.CDLL(name)
layer = torch.nn.Conv2d(3, 8, 3, device="cuda")
layer(torch.ones(2, 3, 32, 32, device="cuda")).sum().backward()
torch.cuda.synchronize()
try:
    torch.empty(1 << 50, device="cuda")
except torch.OutOfMemoryError:
    pass
inner = subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1')"])
mapped = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
held = [os.path.realpath(one) for one in pathlib.Path("/proc/self/fd").iterdir()]
found = {
    "files": [one for one in (*opened, *held) if "/dev/nvidia" in one],
    "drivers": [one for one in mapped if "libcuda.so" in one or "libnvidia-ml" in one],
    "name": torch.cuda.get_device_name(),
    "inner": inner.returncode,
}
print(json.dumps(found))
"""
FAKE = """\
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void mark(void) { close(open("%s", O_CREAT | O_WRONLY, 0600)); }
int cuInit(unsigned flags) { return flags ? 100 : 100; }
int nvmlInit_v2(void) { return 1; }
"""
SYSTEM = re.compile("/(bin|boot|etc|lib|lib64|opt|sbin|sys|usr)/")
NULL = re.compile(r"/dev/(null|zero|tty|shm/.*|pts/.*)")


@pytest.fixture
def libraries() -> Path:
    return skip_without_libraries()


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with a driver, as a machine with a card has it."""
    folder = tmp_path / "driver"
    folder.mkdir()
    source = folder / "driver.c"
    source.write_text(FAKE % (tmp_path / "loaded"))
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        words = ["-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", str(folder / name), str(source)]
        subprocess.run([find_compiler(), *words], check=True)
    shutil.copy(folder / "libcuda.so.1", folder / "libcuda.so")
    return folder


def told(output: str) -> Any:
    return json.loads(output.splitlines()[-1])


def run_words(folder: Path) -> tuple[str, ...]:
    words = program(folder, LOOKS)
    return ("run", "--no-diagnosis", "--virtual-gpu", "NVIDIA L4", "--", *words)


def test_the_driver_of_the_machine_is_not_loaded(
    tmp_path: Path, libraries: Path, machine: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()

    said = oomdoctor(work, *run_words(work), LD_LIBRARY_PATH=str(machine))

    found = told(said.output)
    assert said.code == 0, said.errors[-2000:]
    assert found["name"] == "NVIDIA L4"
    assert found["files"] == []
    assert {one.startswith(str(libraries.parent)) for one in found["drivers"]} == {True}
    assert found["inner"] == 0
    assert not (tmp_path / "loaded").exists()


def test_without_a_virtual_card_the_same_machine_loads_its_driver(
    tmp_path: Path, machine: Path
) -> None:
    words = program(tmp_path, "import ctypes; ctypes.CDLL('libcuda.so.1')")

    said = shell(tmp_path, *words, LD_LIBRARY_PATH=str(machine))

    assert said.code == 0, said.errors
    assert (tmp_path / "loaded").exists(), "the mark shows what the other test looks for"


def test_no_device_file_is_opened_and_no_file_of_the_system_is_written(
    tmp_path: Path, libraries: Path
) -> None:
    tracer = shutil.which("strace")
    if tracer is None:
        pytest.skip("strace is not installed")
    log, work = tmp_path / "calls", tmp_path / "work"
    work.mkdir()
    calls = (
        "trace=open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat"
    )
    traced = (tracer, "-f", "-qq", "-s", "400", "-e", calls, "-o", str(log))
    python, *_ = program(work, "")

    said = shell(work, *traced, python, "-m", "oomdoctor", *run_words(work))

    assert said.code == 0, said.errors[-2000:]
    paths = {one.group(1) for one in map(PATH.search, _lines(log)) if one}
    assert any(one.startswith(str(libraries.parent)) for one in paths), "our library was seen"
    devices = {one for one in paths if one.startswith("/dev/") and not NULL.fullmatch(one)}
    assert {one for one in devices if "nvidia" in one} == set()
    written = {one.group(1) for one in map(PATH.search, filter(WRITES.search, _lines(log))) if one}
    assert any(one.startswith(str(work)) for one in written), "the bundle was seen"
    assert {one for one in written if SYSTEM.match(one)} == set()


PATH = re.compile(r'"(/[^"]*)"')
WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|creat\(|unlink|rename|mkdir")


def _lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8", errors="replace").splitlines()
