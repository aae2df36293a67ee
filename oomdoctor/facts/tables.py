"""Read a table of the package's data, such as `gpus`, from its JSON file."""

from __future__ import annotations

import json
import os
from typing import Any


def table(name: str) -> Any:  # noqa: ANN401 - each table has its own shape, known to its module
    """Return the content of a table."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(f"{package}/tables/{name}.json", encoding="utf-8") as file:
        return json.load(file)
