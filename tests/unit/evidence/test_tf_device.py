from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence import tf_device
from tests.unit.evidence.tables_documents import GIB, MIB, read_raw, read_text, values

if TYPE_CHECKING:
    from oomdoctor.model.core import Value


def test_what_was_free_at_the_start_and_refused_then_is_read() -> None:
    said = values(read_raw(tf_device, "tensorflow", "started_beside_others.txt"))

    assert said["gpu.total"] == round(7.93 * GIB)
    assert said["gpu.free"] == round(301.06 * MIB)
    assert said["gpu.name"] == "GeForce GTX 1080"
    assert said["tf.device_memory"] == 61 * MIB
    assert said["tf.reserve_first"] == 64028672
    assert said["tf.reserve_last"] == 51863223
    assert said["tf.reserve_tries"] == 3
    assert said["tf.reserve_backoff"] is True


def test_a_device_s_block_of_two_lines_tells_what_others_held_before_anything_was_allocated() -> (
    None
):
    said = values(read_raw(tf_device, "tensorflow", "block_of_2017.txt"))

    assert said["gpu.total"] == round(7.92 * GIB)
    assert said["gpu.free"] == round(1.31 * GIB)
    assert said["gpu.foreign"] == round(7.92 * GIB) - round(1.31 * GIB) - GIB // 2


def test_an_empty_card_holds_nothing_of_others() -> None:
    said = values(read_text(tf_device, "totalMemory: 10.92GiB freeMemory: 10.73GiB"))

    assert said["gpu.foreign"] == 0


@pytest.mark.parametrize(
    "text",
    [
        "Free memory: 12.10GiB",
        "Total memory: 15.90GiB\nstep\nstep\nstep\nFree memory: 3.10GiB",
    ],
)
def test_free_memory_that_stands_in_no_device_s_block_is_not_the_device_s(text: str) -> None:
    said = values(read_text(tf_device, text))

    assert not {"gpu.free", "gpu.foreign"} & set(said)


def test_the_device_of_tensorflow_two_is_read() -> None:
    line = (
        "Created device /job:localhost/replica:0/task:0/device:GPU:0 with 9614 MB memory:  -> "
        "device: 0, name: NVIDIA GeForce RTX 3080 Ti, pci bus id: 0000:01:00.0, capability: 8.6"
    )

    said = values(read_text(tf_device, line))

    assert said == {"tf.device_memory": 9614 * MIB, "gpu.name": "NVIDIA GeForce RTX 3080 Ti"}


def test_sizes_that_shrink_otherwise_are_no_back_off() -> None:
    line = "failed to allocate 1.0G ({} bytes) from device: CUDA_ERROR_OUT_OF_MEMORY\n"

    said = values(read_text(tf_device, line.format(1000) + line.format(500)))

    assert said["tf.reserve_backoff"] is False


def test_the_driver_s_own_count_of_free_memory_is_read() -> None:
    line = " Reported by CUDA: Free memory/Total memory: 1073741824/4294967296"

    said = values(read_text(tf_device, line))

    assert said == {"gpu.free": GIB, "gpu.total": 4 * GIB, "gpu.used_share": 0.75}


@pytest.mark.parametrize(
    ("line", "node"),
    [
        (
            "Non-zero status code returned while running MatMul node. Name:'/attn/MatMul_1' Status",
            "/attn/MatMul_1:MatMul",
        ),
        ("status code returned while running Softmax node. Name:'' Status", "Softmax"),
    ],
)
def test_the_failing_node_of_onnx_runtime_is_read(line: str, node: str) -> None:
    assert values(read_text(tf_device, line))["tf.node"] == node


@pytest.mark.parametrize(
    ("directory", "file", "library"),
    [("tensorflow", "cudnn_handle.txt", "tensorflow"), ("jax", "cudnn_handle.txt", "xla")],
)
def test_a_handle_that_fails_is_told_with_its_library(
    directory: str, file: str, library: str
) -> None:
    said = values(read_raw(tf_device, directory, file))

    assert said["fault.handle_failed"] is True
    assert said["fault.handle_in"] == library


def test_the_error_tells_how_full_the_card_is() -> None:
    said = values(read_raw(tf_device, "jax", "cudnn_handle.txt"))

    assert said["gpu.free"] == 50 * MIB
    assert said["gpu.total"] == 12623609856
    assert said["gpu.used_share"] == 0.9958


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "[[{{node gradient_tape/net/conv/Conv2D/Conv2DBackpropFilter}}]]",
            {
                "tf.node": "gradient_tape/net/conv/Conv2D/Conv2DBackpropFilter",
                "run.operator": "Conv2DBackpropFilter",
                "run.phase": "backward",
            },
        ),
        (
            "[[node training/Adam/mul_7 (defined at a.py:3) ]]",
            {
                "tf.node": "training/Adam/mul_7",
                "run.operator": "mul_7",
                "run.phase": "optimizer",
            },
        ),
        (
            "[[Node: tower/pool = AvgPool[T=DT_FLOAT]]]",
            {"tf.node": "tower/pool", "run.operator": "pool"},
        ),
        (
            "Detected at node 'model/conv5/Conv2D' defined at (most recent call last):",
            {"tf.node": "model/conv5/Conv2D", "run.operator": "Conv2D"},
        ),
        (
            "[[Node: embedding/Adam/Initializer/zeros = Const[dtype=DT_FLOAT]()]]",
            {
                "tf.node": "embedding/Adam/Initializer/zeros",
                "run.operator": "zeros",
                "run.phase": "prepare",
            },
        ),
        ("OOM [Op:Conv2D]", {"tf.node": "Conv2D", "run.operator": "Conv2D"}),
    ],
)
def test_a_node_tells_operator_and_phase(line: str, expected: dict[str, Value]) -> None:
    assert values(read_text(tf_device, line)) == expected


def test_a_clash_of_versions_is_told() -> None:
    line = "Loaded runtime CuDNN library: 7.1.4 but source was compiled with: 7.6.0."

    assert values(read_text(tf_device, line)) == {"tf.cudnn_version_clash": True}


def test_a_library_that_fails_on_an_empty_card_is_told_from_one_on_a_full_card() -> None:
    failed = "E cuda_dnn.cc:535] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR\n"
    empty = failed + "Memory usage: 15000000000 bytes free, 17000000000 bytes total."
    full = failed + "Memory usage: 39714816 bytes free, 17000000000 bytes total."

    assert values(read_text(tf_device, empty))["fault.handle_room"] is True
    assert "fault.handle_room" not in values(read_text(tf_device, full))
