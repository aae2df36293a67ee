"""Which kernel computes attention on a card, and the call that torch makes of it.

torch decides in C++ (`scaled_dot_product_attention`, ATen/native/transformers) and asks only builds
with CUDA; the rules here were compared with torch 2.13's own answers for 2,880 calls on each of
sm70, sm75, sm80, sm90, sm100 and sm120.

| | cuDNN | flash | efficient |
|---|---|---|---|
| cards | sm90, sm100, first there | sm80 and newer | all |
| dtypes | fp16, bf16 | fp16, bf16 | all, bf16 from sm80 |
| head dimension | multiple of 8, up to 128 (sm90: 256) | up to 256 | multiple of 8 (half) or 4 |
| mask | yes | no | yes |
| fewer key heads | yes | yes | no |
| causal, lengths differ | yes | no | yes |
| dropout | no | yes | yes |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.functional import pad

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MATH, FLASH, EFFICIENT, CUDNN = "math", "flash", "efficient", "cudnn"
CUDNN_FIRST = ((9, 0), (10, 0))
HALF = (torch.float16, torch.bfloat16)


class Call(NamedTuple):
    """What the choice of a kernel hangs on."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    mask: torch.Tensor | None
    dropout: float
    causal: bool
    grouped: bool


def choose(call: Call, capability: tuple[int, int]) -> str:
    """Return the kernel that torch takes on a card."""
    if any(one.dim() != 4 for one in (call.query, call.key, call.value)):
        return MATH
    order: tuple[str, ...] = (FLASH, EFFICIENT)
    if capability in CUDNN_FIRST:
        order = (CUDNN, *order)
    for name in order:
        enabled, can = _RULES[name]
        if enabled() and can(call, capability):
            return name
    return MATH


def _same_heads(call: Call) -> bool:
    return call.query.size(1) == call.key.size(1) == call.value.size(1)


def _can_cudnn(call: Call, capability: tuple[int, int]) -> bool:
    width, value_width = call.query.size(-1), call.value.size(-1)
    limit = 256 if capability == (9, 0) else 128
    return (
        call.query.dtype in HALF
        and width % 8 == value_width % 8 == 0
        and max(width, value_width) <= limit
        and not call.dropout
        and call.key.size(2) > 1
        and (call.grouped or _same_heads(call))
    )


def _can_flash(call: Call, capability: tuple[int, int]) -> bool:
    width = call.query.size(-1)
    return (
        call.query.dtype in HALF
        and capability >= (8, 0)
        and call.mask is None
        and width <= 256
        and width == call.value.size(-1)
        and (call.grouped or _same_heads(call))
        and not (call.causal and call.query.size(2) != call.key.size(2))
    )


def _can_efficient(call: Call, capability: tuple[int, int]) -> bool:
    dtype = call.query.dtype
    if dtype not in (*HALF, torch.float32) or (dtype == torch.bfloat16 and capability < (8, 0)):
        return False
    multiple = 8 if dtype in HALF else (4 if capability >= (8, 0) else 1)
    widths = (call.query.size(-1), call.value.size(-1))
    return _same_heads(call) and all(width % multiple == 0 for width in widths)


_RULES: dict[str, tuple[Callable[[], bool], Callable[[Call, tuple[int, int]], bool]]] = {
    CUDNN: (torch._C._get_cudnn_sdp_enabled, _can_cudnn),
    FLASH: (torch._C._get_flash_sdp_enabled, _can_flash),
    EFFICIENT: (torch._C._get_mem_efficient_sdp_enabled, _can_efficient),
}


class Attention:
    """`scaled_dot_product_attention` as a CUDA build of torch runs it."""

    def __init__(self, capability: tuple[int, int]) -> None:
        """Run on a card of this compute capability."""
        self._capability = capability
        self.chosen: dict[str, None] = {}

    def __call__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,  # noqa: FBT002 - torch's signature
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        """Compute attention with the kernel that the card would take."""
        grouped = enable_gqa and query.dim() == 4
        call = Call(query, key, value, attn_mask, dropout_p, is_causal, grouped)
        kernel = choose(call, self._capability)
        self.chosen.setdefault(kernel)
        aten = torch.ops.aten
        if kernel == FLASH:
            return _flash(call, scale)
        mask = _as_bias(attn_mask, query.dtype)
        if kernel == MATH:
            return _first(aten._scaled_dot_product_attention_math(
                query, key, value, mask, dropout_p, is_causal, None,
                scale=scale, enable_gqa=enable_gqa,
            ))  # fmt: skip
        wants_sums = torch.is_grad_enabled() and any(
            one.requires_grad for one in (query, key, value)
        )
        if kernel == CUDNN:
            return _first(aten._scaled_dot_product_cudnn_attention(
                query, key, value, mask, wants_sums, dropout_p, is_causal,
                return_debug_mask=False, scale=scale,
            ))  # fmt: skip
        if mask is not None:
            mask = _aligned(mask).expand(*query.shape[:3], key.size(2))
        return _first(
            aten._scaled_dot_product_efficient_attention(
                query, key, value, mask, wants_sums, dropout_p, is_causal, scale=scale
            )
        )


def _first(results: Iterable[torch.Tensor]) -> torch.Tensor:
    """Return the first result and let go of the others in their order, as C++ does."""
    kept, *others = results
    del results
    while others:
        del others[0]
    return kept


def _flash(call: Call, scale: float | None) -> torch.Tensor:
    """Run flash attention: the head dimension is padded to a multiple of 8 and cut again."""
    width = call.query.size(-1)
    query, key, value = (
        pad(one, (0, -width % 8)) if width % 8 else one
        for one in (call.query, call.key, call.value)
    )
    factor = width**-0.5 if scale is None else scale
    wants_mask = False
    out = _first(
        torch.ops.aten._scaled_dot_product_flash_attention(
            query,
            key,
            value,
            call.dropout,
            call.causal,
            wants_mask,
            scale=factor,
        )
    )
    return out[..., :width] if width % 8 else out


def _as_bias(mask: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    """Return a mask of truth values as what is added to the scores."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    zero = torch.scalar_tensor(0.0, dtype=dtype, device=mask.device)
    never = torch.scalar_tensor(-float("inf"), dtype=dtype, device=mask.device)
    bias = torch.where(mask, zero, never)
    del never  # torch lets go of it first
    return bias


def _aligned(bias: torch.Tensor) -> torch.Tensor:
    """Return the bias with rows whose length suits the kernel, padded and cut where it must be."""
    multiple = 16 if bias.dtype in HALF else 4
    length = bias.size(-1)
    if not any(stride % multiple for stride in bias.stride()[:-1]):
        return bias
    padded = pad(bias, (0, -length % multiple))
    return padded[..., :length]
