"""Cuts the rows that reach an outermost module to a length: {"tokens": 1024}."""

from __future__ import annotations

from typing import Any

_BY_LENGTH = ("input_ids", "attention_mask", "labels", "position_ids", "token_type_ids")


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Cut before each call of an outermost module."""
    longest = int(arguments.get("tokens") or 0)

    def cut(module: Any, given: Any, named: Any) -> None:
        del module, given
        for name in _BY_LENGTH:
            value = named.get(name)
            if getattr(value, "ndim", 0) >= 2 and value.shape[1] > longest:
                named[name] = value[:, :longest]
                agent.intervened("cut-rows", f"{value.shape[1]} -> {longest}")

    if longest > 0:
        agent.before_root.insert(0, cut)
