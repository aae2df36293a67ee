"""Streams made by hand: a small language that reads like the run it stands for."""

from __future__ import annotations

from oomdoctor.memory.stream import Allocation, Mark, Stream

MIB = 1 << 20


class Script:
    """Writes a stream event by event."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.allocations: list[Allocation] = []
        self.events: list[int] = []
        self.marks: list[Mark] = []
        self._phase = self._part = ""

    def phase(self, name: str) -> None:
        self._phase, self._part = name, ""
        self.marks.append(Mark(len(self.events), "phase", name))

    def part(self, name: str) -> None:
        self._part = name
        self.marks.append(Mark(len(self.events), "part", name))

    def mark(self, kind: str, text: str = "", number: int = 0) -> None:
        self.marks.append(Mark(len(self.events), kind, text, number))

    def make(
        self,
        size: int,
        operator: str = "aten.empty",
        module: str = "",
        category: str = "",
        cuda_stream: int = 0,
    ) -> int:
        number = len(self.allocations)
        self.allocations.append(
            Allocation(size, operator, module, self._phase, self._part, category, cuda_stream)
        )
        self.events.append(number)
        return number

    def free(self, *numbers: int) -> None:
        self.events += [~number for number in numbers]

    def stream(self) -> Stream:
        return Stream(
            allocations=tuple(self.allocations),
            events=tuple(self.events),
            marks=tuple(self.marks),
            origin="made by hand",
            assumptions=("nothing is assumed",),
            facts={"torch": "2.13.0"},
        )


def training(*, layers: int = 2, scale: int = MIB) -> Stream:
    """Return a stream of two steps of a model with a head: two layers, a loss, AdamW."""
    run = Script()
    run.phase("load")
    weights = [
        run.make(4 * scale, module=f"model.layers.{at}.mlp", category="weights")
        for at in range(layers)
    ]
    for number in (1, 2):
        run.phase(f"step {number}")
        run.part("forward")
        batch = run.make(4096, "aten.to", category="input")
        saved = []
        for at in range(layers):
            module = f"model.layers.{at}.mlp"
            saved.append(run.make(6 * scale, "aten.mm.default", module))
            brief = run.make(3 * scale, "aten.mul.Tensor", module)
            run.free(brief)
        logits = run.make(8 * scale, "aten.mm.default", "lm_head")
        copy = run.make(16 * scale, "aten._to_copy.default", "")
        loss = run.make(512, "aten.nll_loss_forward.default", "")
        run.part("backward")
        slope = run.make(16 * scale, "aten._log_softmax_backward_data.default", "")
        run.free(copy, logits)
        gradients = []
        for at in reversed(range(layers)):
            module = f"model.layers.{at}.mlp"
            brief = run.make(6 * scale, "aten.mm.default", module)
            if at == layers - 1:
                run.free(slope)
            gradients.append(run.make(4 * scale, "aten.mm.default", module))
            run.free(saved[at], brief)
        run.free(loss, batch)
        run.part("optimizer")
        if number == 1:
            for _ in weights:
                run.make(4 * scale, "aten.zeros_like.default", "")
                run.make(4 * scale, "aten.zeros_like.default", "")
        brief = run.make(4 * scale, "aten._foreach_sqrt.default", "")
        run.free(brief)
        run.part("zero-grad")
        run.free(*gradients)
    return run.stream()
