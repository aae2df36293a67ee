"""What nobody models is never a silent wrong answer: it is named, with its line and the calls."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from oomdoctor.virtual.compiling import find_compiler
from tests.gpu.shell import Said, bundle_in, oomdoctor, program, skip_without_libraries

if TYPE_CHECKING:
    from pathlib import Path

CARD = ("run", "--no-diagnosis", "--virtual-gpu", "NVIDIA L4", "--")
ASKS = """\
import ctypes, sys

asked = getattr(ctypes.CDLL(None), sys.argv[1])
answer = ctypes.c_int(7)

def ask():
    return asked(ctypes.byref(answer), ctypes.byref(answer), None)

status = ask()
print("answer", answer.value)
sys.exit(3 if status else 0)
"""
LINE = "program.py:7 in ask"
CRASHED = 128 + 11
LOOKUP_FAILED = 127  # what the loader ends a process with


@pytest.fixture(autouse=True)
def _built() -> None:
    skip_without_libraries()


def report_in(folder: Path) -> dict[str, list[str]]:
    text = (bundle_in(folder) / "virtual.json").read_text(encoding="utf-8")
    found: dict[str, list[str]] = json.loads(text)
    return found


def asking(folder: Path, name: str) -> Said:
    return oomdoctor(folder, *CARD, *program(folder, ASKS), name)


@pytest.mark.parametrize(
    "name",
    ["cusolverDnGetMathMode", "cuIpcOpenMemHandle_v2", "cudaGetSurfaceObjectResourceDesc"],
)
def test_a_call_with_outputs_fails_with_its_name_its_line_and_the_calls(
    tmp_path: Path, name: str
) -> None:
    said = asking(tmp_path, name)

    assert said.code == 3, "that of the program, which saw the call fail"
    assert said.output == "answer 7\n", "nothing was made up"
    assert f"{name} is not modelled and failed, at {LINE}; the calls that led there" in said.errors
    assert f"({name}+0x" in said.errors, "the stack"
    assert f"calls that failed since nobody models them: {name}" in said.errors, "the report"
    assert report_in(tmp_path)["refused"] == [name]


def test_a_program_that_forgives_a_failed_call_is_told_of_it_still(tmp_path: Path) -> None:
    forgiving = ASKS.replace("3 if status else 0", "0")

    said = oomdoctor(tmp_path, *CARD, *program(tmp_path, forgiving), "cusolverDnGetMathMode")

    assert said.code == 0
    assert "calls that failed since nobody models them: cusolverDnGetMathMode" in said.errors


def test_a_call_without_outputs_is_passed_over_and_listed(tmp_path: Path) -> None:
    said = asking(tmp_path, "cuCtxSetFlags")

    assert said.code == 0
    assert "is not modelled and failed" not in said.errors
    assert "calls that did nothing: cuCtxSetFlags" in said.errors
    assert report_in(tmp_path)["ignored"] == ["cuCtxSetFlags"]


def crashed(folder: Path, text: str) -> Said:
    said = oomdoctor(folder, *CARD, *program(folder, text))
    left = {path.name for path in folder.iterdir()}
    assert left == {"program.py", ".oomdoctor"}, "no core dump"
    return said


def test_a_host_that_follows_an_address_of_a_card_sees_where(tmp_path: Path) -> None:
    said = crashed(
        tmp_path,
        """\
import ctypes
place = ctypes.c_void_p()
assert ctypes.CDLL(None).cudaMalloc(ctypes.byref(place), ctypes.c_size_t(4096)) == 0
def follow():
    return ctypes.string_at(place.value, 4)
follow()
""",
    )

    assert said.code == CRASHED
    assert "the host followed the address 0x" in said.errors
    assert "of virtual card 0, where nothing lies; the calls that led there:" in said.errors
    assert "+0x" in said.errors, "the stack"
    assert 'program.py", line 5 in follow' in said.errors


def test_a_call_of_a_function_that_is_not_there_names_it(tmp_path: Path) -> None:
    said = crashed(
        tmp_path,
        """\
import ctypes
found = ctypes.c_void_p()
find = ctypes.CDLL(None).cuGetProcAddress_v2
find(b"cuMadeUp", ctypes.byref(found), 12000, ctypes.c_uint64(0), None)
def call():
    ctypes.CFUNCTYPE(None)(found.value or 0)()
call()
""",
    )

    assert said.code == CRASHED
    assert "function which is not there: cuMadeUp was the last to be asked for" in said.errors
    assert 'program.py", line 6 in call' in said.errors
    assert "functions that were asked for and are not there: cuMadeUp" in said.errors


def test_a_library_linked_to_a_function_that_is_not_there_ends_with_its_name(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "library"
    folder.mkdir()
    source, library = folder / "theirs.c", folder / "theirs.so"
    source.write_text("int cuMadeUp(void);\nint go(void) { return cuMadeUp(); }\n")
    flags = ["-shared", "-fPIC", "-Wl,-z,lazy", "-o", str(library)]
    subprocess.run([find_compiler(), *flags, str(source)], check=True)
    text = f"import ctypes\nctypes.CDLL({str(library)!r}, mode=1).go()\n"

    said = oomdoctor(tmp_path, *CARD, *program(tmp_path, text))

    assert said.code == LOOKUP_FAILED
    assert "theirs.so: undefined symbol: cuMadeUp" in said.errors


def test_an_error_of_the_program_is_its_own(tmp_path: Path) -> None:
    said = oomdoctor(tmp_path, *CARD, *program(tmp_path, "raise SystemExit(5)\n"))

    assert said.code == 5
