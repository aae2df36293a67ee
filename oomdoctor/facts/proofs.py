"""Say with which versions of the real libraries a lint rule was proven.

    fp16-and-bf16: proven with transformers 5.24.0, torch 2.13.0

`tools/record_proofs.py` runs tests/proofs and writes the table that is read here.
"""

from __future__ import annotations

from functools import cache

from oomdoctor.facts.tables import table
from oomdoctor.record import NamedTuple

# the order in which libraries are named, what a rule is about first
_ORDER = ("axolotl", "llamafactory", "torchtune", "lightning", "wandb", "deepspeed", "trl", "peft")
_BASIS = ("bitsandbytes", "accelerate", "transformers", "torch")


class Proof(NamedTuple):
    """A test that ran the real libraries and showed the mechanism a rule claims."""

    test: str
    claim: str
    versions: tuple[tuple[str, str], ...]


@cache
def _recorded() -> dict[str, tuple[Proof, ...]]:
    """Return all proofs by rule; read once, when first asked for."""
    return {str(rule): tuple(_proof(row) for row in rows) for rule, rows in table("proofs").items()}


def _proof(row: dict[str, object]) -> Proof:
    versions = row["versions"]
    pairs = versions.items() if isinstance(versions, dict) else ()
    return Proof(str(row["test"]), str(row["claim"]), tuple((str(k), str(v)) for k, v in pairs))


def proofs(rule_name: str) -> tuple[Proof, ...]:
    """Return the proofs of a rule, none for a rule that no test proves."""
    return _recorded().get(rule_name, ())


def proof_line(rule_name: str) -> str | None:
    """Return `proven with transformers 5.24.0, torch 2.13.0`, None for a rule without proof."""
    used: dict[str, set[str]] = {}
    for proof in proofs(rule_name):
        for library, version in proof.versions:
            used.setdefault(library, set()).add(version)
    if not used:
        return None
    ranked = [name for name in (*_ORDER, *_BASIS) if name in used]
    names = [*ranked, *sorted(used.keys() - set(ranked))]
    said = [f"{name} {' and '.join(sorted(used[name], key=_by_number))}" for name in names]
    return f"proven with {', '.join(said)}"


def _by_number(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in version.split("."))
