"""Recurrent layers of cuDNN run, with their weights in one buffer as cuDNN lays them out."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("LSTM", {"bidirectional": True, "num_layers": 3, "dropout": 0.1}),
        ("LSTM", {"proj_size": 16, "num_layers": 2}),
        ("GRU", {"num_layers": 2}),
        ("RNN", {"bidirectional": True}),
    ],
)
def test_all_weights_lie_in_one_buffer_without_gaps(
    torch: Any, kind: str, options: dict[str, Any]
) -> None:
    layer = getattr(torch.nn, kind)(32, 64, batch_first=True, **options).cuda()

    storages = {one.untyped_storage().data_ptr(): one for one in layer.parameters()}

    (one,) = storages.values()
    elements = sum(parameter.numel() for parameter in layer.parameters())
    assert one.untyped_storage().nbytes() == 4 * elements
    assert {one.data_ptr() % 4 for one in layer.parameters()} == {0}


def test_a_layer_trains_and_keeps_something_for_it(torch: Any) -> None:
    layer = torch.nn.LSTM(32, 64, batch_first=True).cuda()
    rows = torch.randn(4, 10, 32, device="cuda", requires_grad=True)
    before = torch.cuda.memory_allocated()

    output, _ = layer(rows)
    held = torch.cuda.memory_allocated() - before
    output.sum().backward()

    assert output.shape == (4, 10, 64)
    assert held > output.nbytes
    assert rows.grad.shape == rows.shape


def test_rows_of_several_lengths_are_packed(torch: Any) -> None:
    layer = torch.nn.GRU(32, 64).cuda()
    rows = torch.randn(3, 4, 32, device="cuda")

    packed = torch.nn.utils.rnn.pack_padded_sequence(rows, [3, 2, 2, 1])

    assert layer(packed)[0].data.shape == (8, 64)
