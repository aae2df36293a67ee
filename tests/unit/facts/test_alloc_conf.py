from __future__ import annotations

import pytest

from oomdoctor.facts import alloc_conf


def test_options_are_parted_outside_brackets_only() -> None:
    setting = "roundup_power2_divisions:[256:1,512:2], max_split_size_mb:64"

    assert alloc_conf.options(setting) == (
        ("roundup_power2_divisions", "[256:1,512:2]"),
        ("max_split_size_mb", "64"),
    )


@pytest.mark.parametrize(
    ("setting", "known"),
    [("expandable_segments:True", True), ("max_split_size_mb:64", True), ("something", False)],
)
def test_a_setting_names_a_known_option(setting: str, known: bool) -> None:
    assert known is alloc_conf.is_setting(setting)


@pytest.mark.parametrize(
    "setting",
    [
        "max_split_size_mb:many",
        "garbage_collection_threshold:80",
        "expandable_segments:perhaps",
        "backend:mine",
    ],
)
def test_options_of_a_wrong_form_are_left_out(setting: str) -> None:
    assert {"alloc.conf": setting} == alloc_conf.values(setting)
