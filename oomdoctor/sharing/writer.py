"""Writes a bundle as a zip archive or a folder: all of it or nothing, over nothing that exists."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError, Location

if TYPE_CHECKING:
    from collections.abc import Iterable

_MADE = (1980, 1, 1, 0, 0, 0)
_OURS = "manifest.json"


def write_bundle(files: Iterable[tuple[str, str]], path: str, *, force: bool = False) -> None:
    """Write files to `path`: an archive where it ends in `.zip`, else a folder."""
    target = Path(path)
    if os.path.lexists(target):
        _check(target, force=force)
    try:
        if target.suffix.lower() == ".zip":
            _write_archive(files, target)
        else:
            _write_folder(files, target)
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror}", location=Location(path=path)) from error


def _check(target: Path, *, force: bool) -> None:
    place = Location(path=str(target))
    if not force:
        raise InputError(
            "the bundle exists", location=place, hint="choose another name, or give --force"
        )
    is_archive = target.suffix.lower() == ".zip"
    ours = target.is_file() if is_archive else (target / _OURS).is_file()
    if target.is_symlink() or not ours:
        raise InputError("this is no bundle, it is not replaced", location=place)


def _write_archive(files: Iterable[tuple[str, str]], target: Path) -> None:
    from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

    handle, part = tempfile.mkstemp(dir=target.parent, prefix=".oomdoctor-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as raw, ZipFile(raw, "w", ZIP_DEFLATED) as archive:
            for name, text in files:
                entry = ZipInfo(name, _MADE)
                entry.compress_type = ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, text.encode("utf-8", errors="replace"))
        Path(part).replace(target)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def _write_folder(files: Iterable[tuple[str, str]], target: Path) -> None:
    part = Path(tempfile.mkdtemp(dir=target.parent, prefix=".oomdoctor-"))
    try:
        for name, text in files:
            path = part / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text.encode("utf-8", errors="replace"))
        if target.exists():
            shutil.rmtree(target)
        part.chmod(0o755)
        part.replace(target)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
