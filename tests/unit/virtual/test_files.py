"""What a program saves on a virtual card never takes the place of a real file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from oomdoctor.virtual.inside import files
from oomdoctor.virtual.inside.files import Nowhere, Scratch, size_of


class Tensor:
    """Stands for one."""

    dtype = "float32"

    def __init__(self, nbytes: int) -> None:
        """Be of that size."""
        self.nbytes = nbytes


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    (tmp_path / "scratch").mkdir()
    return Scratch(str(tmp_path / "scratch"))


@pytest.fixture
def torch(scratch: Scratch) -> Any:
    """Stands for torch: writes a text, and reads it."""

    def save(obj: Any, f: Any) -> None:
        if isinstance(f, Nowhere):
            f.write(b"1234")
        else:
            Path(f).write_text(str(obj))

    module = SimpleNamespace(
        save=save,
        load=lambda f: Path(f).read_text(),
        serialization=SimpleNamespace(_serialization_tls=SimpleNamespace(skip_data=False)),
    )
    files.keep_apart_torch(module, scratch)
    return module


def test_a_checkpoint_of_the_same_name_stays_as_it_was(torch: Any, tmp_path: Path) -> None:
    real = tmp_path / "model.pt"
    real.write_text("trained for a week")

    torch.save("zeros", real)

    assert real.read_text() == "trained for a week"
    assert torch.load(real) == "zeros", "the run itself reads what it wrote"


def test_what_the_run_did_not_write_is_read_from_its_place(torch: Any, tmp_path: Path) -> None:
    (tmp_path / "weights.pt").write_text("theirs")

    assert torch.load(str(tmp_path / "weights.pt")) == "theirs"


def test_more_than_fits_is_written_nowhere(torch: Any, scratch: Scratch, tmp_path: Path) -> None:
    scratch.left = 100

    torch.save({"weight": Tensor(101)}, tmp_path / "model.pt")

    assert list(scratch.folder.iterdir()) == []
    assert not (tmp_path / "model.pt").exists()


def test_a_file_without_data_goes_where_the_program_wants_it(torch: Any, tmp_path: Path) -> None:
    torch.serialization._serialization_tls.skip_data = True

    torch.save("shapes", tmp_path / "empty.pt")

    assert (tmp_path / "empty.pt").read_text() == "shapes"


def test_all_files_together_have_a_limit(scratch: Scratch) -> None:
    scratch.left = 100

    assert scratch.to_write("/a/one", 60) is not None
    assert scratch.to_write("/a/two", 60) is None
    assert scratch.to_write("/a/three", 40) is not None


def test_sizes_are_added_up_in_nests() -> None:
    assert size_of({"model": {"a": Tensor(3), "b": [Tensor(4), Tensor(5)]}, "step": 7}) == 12


def test_safetensors_are_kept_apart_as_well(scratch: Scratch, tmp_path: Path) -> None:
    saved: list[str] = []
    module = SimpleNamespace(save_file=lambda tensors, name: saved.append(f"{name} {len(tensors)}"))
    files.keep_apart_safetensors(module, scratch)

    module.save_file({"a": Tensor(3)}, tmp_path / "model.safetensors")

    assert saved == [f"{scratch.place_of(tmp_path / 'model.safetensors')} 1"]


def test_nowhere_takes_everything() -> None:
    nowhere = Nowhere()

    assert nowhere.write(b"abc") == 3
    assert nowhere.tell() == 3
