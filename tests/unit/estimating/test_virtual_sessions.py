"""Which workers the virtual engine starts, and when it lets them go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.estimating import virtual_sessions
from oomdoctor.estimating.virtual_sessions import VirtualSessions
from oomdoctor.lab.protocol import Hello, RecordRequest, TraceRequest
from oomdoctor.record import replace
from tests.unit.estimating.doubles import GIB, a_card, a_job, stream_of

if TYPE_CHECKING:
    from oomdoctor.memory.stream import Stream

A100 = a_card(80 * GIB, "NVIDIA A100-SXM4-80GB")
H100 = replace(A100, name="NVIDIA H100 PCIe", capability=(9, 0), processors=114)


class Worker:
    """Stands for a WorkerSession."""

    def __init__(self, *, environment: dict[str, str] | None = None, **_: Any) -> None:
        """Start nothing."""
        self.environment = environment
        self.hello: Hello | None = None
        self.asked: list[object] = []
        self.is_closed = False

    def trace(self, request: RecordRequest | TraceRequest) -> Stream:
        self.asked.append(request)
        self.hello = Hello(pid=1, versions={"torch": "2.13.0"})
        return stream_of(request.job)

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> list[Worker]:
    """Collect the workers that are started."""
    found: list[Worker] = []

    def start(**values: Any) -> Worker:
        found.append(Worker(**values))
        return found[-1]

    def environment(
        card: Any, settings: str, _python: str, *, is_own_size: bool
    ) -> dict[str, object]:
        return {"card": card.name, "settings": settings, "own": is_own_size}

    monkeypatch.setattr(virtual_sessions, "WorkerSession", start)
    monkeypatch.setattr(virtual_sessions, "environment_on", environment)
    return found


def request(card: Any = A100, **values: Any) -> RecordRequest:
    return RecordRequest(job=a_job(), card=card, **values)


def test_one_worker_runs_all_jobs_of_a_card(workers: list[Worker]) -> None:
    sessions = VirtualSessions("python", lambda _: None)

    sessions.record(request())
    sessions.record(request())

    assert [len(one.asked) for one in workers] == [2]
    assert workers[0].environment == {"card": A100.name, "settings": "", "own": False}
    assert sessions.versions == {"torch": "2.13.0"}


@pytest.mark.parametrize(
    "other",
    [
        request(H100),
        request(settings="expandable_segments:True"),
        request(is_own_size=True),
    ],
)
def test_another_card_setting_or_size_has_a_worker_of_its_own_and_ends_the_one_before(
    workers: list[Worker], other: RecordRequest
) -> None:
    sessions = VirtualSessions("python", lambda _: None)

    sessions.record(request())
    sessions.record(other)

    assert [one.is_closed for one in workers] == [True, False]
    assert workers[1].environment == {
        "card": other.card.name,
        "settings": other.settings,
        "own": other.is_own_size,
    }


def test_what_simulates_sees_no_virtual_card_and_stays(workers: list[Worker]) -> None:
    sessions = VirtualSessions("python", lambda _: None)

    for card in (A100, H100):
        sessions.record(request(card))
        sessions.trace(TraceRequest(job=a_job(), card=card))

    simulating = [one for one in workers if one.environment is None]
    assert [len(one.asked) for one in simulating] == [2]


def test_all_workers_end_with_the_sessions(workers: list[Worker]) -> None:
    sessions = VirtualSessions("python", lambda _: None)
    sessions.record(request())
    sessions.trace(TraceRequest(job=a_job(), card=A100))

    sessions.close()

    assert [one.is_closed for one in workers] == [True, True]
