"""Stretches the rows of every batch to a length as they are collated: {"tokens": 4096}."""

from __future__ import annotations

from typing import Any

from .loaders import when_made

_BY_LENGTH = ("input_ids", "attention_mask", "labels", "token_type_ids", "position_ids")


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Change what each DataLoader collates with."""
    tokens = int(arguments.get("tokens") or 0)

    def change(given: dict[str, Any]) -> None:
        collate = given.get("collate_fn")
        if isinstance(collate, Stretched):
            return
        if collate is None:
            from torch.utils.data import default_collate

            collate = default_collate
        given["collate_fn"] = Stretched(collate, tokens, agent)

    if tokens > 0:
        when_made(agent, change)


class Stretched:
    """A collator whose rows are repeated from their start up to a length."""

    def __init__(self, collate: Any, tokens: int, agent: Any) -> None:
        """Take the collator of the program."""
        self.collate = collate
        self.tokens = tokens
        self.agent = agent

    def __call__(self, examples: Any) -> Any:
        """Return a batch of rows as long as wanted, or as they are if they are longer."""
        batch = self.collate(examples)
        if hasattr(batch, "items"):
            for name in _BY_LENGTH:
                if name in batch:
                    batch[name] = self.stretched(batch[name])
            return batch
        if isinstance(batch, (list, tuple)):
            return type(batch)(map(self.stretched, batch))
        return self.stretched(batch)

    def stretched(self, value: Any) -> Any:
        """Return a tensor of rows with as many columns as wanted; anything else as it is."""
        is_rows = getattr(value, "ndim", 0) == 2 and hasattr(value, "is_floating_point")
        if not is_rows or value.is_floating_point() or not 0 < value.shape[1] < self.tokens:
            return value
        times = -(-self.tokens // value.shape[1])
        self.agent.intervened("stretch-rows", f"{value.shape[1]} -> {self.tokens}")
        return value.repeat(1, times)[:, : self.tokens].contiguous()

    def __getattr__(self, name: str) -> Any:
        """Return what else the collator of the program has."""
        if name in ("collate", "__setstate__"):
            raise AttributeError(name)
        return getattr(self.collate, name)
