"""The tape: bytes live as long as somebody holds them, and backward frees what forward kept."""

from __future__ import annotations

from oomdoctor.memory.tape import GRADIENT, Block, Param, Tape
from oomdoctor.memory.tape_ops import add, cast, linear, pointwise, rms_norm

KIB = 1024


def weight(count: int, *, trains: bool = True, width: int = 2) -> Param:
    """Return a weight."""
    return Param("weight", count, width, trains=trains)


def test_a_block_counts_until_nobody_holds_it() -> None:
    tape = Tape()

    held = tape.block(700)
    other = held
    del held
    assert tape.live == 1024  # rounded up to 512
    del other
    assert tape.live == 0
    assert tape.peak == 1024


def test_a_linear_layer_keeps_its_input_only_where_its_weight_trains() -> None:
    for trains, kept in ((True, 64 * KIB), (False, 0)):
        tape = Tape()
        x = linear(tape, tape.value(128, 256, 2), weight(256 * 256), 256)
        y = linear(tape, x, weight(256 * 256, trains=trains), 256)
        before = tape.live
        x_size = int(x.size)
        del x
        assert before - tape.live == x_size - kept
        del y


def test_backward_frees_what_was_saved_and_leaves_the_gradients() -> None:
    tape, own = Tape(), weight(256 * 256)
    x = tape.value(128, 256, 2)
    y = pointwise(tape, linear(tape, x, own, 256))
    assert y.node is not None
    y.node.grad = tape.block(y.size)
    del x, y

    tape.backward(tape.nodes)

    assert own.grad is not None
    assert tape.live == own.grad.size == 256 * 256 * 2
    assert tape.parts[GRADIENT] == own.grad.size


def test_a_gradient_that_others_hold_is_not_added_in_place() -> None:
    tape = Tape()
    x = linear(tape, tape.value(4, 256, 2), weight(256), 256)
    assert x.node is not None
    first = tape.block(2048)
    x.node.take(first)
    x.node.take(tape.block(2048))
    assert isinstance(x.node.grad, Block)
    assert x.node.grad is not first


def test_a_norm_keeps_its_input_in_fp32() -> None:
    tape = Tape()
    x = linear(tape, tape.value(128, 256, 2), weight(256 * 256), 256)
    before = tape.live
    y = rms_norm(tape, x, weight(256, trains=False))
    assert tape.live - before == 128 * 256 * (4 + 2) + 128 * 4
    del y


def test_nothing_is_kept_where_nothing_is_recorded() -> None:
    tape = Tape()
    with tape.quiet():
        x = tape.value(128, 256, 2)
        y = add(tape, x, cast(tape, linear(tape, x, weight(256 * 256), 256), 4))
        assert y.node is None
    assert tape.nodes == []


def test_a_weight_that_trains_is_cast_once_under_autocast() -> None:
    tape = Tape()
    tape.autocast = 2
    own = weight(256 * 256, width=4)
    x = tape.value(128, 256, 2)
    linear(tape, x, own, 256)
    once = len(tape.casts)
    linear(tape, x, own, 256)
    assert once == len(tape.casts) == 1
    tape.leave_autocast()
    assert not tape.casts


def test_a_split_gradient_is_a_share_of_the_whole() -> None:
    tape, own = Tape(), weight(4096)
    own.share = 4
    own.take(tape.block(8192))
    assert own.grad is not None
    assert own.grad.size == 2048
