"""Whose call is named when memory runs out in a trial."""

from __future__ import annotations

from types import FunctionType

import pytest

torch = pytest.importorskip("torch")


def as_of(file: str, function: FunctionType) -> FunctionType:
    """Return a function as if it stood in another file."""
    return FunctionType(function.__code__.replace(co_filename=file), globals())


def note() -> None:
    raise torch.OutOfMemoryError("no memory")


def attend() -> None:
    globals()["counter"]()


@pytest.mark.parametrize(
    "ours",
    ["/v/oomdoctor/inject/counted.py", "C:\\v\\oomdoctor\\virtual\\inside\\known_values.py"],
)
def test_a_frame_of_what_counts_memory_or_follows_values_is_not_named(
    monkeypatch: pytest.MonkeyPatch, ours: str
) -> None:
    from oomdoctor.worker.trials.failures import told

    monkeypatch.setitem(globals(), "counter", as_of(ours, note))

    with pytest.raises(torch.OutOfMemoryError) as caught:
        as_of("/v/modeling.py", attend)()

    found = told(caught.value, torch.device("cuda"))
    assert found is not None
    assert (found.backend, found.site) == ("cuda", "modeling.py:attend")
