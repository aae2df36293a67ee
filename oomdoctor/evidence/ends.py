"""Head and tail of a file, where its middle is of no use."""

from __future__ import annotations

import os
from io import BytesIO
from typing import TYPE_CHECKING

from oomdoctor.evidence.blocks import WHOLE_BYTES
from oomdoctor.evidence.source import is_compressed, read_source

if TYPE_CHECKING:
    from oomdoctor.evidence.source import Source

END_BYTES = 96 * 1024


def read_ends(path: str) -> Source:
    """Read the first and last lines of a large file of text, any other file as a whole."""
    if os.stat(path).st_size > WHOLE_BYTES:  # noqa: PTH116 - as in `source`
        with open(path, "rb") as file:  # noqa: PTH123 - as in `source`
            head = file.read(END_BYTES)
            if not is_compressed(head):
                file.seek(-END_BYTES, os.SEEK_END)
                return read_source("-", stdin=BytesIO(head + b"\n" + file.read()))
    return read_source(path)
