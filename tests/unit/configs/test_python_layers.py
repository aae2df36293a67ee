"""Scripts that try convolutions alone, and what one of them unfolds its input to."""

from __future__ import annotations

import pytest

from tests.unit.configs.test_fragments import facts_of

CONV = "conv = nn.Conv3d(256, 64, kernel_size=(3, 3, 3)).to('cuda')\n"
INPUT = "x = torch.rand([1, 256, 5, 1090, 1922]).to('cuda')\n"


def test_channels_times_kernel_and_the_places_of_the_output_are_counted() -> None:
    facts = facts_of(CONV + INPUT + "out = conv(x)\n")

    assert facts["code.convolutions_only"] is True
    assert facts["conv.unfolded"] == 256 * 27
    assert facts["conv.places"] == 3 * 1088 * 1920


@pytest.mark.parametrize(
    ("module", "shape", "unfolded", "places"),
    [
        ("nn.Conv2d(3, 8, 5)", "2, 3, 32, 20", 3 * 25, 28 * 16),
        ("torch.nn.Conv2d(3, 8, 3, 2, 1)", "3, 31, 20", 3 * 9, 16 * 10),
        ("nn.Conv1d(4, 8, kernel_size=3, dilation=2, padding=2)", "1, 4, 50", 12, 50),
        ("nn.Conv2d(3, 8, (1, 3), stride=(1, 2)).cuda().half()", "1, 3, 9, 9", 9, 9 * 4),
    ],
)
def test_stride_padding_and_dilation_count(
    module: str, shape: str, unfolded: int, places: int
) -> None:
    facts = facts_of(f"layer = {module}\ny = layer(torch.randn({shape}, device='cuda'))\n")

    assert facts["conv.unfolded"] == unfolded
    assert facts["conv.places"] == places


@pytest.mark.parametrize(
    "text",
    [
        CONV + "x = torch.rand(shape)\nout = conv(x)\n",
        CONV + "x = torch.rand([1, 3, 5, 1090, 1922])\nout = conv(x)\n",
        "conv = nn.Conv2d(8, 8, 3, groups=8)\nout = conv(torch.rand(1, 8, 64, 64))\n",
        "conv = nn.Conv2d(8, 8, 3, padding='same')\nout = conv(torch.rand(1, 8, 64, 64))\n",
        "conv = nn.Conv2d(8, 8, 9)\nout = conv(torch.rand(1, 8, 4, 4))\n",
        "up = nn.ConvTranspose2d(1, 1, 1, 1)\nout = up(torch.rand(1, 1, 64, 64))\n",
    ],
    ids=["unknown-shape", "other-channels", "groups", "same", "too-small", "transposed"],
)
def test_nothing_is_counted_where_the_columns_are_not_known(text: str) -> None:
    facts = facts_of(text)

    assert facts["code.convolutions_only"] is True
    assert "conv.unfolded" not in facts


@pytest.mark.parametrize(
    "more",
    [
        "head = nn.Linear(64, 10)\n",
        "class Net(nn.Module):\n    pass\n",
        "net = AutoModel.from_pretrained('org/name')\n",
        "net.load_state_dict(torch.load('weights.pt'))\n",
    ],
)
def test_a_script_with_other_weights_is_none_of_convolutions_alone(more: str) -> None:
    assert "code.convolutions_only" not in facts_of(CONV + INPUT + more + "out = conv(x)\n")
