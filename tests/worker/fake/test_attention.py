from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from oomdoctor.worker.fake.attention import Call, choose


def call(
    *,
    width: int = 64,
    dtype: torch.dtype = torch.bfloat16,
    mask: bool = False,
    heads: int = 8,
    rows: int = 512,
    keys: int = 512,
    causal: bool = False,
    drop: float = 0.0,
) -> Call:
    query = torch.empty(2, 8, rows, width, dtype=dtype, device="meta")
    key = torch.empty(2, heads, keys, width, dtype=dtype, device="meta")
    bias = torch.empty(2, 1, rows, keys, dtype=dtype, device="meta") if mask else None
    return Call(query, key, key, bias, drop, causal, heads != 8)


# what torch 2.13 answers for the same call (`torch._fused_sdp_choice` of a CUDA build)
@pytest.mark.parametrize(
    ("expected", "capability", "made"),
    [
        ("flash", (8, 0), call()),
        ("cudnn", (9, 0), call()),
        ("cudnn", (10, 0), call()),
        ("flash", (12, 0), call()),
        ("efficient", (7, 5), call(dtype=torch.float16)),
        ("math", (7, 5), call(dtype=torch.bfloat16)),
        ("efficient", (8, 0), call(mask=True)),
        ("cudnn", (9, 0), call(mask=True)),
        ("math", (8, 0), call(mask=True, heads=2)),
        ("flash", (8, 0), call(heads=2)),
        ("efficient", (8, 0), call(dtype=torch.float32)),
        ("efficient", (8, 0), call(rows=8, causal=True)),
        ("flash", (9, 0), call(drop=0.1)),
        ("cudnn", (9, 0), call(width=256)),
        ("flash", (10, 0), call(width=256)),
        ("efficient", (8, 0), call(width=512)),
        ("flash", (8, 0), call(width=100)),
        ("math", (8, 0), call(width=100, mask=True)),
    ],
)
def test_the_kernel_of_attention_is_the_one_that_torch_chooses(
    expected: str, capability: tuple[int, int], made: Call
) -> None:
    assert expected == choose(made, capability)
