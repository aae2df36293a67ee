"""Libraries are patched where they would ask a kernel for a value."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from oomdoctor.virtual.environment import HOOKS
from oomdoctor.virtual.hooks.sitecustomize import (
    send_objects_through_the_store,
    stop_at_the_longest_length,
)

if TYPE_CHECKING:
    from pathlib import Path


class MaxLengthCriteria:
    """Stands for that of transformers: the card says that nothing is finished."""

    max_length = 5

    def __call__(self, input_ids: Any, scores: Any) -> bool:
        del input_ids, scores
        return False


def test_generation_ends_at_the_longest_length() -> None:
    class Criteria(MaxLengthCriteria):
        pass

    generation = SimpleNamespace(MaxLengthCriteria=Criteria, GenerationMixin=SimpleNamespace())
    stop_at_the_longest_length(generation)
    criterion = Criteria()
    lengths = []

    for length in range(1, 20):
        lengths.append(length)
        criterion(SimpleNamespace(shape=(2, length)), None)
        if not generation.GenerationMixin._has_unfinished_sequences(None):
            break

    assert lengths == [1, 2, 3, 4, 5]
    assert generation.GenerationMixin._has_unfinished_sequences(None), "the next one begins anew"


class Rank:
    """Stands for torch.distributed's module, with a store that all ranks share."""

    broadcast_object_list: Any = None

    def __init__(self, rank: int, store: dict[str, bytes]) -> None:
        """Take the store."""
        self.rank, self.store = rank, store

    def get_rank(self) -> int:
        return self.rank

    def _get_default_store(self) -> Any:
        return SimpleNamespace(set=self.store.__setitem__, get=self.store.__getitem__)


def test_objects_reach_the_other_ranks() -> None:
    store: dict[str, bytes] = {}
    ranks = [Rank(number, store) for number in range(2)]
    lists: list[list[Any]] = [["first", {"a": 1}], [None, None]]

    for rank, objects in zip(ranks, lists, strict=True):
        send_objects_through_the_store(rank)
        rank.broadcast_object_list(objects, src=0)

    assert lists[1] == ["first", {"a": 1}]


def test_the_hooks_stand_before_another_sitecustomize_and_run_it(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('theirs')")
    code = "import sys; print(any(type(one).__name__ == '_Finder' for one in sys.meta_path))"

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{HOOKS}:{tmp_path}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout.split() == ["theirs", "True"]
    assert done.stderr == ""


def test_a_module_that_cannot_be_patched_still_loads(tmp_path: Path) -> None:
    package = tmp_path / "transformers" / "generation"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package / "utils.py").write_text("value = 3")

    done = subprocess.run(
        [sys.executable, "-c", "import transformers.generation.utils as u; print(u.value)"],
        env={"PYTHONPATH": f"{HOOKS}:{tmp_path}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout.split() == ["3"]
    assert "transformers.generation.utils" in done.stderr
