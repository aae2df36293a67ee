"""A world of processes inside one: a gloo group of one, or a pretended group of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")


@pytest.fixture
def lone_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Look like a launch by torchrun with one process on the CPU."""
    launch = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
    for name, value in {**launch, "MASTER_PORT": "0", "ACCELERATE_USE_CPU": "true"}.items():
        monkeypatch.setenv(name, value)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def world_of_four() -> Iterator[None]:
    """Pretend to be rank 0 of four: collectives return at once and move nothing."""
    fake = pytest.importorskip("torch.testing._internal.distributed.fake_pg")
    dist.init_process_group("fake", store=fake.FakeStore(), rank=0, world_size=4)
    yield
    dist.destroy_process_group()
