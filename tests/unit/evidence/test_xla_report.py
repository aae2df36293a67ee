from __future__ import annotations

from oomdoctor.evidence import xla_report
from tests.unit.evidence.tables_documents import GIB, MIB, read_raw, read_text, values


def test_the_parts_of_a_program_are_read() -> None:
    said = values(read_raw(xla_report, "jax", "buffer_assignment.txt"))

    assert said["xla.parameters"] == round(2.3 * GIB)
    assert said["xla.constants"] == 64
    assert said["xla.outputs"] == round(2.2 * GIB)
    assert said["xla.temp"] == round(12.5 * GIB)
    assert said["xla.total"] == 17 * GIB
    assert said["xla.fragmentation"] == round(104.5 * MIB)
    assert said["xla.fragmentation_share"] == 0.006


def test_the_largest_buffers_are_told_by_operator_and_shape() -> None:
    said = values(read_raw(xla_report, "jax", "buffer_assignment.txt"))

    assert said["xla.largest_buffer"] == 4 * GIB
    lines = str(said["xla.buffers"]).split("\n")
    assert len(lines) == 4
    assert lines[0].endswith("dot_general[precision=None] | f32[8,8,4096,4096]")
    assert lines[3].endswith("| argument | f32[50304,768]")


def test_scores_logits_and_arguments_are_told_apart() -> None:
    said = values(read_raw(xla_report, "jax", "buffer_assignment.txt"))

    keys = ("xla.scores_share", "xla.vocab_share", "xla.entry_share")
    assert [round(float(said[key]), 2) for key in keys] == [0.83, 0.16, 0.01]


def test_square_images_of_a_convolution_are_no_scores() -> None:
    text = (
        'Peak buffers:\n\tSize: 1.00GiB\n\tOperator: op_name="jit(f)/conv_general_dilated"\n'
        "\tShape: f32[8,64,512,512]\n"
    )

    assert values(read_text(xla_report, text))["xla.scores_share"] == 0


def test_a_vector_per_pair_of_tokens_is_told() -> None:
    text = (
        'Peak buffers:\n\tSize: 3.00GiB\n\tOperator: op_name="jit(f)/pair/add"\n'
        "\tShape: f32[2500,2500,128]\n\n\tSize: 1.00GiB\n\tXLA Label: parameter\n"
        "\tShape: f32[1000,64]\n"
    )

    said = values(read_text(xla_report, text))

    assert said["xla.pair_share"] == 0.75
    assert said["xla.entry_share"] == 0.25


def test_a_refused_program_states_what_the_tpu_holds() -> None:
    text = "HBM capacity 8.00G:\n  Currently allocated:    6.00G (   6,442,450,944 bytes)\n"

    said = values(read_text(xla_report, text))

    assert said == {"gpu.total": 8 * GIB, "gpu.used": 6 * GIB}


def test_a_tpu_s_list_of_allocations_is_read() -> None:
    said = values(read_raw(xla_report, "jax", "tpu_compile.txt"))

    assert said["xla.largest_buffer"] == 3 * GIB
    assert said["xla.vocab_share"] == 1


def test_what_rematerialization_could_not_save_is_the_largest_need() -> None:
    text = (
        "Can't reduce memory use below 14.90GiB (16000000000 bytes) by rematerialization; only "
        "reduced to 15.83GiB (17000000000 bytes), down from 16.76GiB (18000000000 bytes)\n"
        "Can't reduce memory use below 14.90GiB (16000000000 bytes) by rematerialization; only "
        "reduced to 37.25GiB (40000000000 bytes), down from 46.57GiB (50000000000 bytes)\n"
    )

    said = values(read_text(xla_report, text))

    assert said == {"xla.needed": 40_000_000_000, "xla.limit": 16_000_000_000}


def test_other_sizes_are_no_buffers() -> None:
    assert values(read_text(xla_report, "memory allocation: 3 GB\nSize: 12\n")) == {}
