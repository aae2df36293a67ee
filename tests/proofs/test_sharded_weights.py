"""What accelerate, bitsandbytes and inductor do with weights, cards and shapes of a job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import llama
from tests.proofs.world import lone_world

torch = pytest.importorskip("torch")
accelerate = pytest.importorskip("accelerate")
fsdp_utils = pytest.importorskip("accelerate.utils.fsdp_utils")
cuda_specs = pytest.importorskip("bitsandbytes.cuda_specs")
cudagraphs = pytest.importorskip("torch._inductor.cudagraph_utils")

__all__ = ["lone_world"]


def sharded(monkeypatch: pytest.MonkeyPatch, precision: str, *, frozen: bool = False) -> Any:
    """Return a bf16 model that accelerate has prepared for FSDP2 in a group of one."""
    from torch.distributed import fsdp
    from torch.distributed.device_mesh import init_device_mesh

    real, mesh = fsdp.fully_shard, init_device_mesh("cpu", (1,))
    monkeypatch.setattr(
        fsdp, "fully_shard", lambda module, **given: real(module, **(given | {"mesh": mesh}))
    )
    plugin = accelerate.FullyShardedDataParallelPlugin(
        fsdp_version=2, auto_wrap_policy="no_wrap", cpu_ram_efficient_loading=False
    )
    stub = SimpleNamespace(
        state=SimpleNamespace(fsdp_plugin=plugin),
        mixed_precision=precision,
        is_main_process=False,
        device=torch.device("cpu"),
    )
    model = llama().to(torch.bfloat16)
    if frozen:
        model.requires_grad_(requires_grad=False)
    return fsdp_utils.fsdp2_prepare_model(stub, model)


@proves("fsdp-upcast-fp32")
@pytest.mark.usefixtures("lone_world")
@pytest.mark.parametrize(("precision", "dtype"), [("bf16", "float32"), ("no", "bfloat16")])
def test_fsdp_trains_fp32_weights_under_mixed_precision(
    precision: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model loaded in bf16 holds fp32 weights after accelerate prepared it for FSDP and bf16."""
    made = sharded(monkeypatch, precision)
    assert {p.dtype for p in made.parameters()} == {getattr(torch, dtype)}


@proves("fsdp-upcast-fp32")
@pytest.mark.usefixtures("lone_world")
def test_fsdp_leaves_frozen_weights_in_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is trained is cast up; a frozen base stays in bf16."""
    made = sharded(monkeypatch, "bf16", frozen=True)
    assert {p.dtype for p in made.parameters()} == {torch.bfloat16}


@proves("bnb-int8-old-gpu")
@pytest.mark.parametrize(("capability", "fast"), [((7, 0), False), ((7, 5), True), ((8, 6), True)])
def test_int8_products_need_compute_capability_7_5(
    capability: tuple[int, int], *, fast: bool
) -> None:
    """The library bitsandbytes counts int8 matrix units from compute capability 7.5 on."""
    specs = cuda_specs.CUDASpecs(
        highest_compute_capability=capability, cuda_version_string="128", cuda_version_tuple=(12, 8)
    )
    assert bool(specs.has_imma) is fast


@proves("compile-cudagraphs")
@pytest.mark.parametrize(("recorded", "warns"), [(7, False), (8, True)])
def test_each_size_of_input_is_a_cuda_graph_of_its_own(recorded: int, *, warns: bool) -> None:
    """The compiler keeps one recording per distinct size and warns from the ninth on."""
    recordings: dict[tuple[int, ...], Any] = {(size,): print for size in range(recorded)}
    assert cudagraphs.maybe_warning_due_to_dynamic_shape(recordings, (recorded,)) is warns
