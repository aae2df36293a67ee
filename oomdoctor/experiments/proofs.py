"""The experiments that would prove the leading causes of a diagnosis, as commands to type."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from oomdoctor.experiments.catalogue import experiments_of
from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from oomdoctor.model.plan import Diagnosis

MOST_UNDECIDED = 2
LEAST_PROBABILITY = 0.1
YOUR_COMMAND = "YOUR_TRAINING_COMMAND"
_ANSWERS = ("cause", "need_evidence")
_OF_A_JOB = ("config", "script")
_SCRIPT = ".py"
_DECIDING = ("oom.backend", "oom.library", "serve.engine")
_SERVERS = ("vllm", "sglang", "tgi", "llama.cpp", "ollama", "lmdeploy", "tensorrt-llm", "triton")
_OTHERS = ("tensorflow", "xla", "paddle", "mxnet", "cann", "directml", "tenstorrent")
_BACKENDS = ("cuda", "hip")  # where `confirm` can run a trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """One cause, the change that would take it away, and the command that tries it."""

    cause: str
    title: str
    command: str
    needs_card: bool


def proofs_of(diagnosis: Diagnosis) -> tuple[Proof, ...]:
    """Return how the leading causes could be proven or refuted, the likeliest first.

    A conclusive answer has one; causes that nobody knows an experiment for have none, and neither
    has a server that would wait for requests once it fits, nor an allocator other than PyTorch's.
    """
    told = {key: fact.value for key, fact in diagnosis.facts.items() if key in _DECIDING}
    if diagnosis.answer not in _ANSWERS or told.get("oom.backend", "cuda") not in _BACKENDS:
        return ()
    if told.get("serve.engine") in _SERVERS or told.get("oom.library", "torch") in _OTHERS:
        return ()
    most = 1 if diagnosis.conclusive else MOST_UNDECIDED
    found: list[Proof] = []
    for finding in diagnosis.causes[:most]:
        cause = finding.cause
        known = experiments_of(cause) if cause else ()
        if cause and known and finding.probability >= LEAST_PROBABILITY:
            found.append(
                Proof(
                    cause=cause,
                    title=known[0].title,
                    command=f"oomdoctor confirm {cause} {_job(diagnosis)}",
                    needs_card=known[0].of_allocator,
                )
            )
    return tuple(found)


def _job(diagnosis: Diagnosis) -> str:
    """Return what `confirm` runs: configs that make a job, a script, else the user's command."""
    files = [one.path for one in diagnosis.artifacts if one.kind in _OF_A_JOB and one.path]
    scripts = [path for path in files if path.endswith(_SCRIPT)]
    configs = [path for path in files if not path.endswith(_SCRIPT)]
    if configs and "model" in {row.name for row in diagnosis.understood}:
        return shlex.join(configs)
    if len(scripts) == 1:
        return shlex.join(["--", "python", *scripts])
    return f"-- {YOUR_COMMAND}"
