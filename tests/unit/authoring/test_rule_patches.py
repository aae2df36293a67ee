"""Patches of fixes are applied to a sample and read again."""

from __future__ import annotations

import difflib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from oomdoctor.authoring.patches import YAML_SAMPLE, applied, patch_faults, values_of
from oomdoctor.model.enums import Safety
from oomdoctor.model.plan import Patch
from oomdoctor.rules.shape import Fix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TEXTS = ["a\nb\nc\n", "", "a\n", "x\na\nb\nc\nd\ne\nf\ng\nh\ni\nz\n", "c\nb\n", "a\nb\nc\nnew\n"]


@pytest.mark.parametrize("old", TEXTS)
@pytest.mark.parametrize("new", TEXTS)
def test_a_diff_applied_to_the_old_text_gives_the_new_one(old: str, new: str) -> None:
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True))

    assert applied("".join(lines), old) == new


def test_settings_are_told_by_dotted_path() -> None:
    assert values_of("a: {b: 1}\nc: [x]\n") == {"a.b": 1, "c": ["x"]}


def patcher(new_text: str) -> ModuleType:
    """Return a stand-in for the patch module that writes `new_text` whatever is asked."""

    def patch(
        readings: Sequence[object], settings: Mapping[str, Mapping[str, object]]
    ) -> tuple[Patch, ...]:
        del readings
        lines = difflib.unified_diff(
            YAML_SAMPLE.splitlines(keepends=True), new_text.splitlines(keepends=True)
        )
        return tuple(
            Patch(dialect=name, settings=values, diff="".join(lines))
            for name, values in settings.items()
        )

    module = ModuleType("oomdoctor.configs.patch")
    module.patch = patch  # type: ignore[attr-defined] - a stand-in module
    return module


AFTER = [
    (YAML_SAMPLE + "bf16: true\n", []),
    (
        YAML_SAMPLE + "bf16: 'true'\n",
        ["fix x: axolotl: bf16 is 'true' after the patch, expected True"],
    ),
    ("bf16: true\n", ["fix x: axolotl: the patch changes a setting that it does not name"]),
    (YAML_SAMPLE, ["fix x: axolotl: the patch makes no diff of a sample config"]),
]


@pytest.mark.parametrize(("text", "faults"), AFTER)
def test_what_a_patch_leaves_behind_is_compared(
    text: str, faults: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "oomdoctor.configs.patch", patcher(text))
    fix = Fix(id="x", title="X", safety=Safety.SAFE, patch={"axolotl": {"bf16": True}})

    assert list(patch_faults(fix)) == faults
