"""When an event of a virtual card is done: when somebody can know it, or at once."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Load = Callable[..., ctypes.CDLL]

MAIN, SIDE = ctypes.c_void_p(0x10040), ctypes.c_void_p(0x10080)
EVENT, LATER = ctypes.c_void_p(0x20000), ctypes.c_void_p(0x20040)
DEPTH, MOST_QUERIES = 1024, 1000


def launch(card: ctypes.CDLL, stream: ctypes.c_void_p, times: int = 1) -> None:
    for _ in range(times):
        card.vc_launch(stream)


def test_an_event_is_done_when_somebody_waits_for_it(core: Load) -> None:
    card = core()
    launch(card, MAIN)
    card.vc_record(EVENT, MAIN)

    before = card.vc_is_event_done(EVENT)
    card.vc_finish_event(EVENT)

    assert (before, card.vc_is_event_done(EVENT)) == (0, 1)


def test_an_event_without_work_before_it_is_done(core: Load) -> None:
    card = core()

    card.vc_record(EVENT, MAIN)

    assert card.vc_is_event_done(EVENT) == 1
    assert card.vc_is_event_done(LATER) == 1, "one that was never recorded"


def test_a_later_event_of_the_stream_ends_those_before_it(core: Load) -> None:
    card = core()
    launch(card, MAIN)
    card.vc_record(EVENT, MAIN)
    launch(card, MAIN)
    card.vc_record(LATER, MAIN)

    card.vc_finish_event(EVENT)
    between = card.vc_is_event_done(LATER)
    card.vc_finish_event(LATER)

    assert (between, card.vc_is_event_done(LATER)) == (0, 1)


def test_waiting_for_one_stream_says_nothing_of_another(core: Load) -> None:
    card = core()
    launch(card, SIDE)
    card.vc_record(EVENT, SIDE)
    launch(card, MAIN)

    card.vc_finish_stream(MAIN)
    alone = card.vc_is_event_done(EVENT)
    card.vc_finish_card()

    assert (alone, card.vc_is_event_done(EVENT)) == (0, 1)


def test_a_stream_that_waited_for_another_ends_it_too(core: Load) -> None:
    card = core()
    launch(card, SIDE)
    card.vc_record(EVENT, SIDE)
    card.vc_wait(MAIN, EVENT)

    card.vc_finish_stream(MAIN)

    assert card.vc_is_event_done(EVENT) == 1


def test_the_host_runs_no_further_ahead_than_cuda_lets_it(core: Load) -> None:
    card = core()
    launch(card, MAIN)
    card.vc_record(EVENT, MAIN)

    launch(card, MAIN, DEPTH - 1)
    before = card.vc_is_event_done(EVENT)
    launch(card, MAIN)

    assert (before, card.vc_is_event_done(EVENT)) == (0, 1)


def test_a_loop_that_asks_again_and_again_ends(core: Load) -> None:
    card = core()
    launch(card, MAIN)
    card.vc_record(EVENT, MAIN)

    answers = [card.vc_is_event_done(EVENT) for _ in range(MOST_QUERIES)]
    launch(card, SIDE)
    streams = [card.vc_is_stream_done(SIDE) for _ in range(MOST_QUERIES)]

    assert answers == streams == [0] * (MOST_QUERIES - 1) + [1]


def test_a_thread_that_only_looks_on_finds_work_done_and_changes_nothing(core: Load) -> None:
    card = core()
    launch(card, MAIN)
    card.vc_record(EVENT, MAIN)
    seen: list[int] = []

    watcher = threading.Thread(target=lambda: seen.append(card.vc_is_event_done(EVENT)))
    watcher.start()
    watcher.join()

    assert (seen, card.vc_is_event_done(EVENT)) == ([1], 0)


def test_events_can_be_done_at_once(core: Load) -> None:
    card = core(EVENTS="ready")
    launch(card, MAIN)

    card.vc_record(EVENT, MAIN)

    assert card.vc_is_event_done(EVENT) == 1
    assert card.vc_is_stream_done(MAIN) == 1


def test_an_event_is_used_again_and_forgotten(core: Load) -> None:
    card = core()
    card.vc_record(EVENT, MAIN)
    launch(card, MAIN)
    card.vc_record(EVENT, MAIN)
    again = card.vc_is_event_done(EVENT)

    card.vc_forget_event(EVENT)

    assert (again, card.vc_is_event_done(EVENT)) == (0, 1)


def test_more_streams_than_are_followed_are_done_at_once(core: Load) -> None:
    card = core()
    for number in range(70):
        stream = ctypes.c_void_p(0x100000 + 64 * number)
        launch(card, stream)
        card.vc_record(EVENT, stream)

    assert card.vc_is_event_done(EVENT) == 1
