"""Who has what at the peak of a stream, and its time line."""

from __future__ import annotations

from oomdoctor.memory.stream_balance import balance, folded
from oomdoctor.memory.stream_category import categorised
from oomdoctor.memory.stream_line import time_line
from oomdoctor.memory.stream_replay import replay
from tests.unit.memory.streams import MIB, Script, training


def test_categories_follow_from_what_an_allocation_outlives() -> None:
    stream = training()
    kinds = categorised(stream)
    named = {
        (one.part, one.operator, one.module): kind
        for one, kind in zip(stream.allocations, kinds, strict=True)
        if one.phase == "step 1"
    }
    layer = "model.layers.0.mlp"
    assert named["forward", "aten.mm.default", layer] == "activation"
    assert named["forward", "aten.mul.Tensor", layer] == "temporary"
    assert named["forward", "aten.mm.default", "lm_head"] == "logits and loss"
    assert named["forward", "aten._to_copy.default", ""] == "logits and loss"
    assert named["backward", "aten._log_softmax_backward_data.default", ""] == "logits and loss"
    assert named["backward", "aten.mm.default", layer] == "gradient"
    assert named["optimizer", "aten.zeros_like.default", ""] == "optimizer"
    assert named["optimizer", "aten._foreach_sqrt.default", ""] == "temporary"


def test_what_the_tracer_said_stands() -> None:
    run = Script()
    run.phase("step 1")
    run.part("forward")
    run.make(10, category="workspace")
    assert categorised(run.stream()) == ("workspace",)


def test_what_load_leaves_is_weights() -> None:
    run = Script()
    run.phase("load")
    run.make(10)
    run.free(run.make(20))
    run.phase("step 1")
    assert categorised(run.stream()) == ("weights", "temporary")


def test_parts_add_up_to_the_peak() -> None:
    stream = training()
    played = replay(stream)
    sheet = balance(stream, played)
    assert played.peak_allocated == sum(one.bytes for one in sheet.categories)
    assert played.peak_allocated == sum(one.bytes for one in sheet.parts)
    assert played.peak_allocated == sheet.total
    assert len(sheet.parts) == 6


def test_the_second_step_has_the_states_at_its_peak() -> None:
    stream = training()
    sheet = balance(stream, replay(stream))
    held = {one.name: one.bytes for one in sheet.categories}
    assert held["weights"] == 8 * MIB
    assert held["optimizer"] == 16 * MIB
    assert held["activation"] == 12 * MIB
    assert held["logits and loss"] == (8 + 16 + 16) * MIB + 512


def test_owners_are_folded_over_layers_largest_first() -> None:
    stream = training(layers=3)
    owners = balance(stream, replay(stream)).owners
    by_module = {(one.module, one.category): one for one in owners}
    layer = by_module["model.layers.*.mlp", "activation"]
    assert (layer.allocations, layer.bytes) == (3, 18 * MIB)
    assert sorted((one.bytes for one in owners), reverse=True) == [one.bytes for one in owners]


def test_as_many_owners_are_named_as_asked_for() -> None:
    stream = training()
    assert len(balance(stream, replay(stream), owners=2).owners) == 2


def test_only_whole_numbers_of_a_path_are_folded() -> None:
    assert folded("h.11.attn2.fc") == "h.*.attn2.fc"
    assert folded("blocks.3") == "blocks.*"


def test_the_balance_of_another_moment_can_be_asked_for() -> None:
    stream = training()
    assert balance(stream, replay(stream), event=1).total == 8 * MIB


def test_a_time_line_keeps_every_peak() -> None:
    stream = training(layers=40)
    played = replay(stream)
    line = time_line(stream, played, points=20)
    assert played.peak_allocated == max(one.allocated_bytes for one in line)
    assert played.peak_reserved == max(one.reserved_bytes or 0 for one in line)
    assert len(line) < 40


def test_a_time_line_has_every_part_in_order() -> None:
    stream = training()
    line = time_line(stream, replay(stream), points=4)
    named = list(dict.fromkeys((one.phase, one.part) for one in line))
    parts = ["forward", "backward", "optimizer", "zero-grad"]
    steps = [(f"step {number}", part) for number in (1, 2) for part in parts]
    assert [("load", ""), *steps] == named


def test_a_time_line_of_a_run_that_failed_ends_there() -> None:
    stream = training()
    played = replay(stream, capacity_bytes=64 * MIB)
    assert played.failed is not None
    assert max(one.at for one in time_line(stream, played)) < played.failed.event


def test_a_loss_that_is_a_part_of_its_own_goes_on_in_backward() -> None:
    run = Script()
    run.phase("step 1")
    run.part("forward")
    run.make(10, "aten.mm.default", "model.layers.0.mlp")
    run.make(20, "aten.mm.default", "model.lm_head")
    run.part("loss")
    run.make(30, "aten._log_softmax.out", "model")
    run.part("backward")
    run.free(run.make(4, "aten.ones_like.default", ""))
    run.free(run.make(30, "aten._log_softmax_backward_data.out", "model"))
    run.free(run.make(10, "aten.mm.default", "model.layers.0.mlp"))
    kinds = categorised(run.stream())
    assert kinds[1:5] == ("logits and loss",) * 4
    assert kinds[5] == "temporary"
