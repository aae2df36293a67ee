"""What the value of a patch asks for: a setting to make, a key to take out, a key to rename.

{evaluation_strategy: "!rename eval_strategy", logging_dir: "!remove", bf16: true}
"""

from __future__ import annotations

REMOVE = "!remove"
RENAME = "!rename"


def removes(value: object) -> bool:
    """Say whether a patch takes the key out."""
    return value == REMOVE


def new_name(value: object) -> str | None:
    """Return the name that a key is to get in its place; None where it is not to be renamed."""
    if not isinstance(value, str) or not value.startswith(f"{RENAME} "):
        return None
    return value[len(RENAME) :].strip().rpartition(".")[2] or None


def sets(value: object) -> bool:
    """Say whether a patch gives the key a value."""
    return not removes(value) and new_name(value) is None


def sibling(key: str, name: str) -> str:
    """Return the dotted key that stands beside another one under a new name."""
    head, dot, _ = key.rpartition(".")
    return f"{head}{dot}{name}"


def fault(value: object) -> str | None:
    """Say what is wrong with a value that looks like an order and is none."""
    if not isinstance(value, str) or not value.startswith("!"):
        return None
    if removes(value) or new_name(value):
        return None
    return f"{value!r} is no order; write {REMOVE!r} or '{RENAME} NEW_NAME'"
