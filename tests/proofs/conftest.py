"""Proofs run only when asked for (`pytest -m proofs tests/proofs`): they import real libraries."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def _wanted(config: pytest.Config) -> bool:
    return "proofs" in str(config.option.markexpr).replace("not proofs", "")


@pytest.hookimpl
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the files alone unless they are asked for: importing torch alone takes seconds."""
    del collection_path
    return None if _wanted(config) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder is a proof; the libraries' own warnings are none of ours."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.proofs)
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(autouse=True)
def _offline_and_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is downloaded, and no test sees the launcher state that another one left."""
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(name, "0" if name == "TOKENIZERS_PARALLELISM" else "1")
    monkeypatch.setenv("DISABLE_VERSION_CHECK", "1")  # of LLaMA-Factory, which caps transformers
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "ACCELERATE_USE_FSDP", "WANDB_WATCH"):
        monkeypatch.delenv(name, raising=False)
    state = pytest.importorskip("accelerate").state
    state.AcceleratorState._reset_state(reset_partial_state=True)
    state.GradientState._reset_state()
    pytest.importorskip("torch").manual_seed(0)
