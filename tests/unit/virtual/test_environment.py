"""Which variables put a process on virtual cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import UsageError
from oomdoctor.record import replace
from oomdoctor.virtual.card import VirtualCard
from oomdoctor.virtual.environment import environment_of

if TYPE_CHECKING:
    from pathlib import Path

CARD = VirtualCard(name="a card", total_bytes=8 << 30, capability=(8, 9), processors=58)


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    (tmp_path / "libnvrtc.so.13").touch()
    return tmp_path


def test_a_card_is_described(libraries: Path) -> None:
    found = environment_of([CARD] * 2, libraries=libraries, base={})

    ours = {name: value for name, value in found.items() if name.startswith("OOMDOCTOR_")}
    assert ours == {
        "OOMDOCTOR_VIRTUAL_NAME": "a card",
        "OOMDOCTOR_VIRTUAL_COUNT": "2",
        "OOMDOCTOR_VIRTUAL_TOTAL_BYTES": str(8 << 30),
        "OOMDOCTOR_VIRTUAL_CONTEXT_BYTES": "0",
        "OOMDOCTOR_VIRTUAL_CAPABILITY": "8.9",
        "OOMDOCTOR_VIRTUAL_SM_COUNT": "58",
    }


def test_libraries_are_loaded_before_all_others(libraries: Path) -> None:
    found = environment_of([CARD], libraries=libraries, base={"LD_PRELOAD": "/their/own.so"})

    loaded = found["LD_PRELOAD"].split(":")
    assert loaded[0] == str(libraries / "libcuda.so.1")
    assert str(libraries / "libnvrtc.so.13") in loaded
    assert loaded[-1] == "/their/own.so"


def test_what_was_set_before_stays(libraries: Path) -> None:
    base = {"PYTHONPATH": "/theirs", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}

    found = environment_of([CARD], libraries=libraries, base=base)

    assert found["PYTHONPATH"].endswith(":/theirs")
    assert found["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    assert base == {"PYTHONPATH": "/theirs", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}


def test_kernels_that_are_tuned_with_made_up_times_stay_apart(libraries: Path) -> None:
    found = environment_of([CARD], libraries=libraries, base={})

    assert found["TRITON_CACHE_DIR"] == f"{libraries}-tuned/triton"
    assert found["TORCHINDUCTOR_CACHE_DIR"] == f"{libraries}-tuned/inductor"


def test_the_log_is_named_where_one_is_wanted(libraries: Path, tmp_path: Path) -> None:
    with_log = environment_of([CARD], libraries=libraries, log=tmp_path / "log", base={})
    without = environment_of([CARD], libraries=libraries, base={})

    assert with_log["OOMDOCTOR_VIRTUAL_LOG"] == str(tmp_path / "log")
    assert "OOMDOCTOR_VIRTUAL_LOG" not in without


@pytest.mark.parametrize("count", [0, 17])
def test_a_machine_has_one_to_sixteen_cards(libraries: Path, count: int) -> None:
    with pytest.raises(UsageError, match="1 to 16"):
        environment_of([CARD] * count, libraries=libraries, base={})


def test_cards_of_several_kinds_are_listed(libraries: Path) -> None:
    other = replace(CARD, name="other", capability=(9, 0), others_bytes=3 << 30)

    found = environment_of([CARD, other], libraries=libraries, base={})

    assert found["OOMDOCTOR_VIRTUAL_NAME"] == "a card;other"
    assert found["OOMDOCTOR_VIRTUAL_CAPABILITY"] == "8.9;9.0"
    assert found["OOMDOCTOR_VIRTUAL_OTHERS_BYTES"] == f"0;{3 << 30}"
    assert found["OOMDOCTOR_VIRTUAL_TOTAL_BYTES"] == str(8 << 30)


def test_the_settings_of_a_run_around_this_one_are_left_out(libraries: Path) -> None:
    base = {"OOMDOCTOR_VIRTUAL_FAIL_AT": "3", "OOMDOCTOR_VIRTUAL_LOG": "/theirs"}

    found = environment_of([CARD], libraries=libraries, base=base)

    assert "OOMDOCTOR_VIRTUAL_FAIL_AT" not in found
    assert "OOMDOCTOR_VIRTUAL_LOG" not in found


@pytest.mark.parametrize("named", ["", "3", "0,3", "GPU-8f3c", "NoDevFiles"])
def test_cards_are_seen_though_a_variable_speaks_of_real_ones(libraries: Path, named: str) -> None:
    base = {"CUDA_VISIBLE_DEVICES": named}

    found = environment_of([CARD] * 3, libraries=libraries, base=base)

    assert found["CUDA_VISIBLE_DEVICES"] == "0,1,2"


@pytest.mark.parametrize("named", ["0", "2,1", None])
def test_a_choice_among_the_virtual_cards_stays(libraries: Path, named: str | None) -> None:
    base = {} if named is None else {"CUDA_VISIBLE_DEVICES": named}

    found = environment_of([CARD] * 3, libraries=libraries, base=base)

    assert found.get("CUDA_VISIBLE_DEVICES") == named
