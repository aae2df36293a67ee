"""Launchers, job managers and collectives are read in every age of their texts."""

from __future__ import annotations

import pytest

from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.readers import read_all
from oomdoctor.evidence.source import source_of_text
from tests.unit.evidence.documents import RAW, raw_text

Expected = tuple[str, dict[str, object]]
KILLED: Expected = ("host-oom", {"host.killed": True})
FOR_MEMORY: Expected = ("host-oom", {"host.oom_kill": True})
SHM: Expected = ("shm", {"host.shm_error": True})


def ended(by: str) -> Expected:
    return ("other", {"launch.ended_by": by, "host.ended_outside": True})


FAILURES: dict[str, Expected] = {
    "accelerate_sigkill": KILLED,
    "accelerate_status": ("lost", {"failure.other": True}),
    "composer_killed": KILLED,
    "deepspeed_memory": KILLED,
    "deepspeed_sigbus": SHM,
    "elastic_1_9_sigkill": KILLED,
    "elastic_2_python_error": ("other", {"failure.other": True}),
    "elastic_2_sigkill": KILLED,
    "elastic_hang_up": ended("hang-up"),
    "elastic_process_failure_sigbus": SHM,
    "elastic_signal": ended("operator"),
    "gloo_peer": ("peer", {"launch.peer_lost": True}),
    "horovod_killed": KILLED,
    "hydra_killed": KILLED,
    "jax_peer": ("peer", {"launch.peer_lost": True}),
    "kubernetes_probe": ended("health-check"),
    "lsf_memory": FOR_MEMORY,
    "lsf_time": ended("time-limit"),
    "mismatch": ("collective", {"collective.mismatch": True}),
    "mpich_killed": KILLED,
    "mpirun_killed": KILLED,
    "nccl_2_12_shm": SHM,
    "nccl_2_18_calloc": ("gpu-oom", {"oom.form": "nccl-alloc", "oom.requested": 4194304}),
    "nccl_2_21_calloc": ("gpu-oom", {"oom.form": "nccl-alloc", "oom.requested": 10485760}),
    "nccl_2_26_shm": SHM,
    "nccl_2_7_shm": SHM,
    "nccl_duplicate": ("other", {"fault.duplicate_device": True}),
    "nccl_host_alloc": ("host-oom", {"host.pinned_failed": True, "host.requested": 8388608}),
    "nccl_memlock": ("other", {"fault.memlock": True}),
    "nccl_unexplained": ("peer", {"launch.nccl_failed": True}),
    "pbs_memory": FOR_MEMORY,
    "pbs_time": ended("time-limit"),
    "pdsh": KILLED,
    "ray_oom_raylet": FOR_MEMORY,
    "ray_oom_task": FOR_MEMORY,
    "ray_worker_lost": ("lost", {"launch.worker_lost": True}),
    "sge_memory": FOR_MEMORY,
    "sge_time": ended("time-limit"),
    "slurm_cancelled": ended("operator"),
    "slurm_node_failure": ended("node-failure"),
    "slurm_preempted": ended("preempted"),
    "slurm_time": ended("time-limit"),
    "spawn_killed": KILLED,
    "tcpstore_peer": ("peer", {"launch.peer_lost": True}),
    "watchdog": ("collective", {"collective.timeout": True}),
}
REPORTS: dict[str, dict[str, object]] = {
    "accelerate_sigkill": {"launch.signal": 9},
    "accelerate_status": {"launch.exit_status": 3},
    "composer_killed": {"launch.signal": 9},
    "deepspeed_memory": {
        "launch.signal": 9,
        "dist.partitions": 8,
        "dist.partition_numel": 437582336,
        "host.used_share": 0.921,
        "torch.allocated": 7000796692,
    },
    "deepspeed_sigbus": {"launch.signal": 7},
    "deepspeed_timers": {"torch.allocated": 23353884672, "torch.peak_allocated": 32749125632},
    "elastic_1_9_sigkill": {"launch.signal": 9, "launch.root_rank": 2},
    "elastic_2_python_error": {"launch.exit_status": 1, "launch.root_rank": 0},
    "elastic_2_sigkill": {
        "launch.signal": 9,
        "launch.root_rank": 5,
        "launch.root_host": "blade-07",
        "launch.root_time": "2025-07-14_02:10:31",
        "launch.failed_ranks": 2,
    },
    "elastic_process_failure_sigbus": {"launch.signal": 7},
    "horovod_killed": {"launch.signal": 9},
    "lsf_memory": {"launch.signal": 9},
    "megatron": {
        "torch.allocated": 19127599104,
        "torch.peak_allocated": 40917794816,
        "torch.reserved": 43211816960,
        "torch.peak_reserved": 43211816960,
    },
    "mpirun_killed": {"launch.signal": 9},
    "pbs_memory": {"host.group_limit": 128 * 2**30, "host.group_used": 137842655232},
    "pdsh": {"launch.signal": 9},
    "ray_oom_task": {"host.used_share": 0.958489},
}
SILENT = {"cuda_ipc", "deepspeed_timers", "megatron"}


def test_every_text_is_expected_to_be_a_failure_or_none() -> None:
    files = {path.stem for path in (RAW / "launchers").glob("*.txt")}

    assert {*FAILURES, *SILENT} == files


@pytest.mark.parametrize("name", FAILURES)
def test_a_text_gives_its_kind_of_failure_and_its_facts(name: str) -> None:
    kind, facts = FAILURES[name]

    first = read_all(clean(source_of_text(raw_text("launchers", f"{name}.txt")))).failures[0]

    stated = {fact.key: fact.value for fact in first.facts}
    assert kind == first.kind
    assert facts == {key: stated.get(key) for key in facts}


@pytest.mark.parametrize("name", sorted(SILENT))
def test_figures_and_warnings_are_no_failure(name: str) -> None:
    reading = read_all(clean(source_of_text(raw_text("launchers", f"{name}.txt"))))

    assert reading.failures == ()


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_gives_code_place_and_figures(name: str) -> None:
    expected = REPORTS[name]

    reading = read_all(clean(source_of_text(raw_text("launchers", f"{name}.txt"))))

    stated = {fact.key: fact.value for fact in reading.facts}
    found = {key: stated.get(key) for key in expected}
    assert expected == pytest.approx(found) if _all_numbers(expected) else expected == found


def _all_numbers(facts: dict[str, object]) -> bool:
    return all(isinstance(value, (int, float)) for value in facts.values())


@pytest.mark.parametrize("name", ["slurm_time", "lsf_time"])
def test_a_kill_behind_an_end_from_outside_is_a_consequence(name: str) -> None:
    text = f"{raw_text('launchers', f'{name}.txt')}\nKilled\n"

    failures = read_all(clean(source_of_text(text))).failures

    kills = [one for one in failures if any(fact.key == "host.killed" for fact in one.facts)]
    assert kills
    assert all(one.consequence for one in kills)


def test_an_exception_goes_before_a_broken_connection() -> None:
    text = (
        "[W TCPStore.cpp:125] [c10d] recvValue failed: Connection reset by peer\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/tune/tune.py", line 61, in main\n'
        '    raise ValueError("no rows")\n'
        "ValueError: no rows\n"
    )

    failures = read_all(clean(source_of_text(text))).failures

    expected = [("peer", True), ("other", False)]
    assert expected == [(one.kind, one.consequence) for one in failures]


def test_the_word_of_time_about_a_killed_command_is_a_kill() -> None:
    document = clean(source_of_text("Command terminated by signal 9\n"))

    assert [failure.kind for failure in read_all(document).failures] == ["host-oom"]


def test_the_launchers_traceback_does_not_displace_the_code_above_the_message() -> None:
    text = """\
    return torch._C._nn.cross_entropy_loss(input, target, weight, 1, ignore_index, 0.0)
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.14 GiB (GPU 1; 39.41 GiB \
total capacity; 26.21 GiB already allocated; 5.86 GiB free; 31.99 GiB reserved in total by PyTorch)
ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 1 (pid: 621)
Traceback (most recent call last):
  File "/opt/conda/bin/torchrun", line 33, in <module>
    sys.exit(load_entry_point('torch==2.0.0', 'console_scripts', 'torchrun')())
"""
    failure = read_all(clean(source_of_text(text))).failures[0]
    found = {fact.key: fact.value for fact in failure.facts}

    assert found["run.phase"] == "loss"
    assert "cross_entropy_loss" in str(found["trace.frame"])


@pytest.mark.parametrize("code", ["--1", "-", "---9"])
def test_a_damaged_exit_code_says_nothing_and_breaks_no_reader(code: str) -> None:
    text = f"""\
Root Cause (first observed failure):
[0]:
  time      : 2025-05-04_10:11:12
  rank      : 3 (local_rank: 3)
  exitcode  : {code} (pid: 4711)
"""
    reading = read_all(clean(source_of_text(text)))
    keys = ("launch.root_rank", "launch.signal", "launch.exit_status")
    found = {fact.key: fact.value for fact in reading.facts if fact.key in keys}
    expected = {"launch.root_rank": 3}

    assert not reading.notes
    assert expected == found
