"""Write the published JSON Schema of rule files, generated from the table that checks them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oomdoctor.rules.bundle import rules_dir
from oomdoctor.rules.schema import json_schema

if TYPE_CHECKING:
    from pathlib import Path

FILE = "schema/rule.schema.json"


def schema_text() -> str:
    """Return the schema as text."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def write_schema(directory: Path | None = None) -> Path:
    """Write the schema below a rules directory."""
    path = (directory or rules_dir()) / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(schema_text(), encoding="utf-8")
    return path


def is_current(directory: Path | None = None) -> bool:
    """Say whether the written schema is the one that the table gives."""
    path = (directory or rules_dir()) / FILE
    return path.exists() and path.read_text(encoding="utf-8") == schema_text()


if __name__ == "__main__":
    write_schema()
