"""Files are not overwritten by accident; streams get what they can show."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from oomdoctor.cli.output import theme_for, write_result
from oomdoctor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB."


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("precious")

    with pytest.raises(InputError, match="exists"):
        write_result("new", path=str(path))

    assert path.read_text() == "precious"


def test_force_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")

    write_result("new", path=str(path), force=True)

    assert path.read_text() == "new"


def test_a_folder_that_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write"):
        write_result("new", path=str(tmp_path / "no" / "out"))


def test_a_file_gets_unicode_and_no_colour() -> None:
    theme = theme_for(color="auto", width=None, to_file=True)

    assert (theme.unicode, theme.colour, theme.width) == (True, False, 100)


def test_a_stream_without_unicode_gets_ascii(run_python: RunPython) -> None:
    code = (
        "from oomdoctor.cli.output import theme_for;"
        "print(theme_for(color='auto', width=None, to_file=False).unicode)"
    )

    done = run_python("-c", code, environment={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})

    assert done.stdout == b"False\n"


PAGES = {
    "estimate": (
        *("estimate", "--model", "meta-llama/Llama-2-7b-hf", "--method", "lora", "--seq", "512"),
        *("--gpu", "24GiB", "--engine", "formula", "--what-if", "batch=2", "--table"),
    ),
    "plan": ("plan", "--model", "gpt2", "--gpu", "24GiB", "--engine", "formula"),
    "facts": ("facts",),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_keeps_to_the_columns_and_the_locale_that_are_set(
    run_python: RunPython, tmp_path: Path, name: str
) -> None:
    surroundings = {"COLUMNS": "60", "LC_ALL": "C", "PYTHONUTF8": ""}

    done = run_python("-m", "oomdoctor", *PAGES[name], cwd=tmp_path, environment=surroundings)

    lines = done.stdout.decode("ascii").splitlines()
    assert done.returncode == 0
    assert max(map(len, lines)) <= 60


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_every_format_can_be_written_to_every_stream(
    run_python: RunPython, tmp_path: Path, form: str, encoding: str
) -> None:
    log = tmp_path / "crash.log"
    log.write_text(f'File "\u65e5\u672c/\xe9.py", line 1, in f\n{OOM}', encoding="utf-8")

    done = run_python(
        *("-m", "oomdoctor", "diagnose", str(log), "--format", form, "--explain"),
        environment={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
    )

    assert (done.returncode, done.stderr) == (4, b"")
    assert done.stdout.decode(encoding)


@pytest.mark.parametrize(
    ("closed", "code", "words"),
    [(">&-", 4, ""), ("2>&-", 4, ""), (">&- 2>&-", 4, ""), ("- <&-", 2, "input is closed")],
)
def test_a_stream_that_is_closed_is_no_failure(
    root: Path, tmp_path: Path, closed: str, code: int, words: str
) -> None:
    path = tmp_path / "crash.log"
    path.write_text(OOM)
    log = "" if closed.startswith("-") else shlex.quote(str(path))
    line = f"{sys.executable} -m oomdoctor diagnose {log} {closed}"

    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, cwd=root)

    assert done.returncode == code
    assert words in done.stderr.decode()
    assert b"internal" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")  # noqa: PTH110 - a device
def test_a_full_disk_is_told_in_words(root: Path, tmp_path: Path) -> None:
    log = tmp_path / "crash.log"
    log.write_text(OOM)
    line = f"{sys.executable} -m oomdoctor diagnose {shlex.quote(str(log))} >/dev/full"

    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, cwd=root)

    assert done.returncode == 3
    assert done.stderr.startswith(b"error: cannot write to standard output: No space left")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")  # noqa: PTH110 - a device
def test_messages_that_nobody_can_read_change_no_exit_code(root: Path) -> None:
    line = f"{sys.executable} -m oomdoctor diagnose nowhere.log 2>/dev/full"

    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, cwd=root)

    assert done.returncode == 2


@pytest.mark.skipif(os.name == "nt", reason="needs a limit on the size of files")
@pytest.mark.parametrize("force", ["", "--force"])
def test_a_disk_that_fills_up_leaves_no_half_of_an_answer(
    root: Path, tmp_path: Path, force: str
) -> None:
    log, out = tmp_path / "crash.log", tmp_path / "out.json"
    log.write_text(OOM)
    line = (
        f"ulimit -f 4; {sys.executable} -B -m oomdoctor diagnose {shlex.quote(str(log))}"
        f" -f json -o {shlex.quote(str(out))} {force}"
    )

    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, cwd=root)

    assert (done.returncode, out.exists()) == (2, False)
