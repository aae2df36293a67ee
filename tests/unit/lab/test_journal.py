"""A journal survives every kind of end: what was written whole is read again, nothing else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oomdoctor.errors import InputError, UsageError
from oomdoctor.lab.journal import JOURNAL, Journal, latest_run, read_journal, write_environment
from oomdoctor.lab.keys import key_of
from oomdoctor.model.trial import (
    CRASH,
    FIT,
    OOM,
    TIMEOUT,
    CommandSpec,
    OomIdentity,
    PhasePeak,
    TrialResult,
    TrialSpec,
)
from oomdoctor.record import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLAN = "ab" * 32


def result(key: str, batch: int = 1, outcome: str = FIT) -> TrialResult:
    identity = OomIdentity(backend="cuda", exception="OutOfMemoryError", site="m.py:forward")
    return TrialResult(
        key=key,
        values={"batch": batch, "rate": 0.5, "name": "π\u2028"},
        backend="formula",
        outcome=outcome,
        identity=identity if outcome == OOM else None,
        phases=(PhasePeak(name="step 1", allocated_bytes=batch << 20, seconds=1.5),),
        reserved_bytes=batch << 20,
        seconds=2.0,
        versions={"torch": "2.13.0"},
    )


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Journal]]:
    monkeypatch.chdir(tmp_path)
    made: list[Journal] = []

    def begin(plan: str = PLAN, started: float = 0.0) -> Journal:
        arguments = ["oomdoctor", "bisect", "a b.yaml"]
        made.append(Journal.create(Path(".oomdoctor"), plan, arguments=arguments, started=started))
        return made[-1]

    yield begin
    for journal in made:
        journal.close()


def test_results_are_read_again_as_they_were(begun: Callable[..., Journal]) -> None:
    journal = begun()
    expected = {"a": result("a"), "b": result("b", 2, OOM)}
    for key, one in expected.items():
        journal.begin(key, one.values)
        journal.finish(one)
    journal.begin("c", {"batch": 3})
    journal.close()

    recorded = read_journal(journal.folder / JOURNAL)

    assert expected == recorded.results
    assert recorded.begun == ("c",)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(1, 4), share=st.floats(0, 1), rest=st.binary(max_size=40))
def test_a_journal_cut_anywhere_gives_what_was_whole_before(
    tmp_path: Path, count: int, share: float, rest: bytes
) -> None:
    journal = Journal.create(tmp_path, PLAN, arguments=["oomdoctor"], started=0.0)
    ends = [(journal.folder / JOURNAL).stat().st_size]
    for number in range(count):
        journal.finish(result(str(number), number))
        ends.append((journal.folder / JOURNAL).stat().st_size)
    journal.close()
    path = journal.folder / JOURNAL
    cut = ends[0] + round(share * (ends[-1] - ends[0]))
    path.write_bytes(path.read_bytes()[:cut] + rest.replace(b"\n", b""))
    whole = sum(end <= cut for end in ends) - 1

    again = Journal.resume(journal.folder)
    again.finish(result("after"))
    again.close()

    assert [*map(str, range(whole)), "after"] == list(read_journal(path).results)


def test_trials_that_told_nothing_run_again_when_a_run_is_resumed(
    begun: Callable[..., Journal],
) -> None:
    journal = begun()
    for outcome in (FIT, OOM, CRASH, TIMEOUT):
        journal.finish(result(outcome, outcome=outcome))
    journal.close()

    again = Journal.resume(journal.folder)
    again.close()

    assert list(again.results) == [FIT, OOM]


def test_a_kill_in_the_head_leaves_nothing_to_resume(begun: Callable[..., Journal]) -> None:
    journal = begun()
    journal.close()
    path = journal.folder / JOURNAL
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(InputError, match="the journal is empty"):
        Journal.resume(journal.folder)
    with pytest.raises(UsageError, match="no earlier run"):
        latest_run(Path(".oomdoctor"), PLAN)


def test_a_journal_that_cannot_be_read_is_named_where_there_is_no_other(tmp_path: Path) -> None:
    folder = tmp_path / f"20041109-113320-{PLAN[:8]}"
    folder.mkdir()
    (folder / JOURNAL).write_text("garbage\n")

    with pytest.raises(InputError, match="no JSON object stands here"):
        latest_run(tmp_path, PLAN)


def test_a_whole_line_that_is_no_entry_is_refused_with_its_place(
    begun: Callable[..., Journal],
) -> None:
    journal = begun()
    journal.close()
    path = journal.folder / JOURNAL
    path.write_bytes(path.read_bytes() + b'{"type": "result", "result": {"key": 1}}\n')

    with pytest.raises(InputError) as caught:
        read_journal(path)

    assert f"{JOURNAL}:2: no result of a trial" in str(caught.value)


def test_entries_of_later_versions_are_passed_over(begun: Callable[..., Journal]) -> None:
    journal = begun()
    journal.append({"type": "weather", "is": "fine"})
    journal.finish(result("a"))
    journal.close()

    assert list(read_journal(journal.folder / JOURNAL).results) == ["a"]


def test_the_last_run_of_the_same_plan_is_resumed(begun: Callable[..., Journal]) -> None:
    for plan, started in ((PLAN, 1e9), (PLAN, 1.1e9), ("ab" * 4 + "cd" * 28, 1.2e9)):
        begun(plan, started).close()

    assert latest_run(Path(".oomdoctor"), PLAN).name == "20041109-113320-abababab"


def test_runs_of_one_second_have_folders_of_their_own(begun: Callable[..., Journal]) -> None:
    assert len({begun().folder for _ in range(3)}) == 3


def test_the_run_file_starts_the_same_command(
    begun: Callable[..., Journal], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "oomdoctor"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\npwd\nfor one in "$@"; do echo "<$one>"; done\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")

    script = (tmp_path / begun().folder / "run.sh").resolve()
    done = subprocess.run([script], cwd="/", capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == [str(tmp_path), "<bisect>", "<a b.yaml>"]


def test_the_environment_holds_no_variable_that_was_not_asked_for(
    begun: Callable[..., Journal],
) -> None:
    folder = begun().folder

    write_environment(folder, {"backend": "cpu"}, {"HF_TOKEN": "s", "OMP_NUM_THREADS": "4"})

    held = json.loads((folder / "environment.json").read_text())
    assert held == {"backend": "cpu", "variables": {"OMP_NUM_THREADS": "4"}}


def test_runs_stay_out_of_the_users_repository(begun: Callable[..., Journal]) -> None:
    begun()

    assert Path(".oomdoctor/.gitignore").read_text() == "*\n"


def test_a_key_goes_by_what_runs_and_not_by_how_long_it_may() -> None:
    command = CommandSpec(arguments=("python", "train.py"), folder="/w", environment={"A": "1"})
    spec = TrialSpec(values={"batch": 8, "seq": 512}, command=command, seconds=5.0)

    same = replace(spec, values={"seq": 512, "batch": 8}, seconds=600.0)

    assert key_of(spec) == key_of(same)
    changes = ({"repeat": 1}, {"cap_bytes": 1}, {"values": {"batch": 8}}, {"evaluates": True})
    assert len({key_of(replace(spec, **change)) for change in changes} | {key_of(spec)}) == 5
