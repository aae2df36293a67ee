"""The line of a program that is under way is told in a few words."""

from __future__ import annotations

import ctypes
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING

from oomdoctor.virtual.inside import places

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    import pytest

ASK = "def ask(where):\n    return where()\n"


def module_at(path: Path, text: str) -> ModuleType:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_users_own_line_is_named(tmp_path: Path) -> None:
    program = module_at(tmp_path / "train.py", ASK)

    assert program.ask(places.where) == f"{tmp_path}/train.py:2 in ask"


def test_a_librarys_line_stands_behind_the_one_that_called_it(tmp_path: Path) -> None:
    library = module_at(tmp_path / "lib/site-packages/trl/loop.py", ASK)
    text = "def run(ask, where):\n    return ask(where)\n"
    program = module_at(tmp_path / "train.py", text)

    said = program.run(library.ask, places.where)

    assert said == f"{tmp_path}/train.py:2, through trl/loop.py:2 in ask"


def test_torch_itself_is_passed_over(tmp_path: Path) -> None:
    torch = module_at(tmp_path / "lib/site-packages/torch/nn/utils.py", ASK)

    assert "torch/nn/utils.py" not in torch.ask(places.where)


def test_what_records_a_program_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = module_at(tmp_path / "oomdoctor/inject/frameworks.py", ASK)
    program = module_at(tmp_path / "train.py", "def run(ask, where):\n    return ask(where)\n")
    monkeypatch.setattr(places, "OURS", (*places.OURS, f"{tmp_path}/oomdoctor/inject/"))

    assert program.run(hook.ask, places.where) == f"{tmp_path}/train.py:2 in run"


def test_the_library_in_c_gets_as_much_as_fits() -> None:
    buffer = ctypes.create_string_buffer(12)

    places.finder()(buffer, 12)

    assert len(buffer.value) == 11


def test_files_below_the_working_folder_are_named_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert module_at(tmp_path / "train.py", ASK).ask(places.where) == "train.py:2 in ask"
