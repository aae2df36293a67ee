"""What a guard refuses, what it allows, and what it sees while a trial runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from oomdoctor.errors import GuardError
from oomdoctor.lab.guard import BESIDE_BYTES, Guard, Wish
from oomdoctor.lab.watch import Watcher
from oomdoctor.probe.host import HostMemory
from tests.unit.lab.stub_smi import UUID, StubSmi, card

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MIB = 1 << 20
GIB = 1 << 30
PLENTY = HostMemory(total_bytes=64 * GIB, available_bytes=48 * GIB)


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StubSmi:
    stub = StubSmi(tmp_path)
    monkeypatch.setenv("PATH", f"{stub.folder}:{os.environ['PATH']}")
    return stub


@pytest.fixture
def stranger() -> Iterator[int]:
    """A living process that does not stem from this one."""
    started = "subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL)"
    code = f"import subprocess; print({started}.pid)"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    pid = int(done.stdout)
    yield pid
    os.kill(pid, 9)


def guard(**wish: Any) -> Guard:
    return Guard(
        Wish(backend=wish.pop("backend", "cuda"), **wish),
        memory=lambda: PLENTY,
        sleep=lambda _: None,
    )


def refusal(**wish: Any) -> str:
    with pytest.raises(GuardError) as caught:
        guard(**wish).begin()
    assert caught.value.exit_code == 5
    return str(caught.value)


def test_an_idle_card_is_taken_whole(smi: StubSmi) -> None:
    smi.tells(card())

    allowed = guard().begin()

    assert (allowed.devices, allowed.cap_bytes, allowed.reserve_bytes) == ((UUID,), None, None)


def test_a_foreign_process_is_named_in_the_refusal(smi: StubSmi) -> None:
    smi.tells(card(free=4000, processes=[(4711, "/opt/their/python", 20000)]))

    reason = refusal()

    assert "process 4711 (python, 19.53 GiB)" in reason
    assert "--share" in reason


def test_memory_in_use_by_nobody_that_is_seen_is_foreign(smi: StubSmi) -> None:
    smi.tells(card(free=12000))

    assert "processes that are not seen from here" in refusal()


def test_sharing_caps_below_what_is_free_less_the_reserve(smi: StubSmi) -> None:
    smi.tells(card(free=16384, processes=[(4711, "python", 8192)]))

    allowed = guard(shares=True).begin()

    reserve = int(24 * GIB * 0.10)
    assert allowed.reserve_bytes == reserve
    assert allowed.cap_bytes == 16 * GIB - reserve - BESIDE_BYTES


def test_a_smaller_wish_than_what_a_shared_card_allows_stays(smi: StubSmi) -> None:
    smi.tells(card(free=16384, processes=[(4711, "python", 8192)]))

    assert guard(shares=True, cap_bytes=GIB).begin().cap_bytes == GIB


def test_a_shared_card_without_room_for_a_trial_is_refused(smi: StubSmi) -> None:
    smi.tells(card(free=2500, processes=[(4711, "python", 22000)]))

    assert "nothing is left" in refusal(shares=True)


def test_a_card_in_slices_is_refused_until_a_slice_is_chosen(smi: StubSmi) -> None:
    smi.tells(card(mig="Enabled"))

    reason = refusal()

    assert "MIG" in reason
    assert "CUDA_VISIBLE_DEVICES" in reason


@pytest.mark.parametrize("visible", ["", "-1", "none"])
def test_no_visible_card_is_refused(smi: StubSmi, visible: str) -> None:
    smi.tells(card())

    assert "no card to run on" in refusal(visible=visible)


def test_only_visible_cards_are_judged(smi: StubSmi) -> None:
    busy = card(uuid="GPU-busy", free=100, processes=[(4711, "python", 24000)])
    smi.tells(busy, card())

    assert guard(visible="1").begin().devices == (UUID,)
    assert guard(visible=UUID[:8]).begin().devices == (UUID,)
    assert "GPU-busy" in refusal(visible="0,1")


def test_a_machine_without_nvidia_smi_is_refused_for_a_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "cannot be looked at" in refusal()
    assert guard(backend="cpu").begin().devices == ()


def is_running(pid: int) -> bool:
    """Say whether a process is there that is not only waiting to be collected."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def test_an_nvidia_smi_that_hangs_is_not_waited_for(
    smi: StubSmi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oomdoctor.probe.gpu.SECONDS", 0.2)
    smi.tells(card(), seconds=30)

    assert "did not answer" in refusal()


def test_what_an_nvidia_smi_that_hangs_has_started_is_ended_with_it(
    tmp_path: Path, smi: StubSmi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oomdoctor.probe.gpu.SECONDS", 0.5)
    pid = tmp_path / "pid"
    (smi.folder / "nvidia-smi").write_text(f"#!/bin/sh\nsleep 60 & echo $! > {pid}; wait\n")

    assert "did not answer" in refusal()
    assert not is_running(int(pid.read_text()))


def test_a_process_that_came_between_trials_ends_the_run(smi: StubSmi) -> None:
    smi.tells(card())
    watched = guard()
    watched.begin()
    watched.check()
    smi.tells(card(free=20000, processes=[(4711, "python", 4000)]))

    with pytest.raises(GuardError, match="now in use: process 4711"):
        watched.check()


def test_a_shared_card_that_shrank_between_trials_ends_the_run(smi: StubSmi) -> None:
    smi.tells(card(free=16384, processes=[(4711, "python", 8192)]))
    watched = guard(shares=True)
    watched.begin()
    smi.tells(card(free=12000, processes=[(4711, "python", 12576)]))

    with pytest.raises(GuardError, match=r"16.00 GiB when the run began"):
        watched.check()


def test_what_the_last_trial_held_may_take_a_moment_to_return(smi: StubSmi) -> None:
    smi.tells(card(free=16000))
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        smi.tells(card())

    waiting = Guard(Wish(backend="cuda"), memory=lambda: PLENTY, sleep=sleep)
    smi.tells(card())
    waiting.begin()
    smi.tells(card(free=16000))
    waiting.check()

    assert len(waits) == 1


def test_a_host_without_memory_is_refused() -> None:
    short = HostMemory(total_bytes=16 * GIB, available_bytes=GIB)

    with pytest.raises(GuardError, match="too little for a trial"):
        Guard(Wish(backend="cpu"), memory=lambda: short).begin()


def test_a_host_limit_leaves_a_reserve() -> None:
    allowed = guard(backend="cpu", cap_bytes=GIB).begin()

    assert allowed.cap_bytes == GIB
    assert allowed.host_cap_bytes == 48 * GIB - int(64 * GIB * 0.05)


def test_the_formula_needs_no_look_at_anything() -> None:
    short = HostMemory(total_bytes=GIB, available_bytes=0)

    Guard(Wish(backend="formula"), memory=lambda: short).begin()


def watched_reason(running: Guard, *, shares: bool, then: Any) -> str | None:
    with Watcher(running.looks, running.allowed, shares=shares, every=0.01) as watcher:
        then()
        for _ in range(1000):
            if watcher.reason() is not None:
                break
            time.sleep(0.01)
        return watcher.reason()


def test_memory_that_shrinks_during_a_trial_ends_it(smi: StubSmi) -> None:
    smi.tells(card(free=16384, processes=[(4711, "python", 8192)]))
    running = guard(shares=True)
    running.begin()

    reason = watched_reason(running, shares=True, then=lambda: smi.tells(card(free=1000)))

    assert reason is not None
    assert "1000.00 MiB free while a trial runs" in reason


def test_a_process_that_comes_onto_the_card_during_a_trial_ends_it(
    smi: StubSmi, stranger: int
) -> None:
    smi.tells(card())
    running = guard()
    running.begin()
    newcomer = card(processes=[(os.getpid(), "ours", 1), (stranger, "theirs", 500)])

    reason = watched_reason(running, shares=False, then=lambda: smi.tells(newcomer))

    assert reason is not None
    assert f"process {stranger} (theirs) came onto card 0" in reason
