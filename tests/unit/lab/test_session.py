"""A session with a worker; the worker is a script of a few lines here."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import psutil
import pytest

from oomdoctor.lab.protocol import TraceRequest, TraceResult
from oomdoctor.lab.session import WorkerError, WorkerSession
from oomdoctor.memory.stream import Allocation, Mark, Stream
from oomdoctor.memory.stream_json import to_json
from oomdoctor.model.job import CardSpec, Job, ModelSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    Worker = Callable[[str], str]

ROOT = Path(__file__).resolve().parents[3]
REQUEST = TraceRequest(
    job=Job(model=ModelSpec(name="tiny", config={}, source="test")),
    card=CardSpec(name="A100", capability=(8, 0), processors=108, total_bytes=80 << 30),
)
STREAM = Stream(
    allocations=[Allocation(512, "aten.empty", "", "load", "")],
    events=[0, ~0],
    marks=[Mark(0, "phase", "load")],
    origin="test",
    facts={},
)
HEAD = """
    import json, os, signal, socket, sys, time
    sys.path.insert(0, {root!r})
    from oomdoctor.lab.protocol import *
    line = socket.socket(fileno=int(sys.argv[-1]))
    lines = line.makefile("rb")
    def send(message):
        line.sendall(to_line(message))
    send(Hello(pid=os.getpid(), versions={{"torch": "9"}}))
    stream = json.loads({stream!r})
"""
ANSWER = "send(TraceResult(stream=stream, seconds=1.0, rss_bytes=7))"


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    """Return a function that writes an interpreter whose only program is a worker."""

    def write(body: str) -> str:
        script = tmp_path / "worker"
        head = dedent(HEAD).format(root=str(ROOT), stream=json.dumps(to_json(STREAM)))
        script.write_text(f"#!{sys.executable}\n{head}{dedent(body)}\n", encoding="utf-8")
        script.chmod(0o755)
        return str(script)

    return write


def test_a_request_gets_its_stream(worker: Worker) -> None:
    with WorkerSession(python=worker(f"lines.readline()\n{ANSWER}")) as session:
        stream = session.trace(REQUEST)

    assert (list(STREAM.events), "test") == (list(stream.events), stream.origin)


def test_an_interpreter_is_looked_for_from_where_the_caller_is(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(worker(f"lines.readline()\n{ANSWER}"))
    monkeypatch.chdir(path.parents[1])
    with WorkerSession(python=str(path.relative_to(path.parents[1]))) as session:
        assert session.trace(REQUEST).origin == "test"


def test_the_worker_is_asked_for_what_the_caller_asked(worker: Worker) -> None:
    body = f"""
        request = from_line(lines.readline())
        stream["origin"] = request.card.name + str(request.card.capability)
        {ANSWER}
    """
    with WorkerSession(python=worker(body)) as session:
        assert session.trace(REQUEST).origin == "A100(8, 0)"


def test_one_worker_answers_many_requests(worker: Worker) -> None:
    body = f"""
        for number, _ in enumerate(lines):
            stream["origin"] = f"{{os.getpid()}} {{number}}"
            {ANSWER}
    """
    with WorkerSession(python=worker(body)) as session:
        first, second = (session.trace(REQUEST).origin.split() for _ in range(2))

    assert (first[0], "0", "1") == (second[0], first[1], second[1])


def test_heartbeats_are_heard_and_the_memory_of_the_worker_is_known(worker: Worker) -> None:
    body = f"""
        lines.readline()
        send(Progress(text="step 1", seconds=0.1, rss_bytes=9))
        {ANSWER}
    """
    heard: list[str] = []
    with WorkerSession(python=worker(body), progress=heard.append) as session:
        session.trace(REQUEST)

    assert heard == ["step 1"]
    assert session.rss_bytes == 9


def test_a_worker_is_not_as_large_as_the_process_that_starts_it(worker: Worker) -> None:
    body = """
        from oomdoctor.worker.serve import largest_rss
        lines.readline()
        send(TraceResult(stream=stream, seconds=1.0, rss_bytes=largest_rss()))
    """
    held = b"x" * (256 << 20)
    with WorkerSession(python=worker(body)) as session:
        session.trace(REQUEST)

    assert 1 << 20 < session.rss_bytes < len(held) // 2


def test_a_failure_keeps_its_kind_and_its_hint(worker: Worker) -> None:
    body = 'lines.readline(); send(Failure(kind="unsupported", message="no", hint="yes"))'
    with WorkerSession(python=worker(body)) as session, pytest.raises(WorkerError) as caught:
        session.trace(REQUEST)

    error = caught.value
    assert (error.kind, error.message, error.hint) == ("unsupported", "no", "yes")


def test_after_a_failure_the_same_worker_goes_on(worker: Worker) -> None:
    body = f"""
        lines.readline(); send(Failure(kind="unsupported", message="no"))
        lines.readline(); {ANSWER}
    """
    with WorkerSession(python=worker(body)) as session:
        with pytest.raises(WorkerError):
            session.trace(REQUEST)
        assert session.trace(REQUEST).origin == "test"


def test_a_crash_tells_the_last_lines_that_were_printed(worker: Worker) -> None:
    body = 'print("too much", file=sys.stderr); os._exit(3)'
    with (
        WorkerSession(python=worker(body)) as session,
        pytest.raises(WorkerError, match="too much") as caught,
    ):
        session.trace(REQUEST)

    assert caught.value.kind == "crashed"


def test_a_killed_worker_is_told_from_a_crash(worker: Worker) -> None:
    body = "lines.readline(); os.kill(os.getpid(), signal.SIGKILL)"
    with WorkerSession(python=worker(body)) as session, pytest.raises(WorkerError) as caught:
        session.trace(REQUEST)

    assert caught.value.kind == "killed"
    assert "SIGKILL" in caught.value.message


def test_after_a_crash_a_new_worker_is_started(worker: Worker, tmp_path: Path) -> None:
    flag = tmp_path / "crashed"
    body = f"""
        lines.readline()
        if not os.path.exists({str(flag)!r}):
            open({str(flag)!r}, "w").close()
            os._exit(1)
        {ANSWER}
    """
    with WorkerSession(python=worker(body)) as session:
        with pytest.raises(WorkerError):
            session.trace(REQUEST)
        assert session.trace(REQUEST).origin == "test"


def test_a_worker_that_takes_too_long_is_ended_with_its_children(
    worker: Worker, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    body = f"""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = os.fork()
        if child:
            with open({str(pids)!r}, "w") as file:
                file.write(f"{{os.getpid()}} {{child}}")
        time.sleep(60)
    """
    with (
        WorkerSession(python=worker(body), seconds=1.5) as session,
        pytest.raises(WorkerError) as caught,
    ):
        session.trace(REQUEST)

    assert caught.value.kind == "timed-out"
    assert not any(_lives(int(pid)) for pid in pids.read_text().split())


def _lives(pid: int) -> bool:
    for _ in range(50):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return False
        time.sleep(0.1)
    return True


def test_closing_a_session_ends_its_worker(worker: Worker) -> None:
    session = WorkerSession(python=worker("lines.readline()"))
    session.start()
    process = session._process
    assert process is not None

    session.close()

    assert process.poll() is not None


@pytest.mark.parametrize(
    ("line", "text"),
    [("b'nonsense\\n'", "another protocol"), ("to_line(Hello(pid=1))", "answered with a Hello")],
)
def test_what_is_no_result_is_refused(worker: Worker, line: str, text: str) -> None:
    body = f"lines.readline(); line.sendall({line})"
    with (
        WorkerSession(python=worker(body)) as session,
        pytest.raises(WorkerError, match=text),
    ):
        session.trace(REQUEST)


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path) -> None:
    session = WorkerSession(python=str(tmp_path / "python"))

    with pytest.raises(WorkerError, match="cannot be started"):
        session.start()


def test_a_module_of_the_user_is_not_imported_by_the_worker(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    body = f"""
        lines.readline()
        stream["origin"] = os.getcwd()
        {ANSWER}
    """
    with WorkerSession(python=worker(body)) as session:
        assert session.trace(REQUEST).origin == str(ROOT)


def test_a_result_is_more_than_one_read_brings(worker: Worker) -> None:
    body = f"""
        lines.readline()
        stream["facts"] = {{"long": "x" * 300_000}}
        {ANSWER}
    """
    with WorkerSession(python=worker(body)) as session:
        assert len(str(session.trace(REQUEST).facts["long"])) == 300_000


def test_results_of_other_requests_are_returned_as_they_are(worker: Worker) -> None:
    with WorkerSession(python=worker(f"lines.readline()\n{ANSWER}")) as session:
        answer = session.ask(REQUEST)

    assert isinstance(answer, TraceResult)


def test_a_reason_to_stop_ends_the_worker_while_it_works(worker: Worker, tmp_path: Path) -> None:
    began = tmp_path / "began"
    body = f"lines.readline(); open({str(began)!r}, 'w').close(); time.sleep(60)"

    def stop() -> str | None:
        return "memory shrank" if began.exists() else None

    with WorkerSession(python=worker(body), stop=stop) as session:
        with pytest.raises(WorkerError) as caught:
            session.trace(REQUEST)
        assert session.pid is None

    assert (caught.value.kind, caught.value.message) == ("stopped", "memory shrank")


def test_what_a_worker_prints_is_kept_where_that_is_asked_for(
    worker: Worker, tmp_path: Path
) -> None:
    kept = tmp_path / "trials" / "one" / "output.log"
    body = f"print('hello', flush=True); lines.readline(); {ANSWER}"
    with WorkerSession(python=worker(body), output=kept) as session:
        session.trace(REQUEST)

    assert kept.read_text() == "hello\n"
