"""What is looked at from outside: memory groups, the kernel's lines, variables, configs, places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.probe import kernel_log, memory_groups
from oomdoctor.recorder.bundle import read_bundle
from oomdoctor.recorder.configs import copy_configs
from oomdoctor.recorder.quoting import Quoting
from oomdoctor.recorder.run_file import environment_told
from oomdoctor.recorder.sampling import Paced
from oomdoctor.recorder.way_in import environment_of
from tests.unit.recorder.made import GIB, MIB, bundle, event

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n", encoding="ascii")


def test_the_tightest_limit_of_all_groups_counts(tmp_path: Path) -> None:
    groups, proc = tmp_path / "groups", tmp_path / "proc"
    group(proc / "7", cgroup="0::/job/step")
    group(groups, memory__current=str(50 * GIB))
    group(groups / "job", memory__max=str(2 * GIB), memory__current=str(GIB))
    kills = "low 0\nmax 9\noom 3\noom_kill 2"
    group(groups / "job", memory__events=kills, memory__peak=str(2 * GIB))
    group(groups / "job" / "step", memory__max="max", memory__current=str(MIB))

    found = memory_groups.group_of(7, groups, proc)

    assert found == memory_groups.MemoryGroup(
        path=str(groups / "job"), limit_bytes=2 * GIB, used_bytes=GIB, peak_bytes=2 * GIB, kills=2
    )


def test_groups_of_the_first_version_are_read_as_well(tmp_path: Path) -> None:
    groups, proc = tmp_path / "groups", tmp_path / "proc"
    group(proc / "7", cgroup="9:cpu:/x\n4:memory:/job\n0::/")
    unlimited = str((1 << 63) - 4096)
    group(groups / "memory", memory__limit_in_bytes=unlimited, memory__usage_in_bytes="9")
    group(groups / "memory" / "job", memory__limit_in_bytes=str(GIB), memory__usage_in_bytes="8")
    group(groups / "memory" / "job", memory__oom_control="under_oom 0\noom_kill 1")

    found = memory_groups.group_of(7, groups, proc)

    assert found is not None
    assert (found.limit_bytes, found.used_bytes, found.kills) == (GIB, 8, 1)


def test_a_process_without_a_group_has_none(tmp_path: Path) -> None:
    assert memory_groups.group_of(7, tmp_path, tmp_path) is None


def test_a_record_of_the_kernel_is_printed_as_dmesg_does() -> None:
    record = "3,1042,5678901234,-;Out of memory: Killed process 7 (python)\n SUBSYSTEM=x\n"

    assert kernel_log.printed(record) == "[ 5678.901234] Out of memory: Killed process 7 (python)"


def test_of_the_kernels_lines_those_about_memory_stay_with_all_of_a_kill() -> None:
    lines = [
        "eth0: link up",
        "python invoked oom-killer: gfp_mask=0x0",
        "CPU: 3 PID: 7",
        "Killed process 7 (python)",
        "usb 1-1: new device",
        "NVRM: Xid (PCI:0000:01:00): 31",
    ]

    assert kernel_log.of_memory(lines) == [*lines[1:4], lines[5]]


def test_a_kernel_log_that_may_not_be_read_is_empty(tmp_path: Path) -> None:
    log = kernel_log.KernelLog(str(tmp_path / "none"))

    assert (log.could_read, log.lines()) == (False, [])


def test_variables_are_told_but_no_secrets() -> None:
    given = {
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "OMP_NUM_THREADS": "4",
        "RANK": "3",
        "HF_TOKEN": "hf_x",
        "TORCH_API_KEY": "x",
        "NCCL_AUTH_SECRET": "x",
        "HOME": "/home/ada",
    }

    assert list(environment_told(given)) == ["OMP_NUM_THREADS", "PYTORCH_CUDA_ALLOC_CONF", "RANK"]


def test_configs_that_a_command_names_are_copied_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    for name in ("train.py", "a/train.py", "ds.json", "data.bin"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    (tmp_path / "large.json").write_text("x" * (1 << 21), encoding="utf-8")
    words = ["python", "train.py", "a/train.py", "--deepspeed=ds.json", "ds.json", "data.bin"]

    told = copy_configs([*words, "large.json", "gone.yaml"], tmp_path / "kept")

    assert [one["name"] for one in told] == ["train.py", "train-2.py", "ds.json"]
    assert (tmp_path / "kept" / "train-2.py").read_text(encoding="utf-8") == "a/train.py"


def test_the_way_in_stands_before_the_users_own_path(tmp_path: Path) -> None:
    found = environment_of(tmp_path, {"dumps": 1}, base={"PYTHONPATH": "/mine", "A": "b"})
    alone = environment_of(tmp_path, {}, base={})

    assert found["PYTHONPATH"].endswith("inject/hooks:/mine")
    assert (found["A"], found["OOMDOCTOR_RUN"]) == ("b", str(tmp_path))
    assert found["OOMDOCTOR_RUN_SETTINGS"] == '{"dumps":1}'
    assert ":" not in alone["PYTHONPATH"]


def test_a_look_that_takes_long_is_repeated_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = {"wall": 100.0, "work": 0.0}
    monkeypatch.setattr("time.monotonic", lambda: clock["wall"])
    monkeypatch.setattr("time.thread_time", lambda: clock["work"])
    pace = Paced(400)
    looks = 0
    for _ in range(6000):  # ten minutes
        if pace.is_due():
            pace.begin()
            clock["work"] += 0.02
            pace.end()
            looks += 1
        clock["wall"] += 0.1

    assert clock["work"] + 0.02 >= 600 / 400
    assert clock["work"] <= 600 / 400 + 0.05
    assert looks < 100


def test_a_quote_shows_the_figure_where_it_stands(tmp_path: Path) -> None:
    message = event("step", 1, number=7, note='a "number":3 within a text')
    folder = bundle(tmp_path / "r", told={"exit_code": 1}, events={"100-1": [message]})
    quoting = Quoting(read_bundle(folder).folder)

    figure = quoting.event("100-1", 1, "number")
    line = (folder / "processes" / "100-1" / "events.jsonl").read_text(encoding="utf-8")

    assert figure.text == '"number":7'
    assert line[figure.column - 1 : (figure.end_column or 0) - 1] == '"number":7'
    assert quoting.run("exit_code").text == '"exit_code": 1'
