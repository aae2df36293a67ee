"""The keys of every object in the JSON, as a frozen list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.render.json import as_dict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from oomdoctor.model.plan import Diagnosis

# objects whose keys are names out of the input
FREE = ("facts", "settings", "values")


def paths(value: object, path: str = "") -> Iterator[str]:
    """Yield the path of every key, list items as []."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield f"{path}.{key}".lstrip(".")
            if key not in FREE:
                yield from paths(part, f"{path}.{key}")
    elif isinstance(value, list):
        for part in value:
            yield from paths(part, f"{path}[]")


def test_json_keys_are_as_agreed(full: Diagnosis, golden: Callable[[str, str], None]) -> None:
    golden(
        "screens/json_keys.txt", "".join(f"{path}\n" for path in sorted(set(paths(as_dict(full)))))
    )
