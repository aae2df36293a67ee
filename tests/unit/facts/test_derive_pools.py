from __future__ import annotations

import pytest

from oomdoctor.facts.book import FactBook
from oomdoctor.facts.derive import derive
from oomdoctor.model.core import Fact, Value

GIB = 1 << 30


def derived(**values: Value) -> dict[str, Value]:
    facts = [Fact(key=key.replace("__", "."), value=value) for key, value in values.items()]
    return {key: fact.value for key, fact in derive(FactBook().add(facts)).facts.items()}


@pytest.mark.parametrize(
    ("form", "library"), [("allocator", "torch"), ("engine", "other"), ("runtime", "other")]
)
def test_a_text_that_no_library_is_named_for_is_pytorch_s_by_its_form(
    form: str, library: str
) -> None:
    assert derived(oom__seen=True, oom__form=form)["oom.library"] == library


def test_a_named_library_stays() -> None:
    said = derived(oom__seen=True, oom__form="engine", oom__library="cupy")

    assert said["oom.library"] == "cupy"


def test_without_a_message_there_is_no_library() -> None:
    assert "oom.library" not in derived(oom__seen=False)


def test_what_a_pool_has_left_is_compared_with_the_request() -> None:
    said = derived(bfc__limit=10 * GIB, bfc__in_use=8 * GIB, oom__requested=3 * GIB)

    assert said["bfc.unused"] == 2 * GIB
    assert said["bfc.in_use_share"] == 0.8
    assert said["bfc.unused_fits"] is False


def test_tensorflow_s_device_is_a_share_of_the_card() -> None:
    said = derived(gpu__total=8 * GIB, tf__device_memory=2 * GIB, tf__reserve_first=6 * GIB)

    assert said["tf.device_share"] == 0.25
    assert said["tf.reserve_share"] == 0.75


def test_a_program_s_excess_and_shares_follow_from_its_parts() -> None:
    said = derived(
        gpu__total=8 * GIB,
        xla__total=10 * GIB,
        xla__parameters=4 * GIB,
        xla__constants=GIB,
        xla__temp=3 * GIB,
    )

    assert said["xla.excess"] == 2 * GIB
    assert said["xla.parameter_share"] == 0.5
    assert said["xla.temp_share"] == 0.3


def test_a_tpu_program_s_excess_follows_from_its_need() -> None:
    assert derived(oom__capacity=16 * GIB, xla__hbm_used=20 * GIB)["xla.excess"] == 4 * GIB


@pytest.mark.parametrize(
    ("shape", "scores", "vocabulary", "table"),
    [
        ("8x12x1024x1024", True, False, False),
        ("8x128x50257", False, True, False),
        ("1400000x256", False, False, True),
        ("64x512x28x28", False, False, False),
    ],
)
def test_a_tensor_s_shape_tells_its_kind(
    shape: str, scores: bool, vocabulary: bool, table: bool
) -> None:
    said = derived(oom__tensor_shape=shape)

    kinds = (said["oom.scores_shape"], said["oom.vocab_shape"], said["oom.table_shape"])
    assert kinds == (scores, vocabulary, table)


@pytest.mark.parametrize(("rows", "expected"), [(64, True), (32, False)])
def test_a_tensor_with_a_row_for_each_row_of_the_batch_is_told(
    *, rows: int, expected: bool
) -> None:
    tensor = derived(oom__tensor_shape="64x512x28x28", train__micro_batch=rows)
    buffer = derived(
        xla__buffers="4096 | jit(step)/conv | f32[64,8,8,16]\n9 | argument | f32[32,2,2]",
        train__micro_batch=rows,
    )

    assert (expected, expected) == (tensor["oom.batch_shape"], buffer["oom.batch_shape"])


@pytest.mark.parametrize(
    ("shape", "layer"),
    [
        ("64x112x112x64", True),
        ("2x512x2048", True),
        ("3x3x2048x512", False),
        ("50000x512", False),
        ("8x16x16x8", False),
    ],
)
def test_a_tensor_of_rows_places_and_channels_is_a_layer_s(shape: str, layer: bool) -> None:
    assert derived(oom__tensor_shape=shape)["oom.layer_shape"] is layer


@pytest.mark.parametrize(
    "text",
    ["the model runs on torch_xla", "import jax\nimport torch", "XLA_PYTHON_CLIENT_PREALLOCATE"],
)
def test_a_library_with_a_pool_of_its_own_may_hold_the_rest_of_the_card(text: str) -> None:
    said = derived(oom__seen=True, oom__form="allocator", job__text=text)

    assert said["oom.second_pool"] is True


@pytest.mark.parametrize(
    "more",
    [
        {"job__text": "import torch"},
        {"job__text": "import jax", "oom__this_process": 4 * GIB},
        {"job__text": "import jax", "oom__library": "xla"},
    ],
    ids=["no-other-library", "this-process-is-stated", "the-other-library-fails"],
)
def test_a_second_pool_is_ruled_out_where_nothing_speaks_for_it(more: dict[str, Value]) -> None:
    said = derived(oom__seen=True, oom__form="allocator", **more)

    assert said["oom.second_pool"] is False
