from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from oomdoctor.model.job import CardSpec

pytest.importorskip("torch")

import torch

from tests.worker.fake.cards import A100, H100, sequence

functional = torch.nn.functional


def half(*sizes: int, grad: bool = False) -> Callable[[], Tensor]:
    return lambda: torch.empty(*sizes, device="cuda", dtype=torch.bfloat16, requires_grad=grad)


def single(*sizes: int, grad: bool = False) -> Callable[[], Tensor]:
    return lambda: torch.empty(*sizes, device="cuda", requires_grad=grad)


def numbers(*sizes: int) -> Callable[[], Tensor]:
    return lambda: torch.empty(*sizes, device="cuda", dtype=torch.int64)


# every figure below is what torch 2.13's CUDA host code allocates for the same call


def test_a_sum_over_rows_takes_partial_results_and_counters() -> None:
    sizes = sequence(lambda rows: rows.sum(0), single(1024, 896))

    assert sizes == [3584, 7340032, 28]


def test_a_sum_on_a_card_with_more_processors_is_split_by_its_own_numbers() -> None:
    sizes = sequence(lambda rows: rows.sum(), single(2, 512, 896), card=H100)

    assert sizes == [4, 448, 4]


def test_the_backward_of_a_softmax_takes_a_product() -> None:
    def run(rows: Tensor) -> Any:
        functional.softmax(rows, -1).backward(torch.empty_like(rows))

    assert sequence(run, half(4, 300, grad=True)) == [2400, 2400, 2400, 2400]


def test_a_dropout_makes_its_mask_first() -> None:
    assert sequence(lambda row: functional.dropout(row, 0.1), half(300)) == [300, 600]


def test_an_embedding_of_many_tokens_sorts_them_in_its_backward() -> None:
    def run(weight: Tensor, tokens: Tensor) -> Any:
        rows = functional.embedding(tokens, weight)
        rows.backward(torch.empty_like(rows))

    sizes = sequence(run, half(32000, 128, grad=True), numbers(1, 20000))

    expected = [5120000, 5120000, 160000, 160000, 160000, 330751, 8192000, 160000, 8, 160000, 1279]
    assert [*expected, 160000, 160000, 1535, 8, 176000, 11264000] == sizes


def test_an_embedding_of_few_rows_adds_up_in_fp32_row_by_row() -> None:
    def run(weight: Tensor, tokens: Tensor) -> Any:
        rows = functional.embedding(tokens, weight)
        rows.backward(torch.empty_like(rows))

    sizes = sequence(run, half(50, 128, grad=True), numbers(1, 20000))

    assert sizes[-7:] == [400, 400, 1279, 8, 16400, 16400, 25600]


def test_adding_by_index_sorts_the_indices() -> None:
    def run(table: Tensor, places: Tensor) -> Any:
        rows = table[places]
        rows.backward(torch.empty_like(rows))

    sizes = sequence(run, half(5000, 64, grad=True), numbers(20000))

    assert sizes == [2560000, 2560000, 640000, 160000, 160000, 160000, 160000, 160000, 330751]


def test_sorting_a_long_row_takes_what_radix_sort_needs() -> None:
    assert sequence(lambda row: row.sort(), single(20000)) == [80000, 160000, 160000, 255999]


def test_a_mask_as_an_index_counts_its_true_elements() -> None:
    def run() -> Any:
        rows = torch.zeros(300, 64, device="cuda")
        mask = (torch.arange(300) < 10).to("cuda")
        return rows[mask]

    assert 10 * 64 * 4 in sequence(run)


def test_values_that_the_host_knows_stay_known_on_the_card() -> None:
    found = []

    def run() -> Any:
        labels = torch.tensor([[1, 2, -100, -100, 5]]).to("cuda")
        found.append((labels != -100).sum().item())
        found.append((labels[0] > 1).all().item())

    sequence(run)

    assert found == [3, False]


def test_a_tensor_from_the_host_in_another_order_needs_no_second_copy() -> None:
    assert sequence(lambda: torch.zeros(300, 64).t().to("cuda")) == [76800]


def test_a_gradient_that_only_autograd_holds_is_added_in_place() -> None:
    def run(row: Tensor) -> Any:
        middle = row.exp()
        total = middle * 2 + middle * 3
        del middle
        total.backward(torch.empty_like(total))

    # exp, two products, their sum, the gradient; two gradients of products, that of exp
    assert len(sequence(run, single(1000, grad=True))) == 8


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        (A100, [1835008, 57344, 16, 8, 1835008, 1835008, 1835008, 57344, 3670016]),
        (H100, [8, 8, 1835008, 57344, 256, 1835008, 1835008, 1835008, 3727616]),
    ],
    ids=["flash", "cudnn"],
)
def test_attention_takes_what_the_kernel_of_the_card_takes(
    card: CardSpec, expected: list[int]
) -> None:
    def run(query: Tensor, key: Tensor, value: Tensor) -> Any:
        result = functional.scaled_dot_product_attention(
            *(one.transpose(1, 2) for one in (query, key, value)), is_causal=True
        )
        result.backward(
            torch.empty(2, 512, 14, 64, device="cuda", dtype=query.dtype).transpose(1, 2)
        )

    one = half(2, 512, 14, 64, grad=True)
    sizes = sequence(run, one, one, one, card=card)

    del sizes[expected.index(256) + 1 if card is H100 else 4]  # the gradient that it is given
    assert expected == sizes


def test_attention_with_a_mask_takes_the_efficient_kernel_and_pads_it() -> None:
    def run(query: Tensor, mask: Tensor) -> Any:
        one = query.transpose(1, 2)
        return functional.scaled_dot_product_attention(one, one, one, mask)

    sizes = sequence(run, half(1, 300, 4, 96), half(1, 1, 300, 300))

    assert sizes == [182400, 230400]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float16])
def test_a_product_of_groups_has_its_result_in_any_dtype(dtype: Any) -> None:
    def run(rows: Tensor) -> Any:
        experts = torch.empty(4, 32, 16, device="cuda", dtype=dtype)
        ends = torch.empty(4, device="cuda", dtype=torch.int32)
        return torch._grouped_mm(rows, experts, offs=ends)

    def rows() -> Tensor:
        return torch.empty(24, 32, device="cuda", dtype=dtype)

    assert sequence(run, rows)[-1] == 24 * 16 * dtype.itemsize
