"""What factorisations and the like work in is assumed on a virtual card, and said to be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 2048
CASES: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    # elements of the workspace, as LAPACK has them
    "qr": (lambda torch, matrix: torch.geqrf(matrix), 32 * ROWS),
    "eigenvectors": (lambda torch, matrix: torch.linalg.eigh(matrix), 2 * ROWS**2 + 6 * ROWS + 1),
    "eigenvalues": (lambda torch, matrix: torch.linalg.eigvalsh(matrix), 2 * ROWS + 1),
}


@pytest.fixture(autouse=True)
def _is_virtual() -> None:
    if "OOMDOCTOR_VIRTUAL_NAME" not in os.environ:
        pytest.skip("a real library says what it needs")


def batch_norm(torch: Any) -> None:
    torch.nn.BatchNorm2d(64).cuda()(torch.zeros(8, 64, 16, 16, device="cuda"))


def sparse_product(torch: Any) -> None:
    torch.eye(8).to_sparse_csr().cuda() @ torch.zeros(8, 8, device="cuda")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (batch_norm, "cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize: 0 bytes"),
        (sparse_product, "cusparseSpMM_bufferSize: 0 bytes"),
    ],
)
def test_a_workspace_of_0_bytes_is_said_to_be_assumed(
    torch: Any, call: Callable[[Any], None], said: str
) -> None:
    call(torch)

    log = Path(os.environ["OOMDOCTOR_VIRTUAL_LOG"]).read_text(encoding="utf-8")
    assert f"assumed {said}" in log.splitlines()


@pytest.mark.parametrize("name", CASES)
def test_a_factorisation_works_in_as_much_as_lapack(torch: Any, name: str) -> None:
    call, elements = CASES[name]
    matrix = torch.zeros(ROWS, ROWS, device="cuda")
    call(torch, matrix)

    torch.cuda.memory._record_memory_history(context=None)
    call(torch, matrix)
    trace = torch.cuda.memory._snapshot()["device_traces"][0]

    assert 4 * elements in [one["size"] for one in trace if one["action"] == "alloc"]
