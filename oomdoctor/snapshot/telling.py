"""The facts that one card of a snapshot shows, each with the event that it is read at."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from oomdoctor.model.core import Fact, Failure, Quote
from oomdoctor.model.enums import Origin
from oomdoctor.record import replace
from oomdoctor.snapshot.categories import BACKWARD, EARLIER, FORWARD, OPTIMIZER, WEIGHTS
from oomdoctor.snapshot.leaks import grow_together
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from oomdoctor.model.core import Value
    from oomdoctor.snapshot.balance import Balance
    from oomdoctor.snapshot.fragmentation import Fragmentation
    from oomdoctor.snapshot.report import DeviceReport, SnapshotReport
    from oomdoctor.snapshot.stacks import Frame

LATE_STEPS = 20
LOSSES = (
    *("cross_entropy", "fixed_cross_entropy", "ForCausalLMLoss", "log_softmax", "nll_loss"),
    *("kl_div", "linear_cross_entropy", "chunked_cross_entropy"),
)
SHARES = (
    ("snapshot.activation_share", FORWARD),
    ("snapshot.gradient_share", BACKWARD),
    ("snapshot.optimizer_share", OPTIMIZER),
    ("snapshot.weights_share", WEIGHTS),
    ("snapshot.earlier_share", EARLIER),
)


class Telling:
    """Writes the facts of one card."""

    def __init__(self, report: SnapshotReport, device: DeviceReport, path: str) -> None:
        """Tell what the device shows when a request failed, else at the peak."""
        self.report = report
        self.device = device
        self.path = path
        self.balance: Balance = device.failure or device.peak
        when = "when a request failed" if device.failure else "at the peak"
        self.when = f"{when} on GPU {device.number}"

    def _quote(self, words: str, event: int | None = None) -> Quote:
        moment = self.balance.moment if event is None else event
        return Quote(artifact=self.path, line=moment + 1, text=words)

    def _fact(self, key: str, value: Value, words: str) -> Fact:
        quote = self._quote(f"{self.when}: {words}")
        return Fact(
            key=key,
            value=value,
            origin=Origin.PROBED,
            quotes=(quote,),
            source="replay of the memory snapshot",
        )

    def memory(self) -> Iterator[Fact]:
        """Yield what was held, what was free, and why that did not help."""
        device, balance = self.device, self.balance
        held = format_size(balance.held_bytes)
        yield self._fact("snapshot.held", balance.held_bytes, f"{held} in {balance.blocks} blocks")
        peaks = {"allocated": device.peak.held_bytes}
        if device.replay is not None:
            peaks["reserved"] = device.replay.peak_reserved
        for name, count in peaks.items():
            words = f"peak on GPU {device.number}: {format_size(count)} {name}"
            yield self._at(f"torch.peak_{name}", count, words, device.peak.moment)
        waiting = balance.waiting.held_bytes
        yield self._size("torch.awaiting_free", waiting, "freed, but waiting for another stream")
        private = sum(share.held_bytes for _, share in balance.pools)
        yield self._size("torch.private_pools", private, "held in private pools")
        if device.fragmentation is not None and device.failure is not None:
            yield from self._free(device.fragmentation)

    def _free(self, found: Fragmentation) -> Iterator[Fact]:
        hole, split = found.largest_hole_bytes, found.split_bytes
        yield self._size("torch.allocated", found.allocated_bytes, "allocated")
        yield self._size("torch.reserved", found.reserved_bytes, "reserved")
        yield self._size("torch.non_releasable", split, "free in segments that are in use")
        yield self._size("snapshot.inactive_split", split, "free in segments that are in use")
        yield self._size("snapshot.largest_hole", hole, "in the largest free piece")
        words = (
            f"{format_size(found.request_bytes or 0)} asked for, {format_size(found.free_bytes)}"
            f" free, {format_size(hole)} of it in one piece"
        )
        yield self._fact("snapshot.fragmented", found.proven, words)

    def _size(self, key: str, count: int, words: str) -> Fact:
        return self._fact(key, count, f"{format_size(count)} {words}")

    def shares(self) -> Iterator[Fact]:
        """Yield which part of what was held is whose."""
        whole = self.balance.held_bytes
        sizes = {name: share.held_bytes for name, share in self.balance.categories}
        for key, name in SHARES if whole else ():
            size = sizes.get(name, 0)
            words = f"{format_size(size)} of {format_size(whole)}: {name}"
            yield self._fact(key, size / whole, words)
            if key == "snapshot.activation_share" and size >= whole / 2:
                yield self._fact("states.rest_share", size / whole, words)

    def frames(self) -> Iterator[Fact]:
        """Yield what some calls hold, whatever the category of their blocks."""
        whole = self.balance.held_bytes
        if not whole:
            return
        loaded, lost = (self._below(one) for one in (_loads, _is_of_a_loss))
        yield self._size("snapshot.loaded", loaded, "asked for by reading a checkpoint")
        words = f"{format_size(lost)} of {format_size(whole)}: functions of a loss"
        yield self._fact("snapshot.loss_share", lost / whole, words)

    def _below(self, is_one: Callable[[Frame], bool]) -> int:
        stacks = self.report.stacks
        return sum(
            share.held_bytes
            for number, share in self.balance.stacks
            if any(map(is_one, stacks[number].frames))
        )

    def leaks(self) -> Iterator[Fact]:
        """Yield which lines keep more in every step, and how far the run came."""
        steps, suspects = self.device.steps, self.device.suspects
        if steps is None:
            return
        count, last = len(steps.ends), steps.ends[-1]
        said = f"{count} steps, told by {steps.shown_by}"
        yield self._at("run.first_step", count < 2, said, last)
        is_late = count > LATE_STEPS
        if is_late:
            yield self._at("run.late_step", is_late, said, last)
        if not suspects:
            yield self._at("snapshot.leak_share", 0.0, f"no line keeps more; {said}", last)
            return
        first = suspects[0]
        share = min(1.0, sum(one.peak_share for one in suspects))
        slope = round(sum(one.slope_bytes for one in suspects))
        words = f"{first.site.words} keeps {format_size(round(first.slope_bytes))} more in a step"
        yield self._at("snapshot.leak_share", share, words, last)
        yield self._at("snapshot.leak_per_step", slope, words, last)
        yield self._at("snapshot.leak_blocks", first.blocks[-1], words, last)
        yield self._at("snapshot.leak_graph", grow_together(suspects), words, last)
        yield from self._series(last, words)
        if first.site.frame is not None:
            yield self._at("snapshot.leak_frame", _place(first.site.frame), words, last)
            stack = "\n".join(map(_place, reversed(first.stack.frames)))
            yield self._at("snapshot.leak_stack", stack, words, last)

    def _series(self, last: int, words: str) -> Iterator[Fact]:
        """Yield the growth of all suspected lines together."""
        suspects = self.device.suspects
        sums = [sum(values) for values in zip(*(one.live_bytes for one in suspects), strict=True)]
        rises = all(after >= before for before, after in pairwise(sums))
        for key, value in (
            ("growth.quantity", "allocated"),
            ("growth.points", len(sums)),
            ("growth.monotone", rises),
            ("growth.first", sums[0]),
            ("growth.last", sums[-1]),
            ("growth.span", len(sums) - 1),
            ("growth.per_step", round((sums[-1] - sums[0]) / max(1, len(sums) - 1))),
        ):
            yield self._at(key, value, words, last)

    def _at(self, key: str, value: Value, words: str, event: int) -> Fact:
        return replace(self._fact(key, value, words), quotes=(self._quote(words, event),))

    def settings(self) -> Iterator[Fact]:
        """Yield the settings of the allocator."""
        text = self.report.settings
        expandable = "expandable_segments:True" in text
        words = f"allocator settings: {text or 'none'}"
        if text:
            yield self._fact("alloc.conf", text, words)
        yield self._fact("alloc.expandable_segments", expandable, words)

    def failure(self) -> Failure | None:
        """Return the request that failed as the failure that PyTorch would have printed."""
        from oomdoctor.evidence.source import source_of_text
        from oomdoctor.reading import read_one

        device = self.device
        if device.failure is None or device.failed_bytes is None:
            return None
        quote = self._quote(
            f"a request for {format_size(device.failed_bytes)} failed on GPU {device.number}"
        )
        reading = read_one(source_of_text(self._as_printed(), name=self.path)).reading
        exact = {"oom.requested": device.failed_bytes}

        def told(fact: Fact) -> Fact:
            value = exact.get(fact.key, fact.value)
            return replace(fact, value=value, slack=0, quotes=(quote,), origin=Origin.PROBED)

        for one in reading.failures[:1]:
            return replace(
                one, order=quote.line, line_quote=quote, facts=tuple(map(told, one.facts))
            )
        return None

    def _as_printed(self) -> str:
        frames = self.device.failed_stack.frames if self.device.failed_stack else ()
        lines = ["Traceback (most recent call last):"] if frames else []
        lines += [f'  File "{one.file}", line {one.line}, in {one.name}' for one in frames[::-1]]
        size = format_size(self.device.failed_bytes or 0)
        text = f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {size}."
        return "\n".join([*lines, text, ""])


def _loads(frame: Frame) -> bool:
    file = frame.file.replace("\\", "/")
    return file.endswith("torch/serialization.py") or "/safetensors/" in file


def _is_of_a_loss(frame: Frame) -> bool:
    return frame.name in LOSSES


def _place(frame: Frame) -> str:
    return f"{frame.file}:{frame.line} {frame.name}"
