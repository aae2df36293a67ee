"""`oomdoctor bisect` as people type it; trials are computed, or run scripts without torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from oomdoctor.cli.bisect_axes import OF_A_JOB, name_in_job
from oomdoctor.estimating.describe import source_of
from oomdoctor.estimating.engine import torch_is_there
from oomdoctor.estimating.flags import facts_of
from oomdoctor.estimating.formula import Formula
from oomdoctor.lab.job_values import AXES_OF_A_JOB, job_at
from oomdoctor.memory.outside import CONTEXT
from tests.conftest import clean_environment
from tests.unit.lab.stub_smi import StubSmi, card

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

JOB = ("--model", "Qwen/Qwen2.5-0.5B", "--method", "lora", "--engine", "formula")
COMPUTED = (*JOB, "--backend", "formula", "--gpu", "24GiB")
EDGE = 37
# what PyTorch says, from a script that holds nothing: it "needs" 1 GiB for each row
SCRIPT = f"""\
import sys
rows = int(sys.argv[1])
print("step", rows, flush=True)
if rows > {EDGE}:
    sys.exit(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1024.00 MiB. GPU 0 has a"
        " total capacity of 39.39 GiB of which 500.00 MiB is free. Including non-PyTorch memory,"
        " this process has 38.90 GiB memory in use. Of the allocated memory 37.00 GiB is allocated"
        " by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated."
    )
"""


def bisect(run_python: RunPython, folder: Path, *rest: str, **more: Any) -> CompletedProcess[bytes]:
    return run_python("-m", "oomdoctor", "bisect", *rest, cwd=folder, **more)


def as_json(done: CompletedProcess[bytes], code: int = 0) -> dict[str, Any]:
    assert done.returncode == code, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def valid(values: dict[str, Any], root: Path) -> dict[str, Any]:
    schema = json.loads((root / "docs" / "bisect.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(values)
    return values


def scanned(axis: str, values: range, **fixed: int) -> int | None:
    """Return the largest value that fits by computing every one."""
    flags = {"model": "Qwen/Qwen2.5-0.5B", "method": "lora"}
    job = source_of((), given=facts_of(flags), flags=tuple(flags)).described().job
    room = (24 << 30) - CONTEXT[1]
    fits = [
        value
        for value in values
        if Formula().peak(job_at(job, {**fixed, axis: value})).needed <= room
    ]
    return max(fits, default=None)


@pytest.fixture
def smi(tmp_path: Path) -> StubSmi:
    return StubSmi(tmp_path)


def on_card(smi: StubSmi, tmp_path: Path) -> dict[str, str]:
    return {"PATH": f"{smi.folder}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}


@pytest.fixture
def script(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "train.py").write_text(SCRIPT)
    return ("--", sys.executable, "train.py", "{batch}")


def test_the_answer_is_that_of_a_scan(run_python: RunPython, tmp_path: Path, root: Path) -> None:
    done = bisect(run_python, tmp_path, *COMPUTED, "--axis", "batch", "-f", "json")

    values = valid(as_json(done), root)
    bracket = values["answer"]["bracket"]
    expected = scanned("batch", range(1, 100))
    assert expected is not None
    assert (bracket["fits_at"], bracket["ooms_at"]) == (expected, expected + 1)
    assert values["proven"]
    assert values["answer"]["safe_value"] <= expected
    assert values["start"]["engine"] == "formula"
    assert len(values["trials"]) <= 4


def test_a_frontier_is_that_of_scans(run_python: RunPython, tmp_path: Path, root: Path) -> None:
    axes = ("--axis", "batch=1..64", "--axis", "seq=512..4096:512")
    done = bisect(run_python, tmp_path, *COMPUTED, *axes, "-f", "json")

    values = valid(as_json(done), root)
    rows = {int(row["value"]): row["bracket"]["fits_at"] for row in values["frontier"]["rows"]}
    assert rows == {seq: scanned("batch", range(1, 65), seq=seq) for seq in rows}
    assert list(rows) == list(range(512, 4097, 512))


def test_the_rank_of_an_adapter_is_an_axis(run_python: RunPython, tmp_path: Path) -> None:
    done = bisect(run_python, tmp_path, *COMPUTED, "--axis", "lora_rank=64..65536:64", "-f", "json")

    bracket = as_json(done)["answer"]["bracket"]
    expected = scanned("lora_rank", range(64, 65537, 64))
    assert (bracket["fits_at"], bracket["ooms_at"]) == (expected, (expected or 0) + 64)


@pytest.mark.parametrize("name", sorted(OF_A_JOB))
def test_every_axis_of_a_job_is_one_that_trials_know(name: str) -> None:
    assert name_in_job(name) in AXES_OF_A_JOB


@pytest.mark.skipif(torch_is_there(), reason="speaks of an interpreter without torch")
@pytest.mark.parametrize("backend", ["simulate", "cpu", "cuda", None])
def test_a_job_that_needs_torch_says_so_before_any_trial(
    run_python: RunPython, tmp_path: Path, smi: StubSmi, backend: str | None
) -> None:
    smi.tells(card())
    chosen = () if backend is None else ("--backend", backend)
    asked = (*JOB, "--gpu", "24GiB", "--axis", "batch", *chosen)

    done = bisect(run_python, tmp_path, *asked, environment=on_card(smi, tmp_path))

    assert done.returncode == 2
    assert "builds the job with torch, which is not installed" in done.stderr.decode()
    assert not (tmp_path / ".oomdoctor").exists()


@pytest.mark.parametrize("shape", ["text", "html", "markdown"])
def test_a_page_shows_edge_curve_and_trials(
    run_python: RunPython, tmp_path: Path, shape: str
) -> None:
    done = bisect(run_python, tmp_path, *COMPUTED, "--axis", "batch", "-f", shape)

    page = done.stdout.decode()
    for part in ("fits", "one sample more", "The peak along the axis", "computed by formula"):
        assert part in page
    assert ("<svg" in page) == (shape == "html")


def test_trials_are_told_line_by_line_where_nobody_watches(
    run_python: RunPython, tmp_path: Path
) -> None:
    done = bisect(run_python, tmp_path, *COMPUTED, "--axis", "batch")
    quiet = bisect(run_python, tmp_path, *COMPUTED, "--axis", "batch", "--quiet")

    told = done.stderr.decode().splitlines()
    assert [line.partition(":")[0] for line in told] == [
        f"trial {number}" for number in range(1, len(told) + 1)
    ]
    assert quiet.stderr == b""


def test_a_dry_run_runs_nothing(run_python: RunPython, tmp_path: Path, root: Path) -> None:
    asked = (*COMPUTED, "--axis", "batch", "--dry-run")
    done = bisect(run_python, tmp_path, *asked, "-f", "json")
    page = bisect(run_python, tmp_path, *asked)

    plan = valid(as_json(done), root)
    assert 1 <= len(plan["expected"]) <= plan["most_trials"]
    assert "What would run" in page.stdout.decode()
    assert not (tmp_path / ".oomdoctor").exists()


def test_a_resumed_run_ends_with_the_same_answer(run_python: RunPython, tmp_path: Path) -> None:
    asked = (*COMPUTED, "--axis", "batch", "-f", "json")
    whole = as_json(bisect(run_python, tmp_path, *asked))
    cut = as_json(bisect(run_python, tmp_path, *asked, "--max-trials", "1"), code=4)
    rest = as_json(bisect(run_python, tmp_path, *asked, "--resume"))

    assert cut["stopped"] == "the budget of 1 trials is spent"
    assert rest["folder"] == cut["folder"]
    assert rest["replayed"] == 1
    assert whole["answer"] == rest["answer"]


def test_there_must_be_something_to_resume(run_python: RunPython, tmp_path: Path) -> None:
    bisect(run_python, tmp_path, *COMPUTED, "--axis", "batch=1..8")
    done = bisect(run_python, tmp_path, *COMPUTED, "--axis", "batch", "--resume")

    assert done.returncode == 2
    assert b"no earlier run of this command" in done.stderr


def test_run_sh_starts_the_same_run_again(run_python: RunPython, tmp_path: Path) -> None:
    asked = (*COMPUTED, "--axis", "batch", "-f", "json")
    first = as_json(bisect(run_python, tmp_path, *asked))

    again = subprocess.run(
        [tmp_path / first["folder"] / "run.sh"],
        cwd="/",
        capture_output=True,
        env=clean_environment(),
        check=False,
    )

    second = as_json(again)
    assert second["folder"] != first["folder"]
    assert first["answer"] == second["answer"]


def test_a_script_is_bisected_as_it_is(
    run_python: RunPython, tmp_path: Path, smi: StubSmi, script: tuple[str, ...], root: Path
) -> None:
    smi.tells(card())
    environment = on_card(smi, tmp_path)
    asked = ("--axis", "batch=1..100", "-f", "json")

    done = bisect(run_python, tmp_path, *asked, *script, environment=environment)

    values = valid(as_json(done), root)
    bracket = values["answer"]["bracket"]
    assert (bracket["fits_at"], bracket["ooms_at"], bracket["proven"]) == (EDGE, EDGE + 1, True)
    assert (values["backend"], values["card"]) == ("cuda", "NVIDIA Test")
    output = Path(values["trials"][0]["output_path"]).read_text()
    assert output.startswith("step ")


def test_a_search_for_speed_without_a_speed_is_not_answered(
    run_python: RunPython, tmp_path: Path
) -> None:
    asked = ("--axis", "batch=1..2", "--backend", "cpu", "--objective", "tokens-per-second")

    done = bisect(run_python, tmp_path, *asked, "--", sys.executable, "-c", "", "{batch}")

    assert done.returncode == 4
    assert "no trial told how many tokens it did in a second" in done.stdout.decode()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*COMPUTED,), "no axis"),
        ((*COMPUTED, "--axis", "batch=x"), "expected NAME[=LOW..HIGH[:STEP]]"),
        ((*COMPUTED, "--axis", "batch=9..1"), "begins above its end"),
        ((*COMPUTED, "--axis", "batch", "--axis", "batch"), "each axis once"),
        ((*COMPUTED, "--axis", "workers"), "a job has no such axis"),
        ((*COMPUTED, "--axis", "batch", "--edit", "a.yaml:b={batch}"), "there is no command"),
        ((*COMPUTED, "--axis", "batch", "--cap", "much"), "expected a size such as 8GiB"),
        ((*COMPUTED, "--axis", "batch", "--objective", "tokens-per-second"), "take their time"),
        (("--axis", "batch", "--backend", "formula"), "no job"),
        (("--axis", "batch", "--backend", "cpu", "--", "true"), "nothing in the command says"),
        (("--axis", "batch", "--backend", "simulate", "--", "a", "{batch}"), "knows jobs alone"),
        (("--axis", "batch", "--"), "no command stands behind --"),
        (("--axis", "batch", "--", "train", "{batch}"), "no card is seen here"),
        (("--axis", "odd", "--backend", "cpu", "--", "a", "{odd}"), "no range is known"),
        (("--axis", "batch", "--backend", "cpu", "--", "./a", "{batch}"), "cannot be started"),
        ((*COMPUTED, "--axis", "batch=0..8"), "a job has a batch of 1 or more"),
        ((*COMPUTED, "--axis", "lora_rank=0"), "a job has a lora_rank of 1 or more"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_use_is_told(
    run_python: RunPython, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = bisect(run_python, tmp_path, *words, environment={"PATH": "/nowhere"})

    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert not (tmp_path / ".oomdoctor").exists()


def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    words = f"{sys.executable} -m oomdoctor bisect --axis b=1..2 --backend cpu -- true {{b}}"

    done = subprocess.run(
        ["sh", "-c", f"rmdir {folder} && {words}"],
        cwd=folder,
        capture_output=True,
        env=clean_environment(),
        check=False,
    )

    assert (done.returncode, done.stderr) == (2, b"error: the current folder is gone\n")
