"""Small values that follow from the host's are right, also where no kernel runs."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _follows_values(torch: Any) -> None:
    """A virtual card follows values with torch 2.9 and later."""
    if os.environ.get("OOMDOCTOR_VIRTUAL_NAME") and not hasattr(torch.library, "get_kernel"):
        pytest.skip("this torch lets no operator be followed")


def test_a_mask_is_what_the_host_made_it(torch: Any) -> None:
    mask = torch.ones(4, 512, dtype=torch.long)
    mask[1, 100:] = 0

    on_device = mask.cuda().to(torch.bool)

    assert [row.all().item() for row in on_device] == [True, False, True, True]
    assert on_device.sum().item() == 3 * 512 + 100
    assert torch.nonzero(on_device).shape == (3 * 512 + 100, 2)


def test_labels_that_count_are_counted_and_selected(torch: Any) -> None:
    labels = torch.arange(2048).reshape(4, 512).cuda()

    labels[:, :100] = -100

    counts = labels.ne(-100)
    assert counts.sum().item() == 4 * 412
    assert labels[counts].shape == (4 * 412,)


def test_memory_that_is_used_again_holds_what_it_is_filled_with(torch: Any) -> None:
    used = torch.arange(1, 65, device="cuda")
    address = used.data_ptr()
    del used

    filled = torch.zeros(64, dtype=torch.long, device="cuda")

    assert filled.data_ptr() == address
    assert filled.tolist() == [0] * 64


def test_numbers_of_python_promote_as_ever(torch: Any) -> None:
    whole = torch.ones(3, dtype=torch.int32, device="cuda")
    half = torch.ones((), dtype=torch.bfloat16, device="cuda")

    assert (whole * 2).dtype == torch.int32
    assert (whole * 2.5).dtype == torch.float32
    assert (half * 2.5).dtype == torch.bfloat16
    assert (whole + 4).tolist() == [5, 5, 5]


@pytest.mark.parametrize("sampled", [False, True])
def test_generation_ends_at_the_length_that_is_asked_for(torch: Any, sampled: bool) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=1,
        num_attention_heads=2,
        vocab_size=100,
        eos_token_id=None,
        pad_token_id=0,
    )
    model = transformers.LlamaForCausalLM(config).cuda().eval()
    prompt = torch.ones(2, 5, dtype=torch.long).cuda()

    answer = model.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=7, do_sample=sampled
    )

    assert answer.shape == (2, 12)


def test_values_are_followed_where_a_library_makes_all_new_tensors_on_the_card(
    torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = torch.tensor([3, 0, 5]).cuda()
    for name in ("empty", "full", "tensor", "arange"):
        plain = getattr(torch, name)
        monkeypatch.setattr(torch, name, partial(_on_the_card, plain))

    counts = (ids * 2).ne(0)

    assert counts.tolist() == [True, False, True]
    assert ids[counts].tolist() == [3, 5]


def _on_the_card(plain: Any, *arguments: Any, **named: Any) -> Any:
    return plain(*arguments, **{"device": "cuda", **named})
