"""Who holds the peak by formula: weights by groups of modules, all else by category.

| group | what is in it |
|---|---|
| embed_tokens, norm, lm_head | the weights outside of the layers |
| layers.*.self_attn, .mlp, .norms | those of all layers together |
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.memory.tape import ACTIVATION, ADAPTER, LOGITS, OPTIMIZER, WEIGHT
from oomdoctor.model.estimate import Owner

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.memory.tape import Param

FORMULA = "formula"
OWNERS = 10
_MODULES = {LOGITS: "lm_head", ACTIVATION: "layers.*"}
_MADE = {WEIGHT: ("load", ""), ADAPTER: ("load", ""), OPTIMIZER: ("step 1", "optimizer")}
_LAYER = re.compile(r"^(?P<stack>\w+)\.\d+\.(?P<part>self_attn|cross_attn|mlp|norm)")


def group_of(name: str) -> str:
    """Return the group of a weight: `layers.3.mlp.up_proj` is of `layers.*.mlp`."""
    found = _LAYER.match(name)
    if found is None:
        return name.partition(".")[0]
    part = "norms" if found["part"] == "norm" else found["part"]
    return f"{found['stack']}.*.{part}"


def owners(
    parts: Mapping[str, int], place: tuple[str, str, str], weights: Sequence[tuple[Param, int]]
) -> tuple[Owner, ...]:
    """Return the largest owners of the highest point, the largest first."""
    rows: list[Owner] = []
    for category, size in parts.items():
        phase, part = _MADE.get(category, place[:2])
        shares = _shares(category, weights) or {_MODULES.get(category, ""): (1.0, 1)}
        whole = sum(share for share, _ in shares.values())
        rows += [
            Owner(
                module=module,
                operator=FORMULA,
                category=category,
                phase=phase,
                part=part,
                bytes=round(size * share / whole),
                allocations=count,
            )
            for module, (share, count) in shares.items()
            if size > 0
        ]
    return tuple(sorted(rows, key=lambda row: -row.bytes)[:OWNERS])


def _shares(category: str, weights: Sequence[tuple[Param, int]]) -> dict[str, tuple[float, int]]:
    """Return what each group has of the weights, or of the adapters, and how many tensors it has.

    Sharding and a quantised base change the sum, and the groups with it.
    """
    found: dict[str, tuple[float, int]] = {}
    if category not in (WEIGHT, ADAPTER):
        return found
    for param, times in weights:
        adapted = "lora_" in param.name or param.name.endswith("magnitude")
        if adapted != (category == ADAPTER) or not param.count:
            continue
        width = param.stored / 4 if param.quantised else param.stored
        group = group_of(param.name)
        share, count = found.get(group, (0.0, 0))
        found[group] = (share + param.count * width * times, count + times)
    return found
