"""What a worker on a virtual card is started with, and which cards are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import InputError, ProbeError
from oomdoctor.estimating import virtual_sessions
from oomdoctor.estimating.engine import NotSimulatedError
from oomdoctor.estimating.virtual_sessions import ROOM_BYTES, environment_on
from oomdoctor.model.job import CardSpec
from oomdoctor.virtual.outside import CONTEXT_BYTES
from tests.unit.estimating.doubles import GIB, a_card

if TYPE_CHECKING:
    from typing import Any

    from oomdoctor.errors import OomdoctorError

SMALL = a_card(24 * GIB, "small")


def test_a_card_of_another_maker_is_refused() -> None:
    card = CardSpec(
        name="AMD Instinct MI300X", capability=(8, 0), processors=108, total_bytes=192 * GIB
    )

    with pytest.raises(NotSimulatedError, match="only NVIDIA's cards can be played") as caught:
        environment_on(card, "", "python")

    assert "without --engine" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (InputError("no C compiler: none of cc", hint="install gcc"), "install gcc"),
        (ProbeError("gcc failed", hint="the headers may differ"), "the headers may differ"),
        (InputError("something else"), "without --engine the job is simulated"),
    ],
)
def test_what_lacks_is_said_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, error: OomdoctorError, hint: str
) -> None:
    def lacking(*_: object, **__: object) -> dict[str, str]:
        raise error

    monkeypatch.setattr(virtual_sessions, "virtual_environment", lacking)

    with pytest.raises(NotSimulatedError) as caught:
        environment_on(SMALL, "", "python")

    assert caught.value.message == f"--engine virtual: {error.message}"
    assert hint in str(caught.value.hint)


def test_the_card_has_room_for_any_peak_and_settings_of_our_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = []

    def environment(card: object, **_: object) -> dict[str, str]:
        played.append(card)
        return {"LD_PRELOAD": "libcuda.so.1"}

    monkeypatch.setattr(virtual_sessions, "virtual_environment", environment)
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128")

    plain = environment_on(SMALL, "", "python")
    other = environment_on(SMALL, "expandable_segments:True", "python")

    assert {one.total_bytes for one in played} == {ROOM_BYTES}
    # what the user's own environment says is none of the estimate's
    assert plain["PYTORCH_CUDA_ALLOC_CONF"] is None
    assert other["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    assert plain["CUDA_VISIBLE_DEVICES"] is None


def test_a_card_of_its_own_size_has_its_memory_and_a_context(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played: list[Any] = []
    monkeypatch.setattr(
        virtual_sessions, "virtual_environment", lambda card, **_: played.append(card) or {}
    )

    environment_on(SMALL, "", "python", is_own_size=True)

    assert played[0].total_bytes == SMALL.total_bytes
    assert played[0].context_bytes == CONTEXT_BYTES
