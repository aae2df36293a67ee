"""A bar shows while reading takes long, and nothing of it stays."""

from __future__ import annotations

import io

from oomdoctor.cli.progress import Bar

GIB = 1024**3


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        """Start at a time of day."""
        self.now = 500.0

    def __call__(self) -> float:
        return self.now


def test_nothing_is_written_where_reading_is_quick() -> None:
    stream, clock = io.StringIO(), Clock()
    bar = Bar(stream, clock=clock)
    bar(10, GIB)
    clock.now += 0.9
    bar(GIB, GIB)
    bar.close()

    assert stream.getvalue() == ""


def test_after_a_second_a_bar_shows_and_goes_again() -> None:
    stream, clock = io.StringIO(), Clock()
    bar = Bar(stream, clock=clock)
    clock.now += 1.1
    bar(GIB // 2, GIB)
    bar(GIB // 2 + 1, GIB)
    shown = stream.getvalue()
    bar.close()

    assert shown.count("reading") == 1
    assert shown.endswith(f"[{'#' * 15}{'-' * 15}]  50% of 1.00 GiB")
    assert stream.getvalue() == shown + "\r\x1b[2K"


def test_without_a_total_the_bytes_are_counted() -> None:
    stream, clock = io.StringIO(), Clock()
    bar = Bar(stream, clock=clock)
    clock.now += 2
    bar(GIB, None)

    assert stream.getvalue().endswith("reading 1.00 GiB")


def test_a_terminal_that_is_gone_does_not_end_the_reading() -> None:
    stream, clock = io.StringIO(), Clock()
    bar = Bar(stream, clock=clock)
    stream.close()
    clock.now += 2
    bar(1, 2)
    bar.close()

    assert stream.closed
