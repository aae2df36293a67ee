"""The jobs that are recorded."""

from __future__ import annotations

from tools.stream_jobs import jobs


def test_jobs_take_every_path_at_least_once() -> None:
    found = [one.job for one in jobs().values()]

    assert len(found) >= 25
    assert {one.checkpointing for one in found} == {None, "reentrant", "non-reentrant"}
    assert {one.quant.kind for one in found if one.quant} == {"nf4", "int8"}
    assert {one.card for one in jobs().values()} >= {"NVIDIA L4", "NVIDIA H100 80GB HBM3"}
