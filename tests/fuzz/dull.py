"""Texts that are hard to read because nothing is in them: one word over and over before a log."""

from __future__ import annotations

WORDS = (
    *("-", " ", "|", "{", "(", "a", "1", ".", "/", "=", "\t", "- ", "a.", "1 ", "a=", "{a}"),
    *("\n", "x \\\n", "{\n", "    ^^^^^\n", "    x = f(\n", "  |\n", "a: 1\n", "- a\n", "1\n"),
    *('  File "a.py", line 1, in f\n', "[rank0]: \n", "a-1 \n", "# a\n", ">>> a\n", "\\", '"'),
)


def before(log: str, word: str, size: int) -> str:
    """Return a text of `size` characters that ends in `log`."""
    most = max(0, size - len(log) - 1)
    return f"{(word * (most // len(word) + 1))[:most]}\n{log}"
