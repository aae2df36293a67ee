"""How paths are written where they must be the same on every machine: relative, with slashes."""

from __future__ import annotations

import os


def project_root(start: str | None = None) -> str:
    """Return the checkout that `start` (by default the working directory) lies in, else itself."""
    here = os.path.abspath(start or os.getcwd())
    folder = here
    while True:
        if os.path.exists(os.path.join(folder, ".git")):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return here
        folder = above


def relative(path: str, root: str) -> str | None:
    """Return `path` as seen from `root`, or None where it lies outside of it."""
    whole = os.path.abspath(path)
    try:
        inside = os.path.commonpath([whole, os.path.abspath(root)]) == os.path.abspath(root)
    except ValueError:  # another drive
        return None
    return os.path.relpath(whole, root).replace(os.sep, "/") if inside else None


def stable(path: str, root: str) -> str:
    """Return `path` as seen from `root`; one that lies outside of it keeps its own spelling."""
    seen = relative(path, root)
    return path.replace(os.sep, "/") if seen is None else seen
