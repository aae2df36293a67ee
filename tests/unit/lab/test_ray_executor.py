"""Trials on a local Ray: each with a card of its own, behind the same guard."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import GuardError, UsageError
from oomdoctor.lab.backends import COMMAND, BackendSpec
from oomdoctor.lab.guard import Wish
from oomdoctor.lab.keys import key_of
from oomdoctor.lab.ray_executor import RayExecutor
from oomdoctor.model.trial import FIT, OOM, CommandSpec, TrialSpec
from tests.unit.lab.driving import Quiet
from tests.unit.lab.stub_smi import StubSmi, card

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.model.trial import TrialResult

OOM_TEXT = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
SCRIPT = f"""\
echo "on $CUDA_VISIBLE_DEVICES"
[ "$1" -le 4 ] && exit 0
echo "{OOM_TEXT} GPU 0 has a total capacity of 23.64 GiB of which 1.00 GiB is free."
exit 1
"""
UUIDS = tuple(f"GPU-{os.getpid()}-{one}" for one in "ab")  # locks are the machine's


class Heard(Quiet):
    """Hears as an executor's listener does."""

    def ended(self, result: TrialResult, *, replayed: bool = False) -> None:
        super().ended(result, replayed=replayed)


def spec(rows: int) -> TrialSpec:
    command = CommandSpec(arguments=("sh", "-c", SCRIPT, "sh", str(rows)), folder="/")
    return TrialSpec(values={"rows": rows}, command=command, seconds=60)


def backend(name: str, folder: Path) -> BackendSpec:
    return BackendSpec(name=name, runs=COMMAND, folder=str(folder))


def test_without_ray_it_is_said_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)

    with (
        pytest.raises(UsageError, match=r"oomdoctor\[ray\]"),
        RayExecutor(backend("cpu", tmp_path), Wish(backend="cpu")),
    ):
        pass


def test_sharing_needs_one_cap_for_all_machines(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs --cap"):
        RayExecutor(backend("cuda", tmp_path), Wish(backend="cuda", shares=True))


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StubSmi:
    stub = StubSmi(tmp_path)
    monkeypatch.setenv("PATH", f"{stub.folder}:{os.environ['PATH']}")
    return stub


@pytest.fixture
def cluster(smi: StubSmi) -> Iterator[StubSmi]:
    """A Ray of this machine that is told to have two cards; they look as the stub says."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("needs Ray")
    import ray

    ray.init(num_cpus=2, num_gpus=2, include_dashboard=False, log_to_driver=False)
    yield smi
    ray.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own: sockets and files that it leaves to its end
def test_trials_run_on_cards_of_their_own_and_come_back_in_order(
    cluster: StubSmi, tmp_path: Path
) -> None:
    cluster.tells(*(card(uuid=one) for one in UUIDS))
    specs = [spec(rows) for rows in (5, 4, 3)]
    heard = Heard()

    with RayExecutor(backend("cuda", tmp_path), Wish(backend="cuda")) as executor:
        assert executor.width == 2
        results = executor.run(specs, heard)

    assert [one.outcome for one in results] == [OOM, FIT, FIT]
    assert [one.key for one in results] == [key_of(one) for one in specs]
    assert len(heard.ran) == 3
    outputs = [Path(str(one.output_path)).read_text().splitlines()[0] for one in results]
    assert set(outputs) <= {f"on {one}" for one in UUIDS}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # same
def test_the_guard_of_a_machine_refuses_for_all(cluster: StubSmi, tmp_path: Path) -> None:
    busy = {"free": 100, "processes": [(4711, "theirs", 24000)]}
    cluster.tells(*(card(uuid=one, **busy) for one in UUIDS))

    with (
        RayExecutor(backend("cuda", tmp_path), Wish(backend="cuda")) as executor,
        pytest.raises(GuardError, match=r"process 4711 \(theirs"),
    ):
        executor.run([spec(1)], Heard())
