from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("torch")

import torch

from oomdoctor.model.job import Job, ShardingSpec
from oomdoctor.record import replace
from oomdoctor.worker.errors import ShimFailedError, UnsupportedError
from oomdoctor.worker.fake import trace as tracing
from tests.worker.fake.cards import A100
from tests.worker.jobs import JOB

if TYPE_CHECKING:
    from oomdoctor.worker.observer import Observer

WEIGHT = 64 * 64 * 4
ROWS = 8 * 64 * 4


def train(device: torch.device, observer: Observer) -> None:
    """Train a layer for a step, as a run of a job would."""
    observer.phase("load")
    with device:
        layer = torch.nn.Linear(64, 64, bias=False)
    observer.model(torch.nn.ModuleDict({"only": layer}))
    observer.tag(layer.parameters(), "weights")
    observer.phase("step 1", "forward")
    rows = torch.ones(8, 64, device=device)
    loss = layer(rows).sum()
    observer.phase("step 1", "backward")
    loss.backward()
    observer.phase("step 1", "zero-grad")
    layer.zero_grad()


def test_each_allocation_has_its_operator_module_phase_and_category() -> None:
    stream = tracing.trace_run(train, A100)

    seen = [
        (one.size, one.operator, one.module, one.phase, one.part, one.category)
        for one in stream.allocations
        if one.size in (WEIGHT, ROWS)
    ]
    expected = [
        (WEIGHT, "aten.uniform_.default", "only", "load", "", "weights"),
        (ROWS, "aten.fill_.Scalar", "", "step 1", "forward", ""),
        (ROWS, "aten.mm.out", "only", "step 1", "forward", ""),
        (WEIGHT, "aten.mm.out", "only", "step 1", "backward", "gradient"),
    ]
    assert expected == seen


def test_threads_of_forward_and_backward_each_keep_a_workspace_of_cublas() -> None:
    stream = tracing.trace_run(train, A100)

    kept = [one.size for one in stream.allocations if one.operator == "cuBLAS workspace"]
    expected = [8519680, 8519680]
    assert expected == kept


def test_a_build_of_torch_without_a_fake_card_is_traced_on_the_host_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        raise ShimFailedError("this torch has no hooks")

    monkeypatch.setattr(tracing, "require_fake_card", fail)

    stream = tracing.trace_run(train, A100)

    expected = ("fake host", 2)  # of the weight's size: itself and its gradient
    sizes = [one.size for one in stream.allocations]
    assert expected == (stream.facts["engine"], sizes.count(WEIGHT))
    assert any("this torch has no hooks" in one for one in stream.assumptions)


def test_what_is_read_of_an_activation_is_an_assumption() -> None:
    def run(device: torch.device, _observer: Observer) -> None:
        if torch.randn(4, device=device).sum() > 3:
            torch.empty(1000, device=device)

    stream = tracing.trace_run(run, A100)

    expected = ("a truth value computed on the card was read and assumed to be False",)
    assert expected == stream.assumptions


def checkpointed(device: torch.device, observer: Observer) -> None:
    """Run a layer twice whose last saved tensor dies with the operator that ends the second run."""
    observer.phase("step 1", "forward")
    rows = torch.ones(8, 64, device=device, requires_grad=True)

    def layer(values: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(values * 2, 0.1, training=True)

    loss = torch.utils.checkpoint.checkpoint(layer, rows, use_reentrant=False).sum()
    observer.phase("step 1", "backward")
    loss.backward()
    del rows, loss


def test_a_second_run_of_a_layer_ends_early_and_leaves_nothing() -> None:
    stream = tracing.trace_run(checkpointed, A100)

    ends = sorted(~event for event in stream.events if event < 0)
    workspaces = {at for at, one in enumerate(stream.allocations) if one.category == "workspace"}
    assert set(range(len(stream.allocations))) - set(ends) <= workspaces


@pytest.mark.parametrize(
    ("job", "what"),
    [
        (replace(JOB, grad_accum=2000), "2,000 micro-steps"),
        (replace(JOB, sharding=ShardingSpec(kind="fsdp2", ranks=5000)), "5,000 ranks"),
    ],
)
def test_a_trace_that_would_take_hours_is_refused(job: Job, what: str) -> None:
    with pytest.raises(UnsupportedError, match=what):
        tracing.trace(job, A100)
