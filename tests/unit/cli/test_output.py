"""Files are not overwritten by accident; streams get what they can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.cli.output import theme_for, write_result
from oomdoctor.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]


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
