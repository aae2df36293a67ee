"""The phases of a job on the tape: load, steps, evaluation, generation, merging."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.derive_lint_memory import at_least
from oomdoctor.memory import formula_optimizer, formula_serving
from oomdoctor.memory.formula_network import Network
from oomdoctor.memory.formula_params import COPY
from oomdoctor.memory.tape import (
    ADAPTER,
    CACHE,
    COMMUNICATION,
    INPUT,
    LOGITS,
    OPTIMIZER,
    TEMPORARY,
    WEIGHT,
    WORKSPACE,
    Block,
    Tape,
)

if TYPE_CHECKING:
    from oomdoctor.memory.formula_shape import Shape
    from oomdoctor.memory.tape import Param, Top
    from oomdoctor.model.job import EvalSpec, GenerationSpec, Job

CUBLAS = 8_519_680
PACKED = {"int8": 1.0, "fp8": 1.0, "gptq": 0.52, "awq": 0.53}
NF4, NF4_DOUBLE = 0.5 + 4 / 64, 0.5 + 1 / 64 + 4 / (64 * 256)
LIVE = 1_000_000_000
"""Values that ZeRO-3 may keep gathered (stage3_max_live_parameters)."""
PAIRED = ("dpo", "orpo", "reward")
TRAINERS = ("transformers", "trl", "axolotl", "llamafactory", "unsloth")


class Steps:
    """Runs the phases of one job, and keeps what lives between them."""

    def __init__(self, job: Job, shape: Shape) -> None:
        """Make the network; nothing is loaded yet."""
        self.tape = Tape()
        self.job = job
        self.shape = shape
        self.network = Network(self.tape, job, shape)
        self.weights = self.network.counted()
        self.held: list[Block] = []
        self.states: list[Block] = []
        self.logits: Block | None = None
        self.first: Top | None = None
        self.like_trainer = job.framework in TRAINERS
        self.ranks = max(1, job.sharding.ranks)
        self.tape.saves_inputs = job.sharding.kind == "zero3"
        self.tape.keeps_inputs = not at_least(job.versions.get("bitsandbytes", "1"), (0, 42))

    def split(self, *kinds: str) -> int:
        """Return over how many ranks something is split that these kinds split."""
        return self.ranks if self.job.sharding.kind in kinds else 1

    def load(self) -> None:
        """Bring the weights to the card."""
        tape, job = self.tape, self.job
        tape.begin("load")
        base = sum(self._stored(p) * times for p, times in self.weights if not _adapter(p))
        own = sum(p.count * p.stored * times for p, times in self.weights if _adapter(p))
        published = job.model.params
        counted = sum(p.count * times for p, times in self.weights if not _adapter(p))
        extra = 0.0
        whole = job.sharding.tensor == job.sharding.pipeline == 1
        if published is not None and job.labels is None and whole:
            if self.shape.tied and job.model.config.get("tie_word_embeddings") is False:
                published -= self.shape.vocab * self.shape.hidden  # transformers 5 ties it anyway
            extra = max(0, published - counted) * self.network.maker.rest
        ranks = self.split("zero3", "fsdp1", "fsdp2")
        if not job.sharding.offload_params:
            self.held.append(tape.block((base + extra) / ranks, WEIGHT))
            self.held.append(tape.block(own / ranks, ADAPTER))
        if job.reference == "separate":
            self.held.append(tape.block((base + extra) / ranks, WEIGHT))
        if job.ema and job.trains:
            trained = sum(p.count * p.width * times for p, times in self.weights if p.trains)
            self.held.append(tape.block(trained, OPTIMIZER))
        if job.trains and job.sharding.kind == "ddp":
            self.held.append(tape.block(self.network.grads(), COMMUNICATION))
        if self.network.buckets is not None:
            self.network.buckets.load()

    def _live(self) -> Block:
        """Return what ZeRO-3 keeps gathered from forward to backward: all, up to a limit."""
        if self.job.sharding.kind != "zero3":
            return self.tape.block(0, COMMUNICATION)
        once = self.job.checkpointing is None  # a frozen table is not there again for backward
        table = self.network.table
        count = sum(param.count * times for param, times in self.weights)
        count -= table.count if once and not table.trains else 0
        live = self.job.sharding.live_values
        layer = sum(p.count for p in self.network.groups[0].per_layer) if self.network.groups else 0
        largest = max(param.count for param, _ in self.weights)  # the last one passes the limit
        most = max(LIVE if live is None else live, layer) + largest
        return self.tape.block(min(count, most) * self.network.maker.width, COMMUNICATION)

    def _stored(self, param: Param) -> float:
        """Return the bytes of a weight on the card."""
        quant = self.job.quant
        if not param.quantised or quant is None:
            return param.count * param.stored
        if quant.kind in ("nf4", "fp4"):
            return param.count * (NF4_DOUBLE if quant.double else NF4)
        return param.count * PACKED.get(quant.kind, 1.0)

    def step(self, name: str) -> None:
        """Take one step: all micro-steps, then the optimizer.

        The second one of a trainer that forgets its outputs is the first with states beside it.
        """
        tape, job = self.tape, self.job
        if self.first is not None:
            tape.again(self.first, name, sum(block.size for block in self.states), OPTIMIZER)
            tape.phases[name] = max(tape.phases[name], tape.phases["step 1"])
            return
        tape.begin(name)
        if name == "step 1":
            self.held.append(tape.block(2 * CUBLAS, WORKSPACE))
        rows = self._rows()
        inputs = tape.block(3 * 8 * rows * job.seq_len * job.grad_accum, INPUT)
        if job.reference is not None:
            self._reference(rows)
        for left in reversed(range(min(2, job.grad_accum))):
            for exchange in self.network.exchanges:
                exchange.last = left == 0
            self._micro_step(rows)
        if self.like_trainer and tape.peak == tape.phases[name]:
            self.first = tape.top()
        tape.part = "optimizer"
        self._optimize()
        tape.part = "zero-grad"
        self.network.forget_grads()
        del inputs

    def _rows(self) -> int:
        rows = self.job.batch * (2 if self.job.task in PAIRED else 1)
        return max(1, rows)

    def _tokens(self) -> int:
        return -(-self.job.seq_len // self.job.sharding.context)

    def sizes(self, rows: int, tokens: int) -> tuple[int, int]:
        """Return rows and tokens; an image has as many tokens as patches, and one more."""
        shape = self.shape
        if shape.kind != "vision":
            return rows, tokens
        side = (self.job.image_size or shape.image) // max(1, shape.patch)
        return rows, side * side + 1

    def serve(self) -> None:
        """An engine with the cache of one request of full length, and the pass that it profiles."""
        tape, shape, job = self.tape, self.shape, self.job
        tape.begin("generation")
        each = formula_serving.token_bytes(shape)
        cache = tape.block(each * job.seq_len * job.batch, CACHE)
        passing = formula_serving.profile_bytes(
            shape, tokens=formula_serving.BATCHED_TOKENS, sequences=formula_serving.SEQUENCES
        )
        profile = tape.block(passing, TEMPORARY)
        del cache, profile

    def _reference(self, rows: int) -> None:
        """The reference's log-probabilities: forward alone."""
        with self.tape.quiet():
            loss, logits = self.network.loss(*self.sizes(rows, self._tokens()))
            del loss, logits

    def _micro_step(self, rows: int) -> None:
        tape, job = self.tape, self.job
        live = self._live()
        tape.part = "forward"
        tape.autocast = 2 if job.amp is not None and self.network.autocasts else None
        loss, logits = self.network.loss(*self.sizes(rows, self._tokens()))
        tape.autocast = None
        tape.leave_autocast()
        if not self.like_trainer:
            self.logits = logits
        del logits
        tape.part = "backward"
        if loss.node is not None:
            loss.node.grad = tape.block(4, TEMPORARY)
        del loss
        if self.network.buckets is not None:
            self.network.buckets.begin()
        tape.backward(tape.nodes)
        for exchange in self.network.exchanges:
            exchange.finish()
        del live
        if job.optimizer is not None and job.optimizer.in_backward:
            self.network.forget_grads()

    def _optimize(self) -> None:
        tape, job = self.tape, self.job
        ranks = self.split("zero1", "zero2", "zero3", "fsdp1", "fsdp2")
        zero = job.sharding.kind.startswith("zero")
        if job.sharding.offload_params and not zero:  # FSDP steps where its weights are
            return
        if not self.states:
            size = formula_optimizer.state_bytes(job, self.weights, master=zero)
            self.states.append(tape.block(size / ranks, OPTIMIZER))
        buckets = self.network.buckets
        needed = formula_optimizer.step_bytes(job, self.weights) / ranks
        passing = tape.block(needed, TEMPORARY) if buckets is None else buckets.step()
        del passing

    def evaluate(self, spec: EvalSpec) -> None:
        """Run forward and loss; outputs that are kept are joined batch by batch."""
        tape = self.tape
        tape.begin("evaluation")
        width = 4 if self.job.amp is not None else self.network.maker.rest
        words = self.network.outputs if self.job.labels is None else 0
        each = spec.batch * spec.seq_len * words * width
        kept: Block | None = None
        count = min(spec.batches, spec.accumulation or spec.batches)
        for number in range(1, count + 1):
            if number <= 2 or number == count:
                tape.autocast = 2 if self.job.amp is not None else None
                with tape.quiet():
                    loss, logits = self.network.loss(*self.sizes(spec.batch, spec.seq_len))
                tape.autocast = None
                tape.leave_autocast()
                del loss
                if spec.keeps_outputs:
                    joined = tape.block(each * number, LOGITS)
                    kept = joined
                    del joined
                del logits
        del kept

    def generate(self, spec: GenerationSpec) -> None:
        """Fill the cache from the prompt, then grow it token by token."""
        tape, shape = self.tape, self.shape
        tape.begin("generation")
        rows = spec.batch * spec.beams * spec.returns
        width = 2 if self.job.dtype != "fp32" else 4
        with tape.quiet():
            hidden = self.network.forward(rows, spec.prompt)
            scores = tape.block(rows * self.network.outputs * (width + 8), LOGITS)
            del hidden, scores
        each = 2 * rows * shape.keys * width
        if shape.key_rank:
            each = rows * shape.heads * (shape.head_dim + shape.value_dim) * width
        if spec.cache == "none":
            with tape.quiet():
                hidden = self.network.forward(rows, spec.prompt + spec.new_tokens)
                del hidden
            return
        length = spec.prompt + spec.new_tokens
        cache = tape.block(each * shape.layers * length, CACHE)
        grown = tape.block(each * length, CACHE)
        scores = tape.block(rows * self.network.outputs * (width + 8), LOGITS)
        del cache, grown, scores

    def prompt_peak(self, spec: GenerationSpec) -> None:
        """The prompt's own forward pass beside the cache that it fills."""
        tape, shape = self.tape, self.shape
        rows = spec.batch * spec.beams * spec.returns
        width = 2 if self.job.dtype != "fp32" else 4
        cache = tape.block(2 * rows * shape.keys * width * shape.layers * spec.prompt, CACHE)
        with tape.quiet():
            hidden = self.network.forward(rows, spec.prompt)
            del hidden
        del cache

    def merge(self) -> None:
        """Add an adapter's product to its weight: two fp32 copies of the largest linear."""
        self.tape.begin("merge")
        largest = max((p.count for p, _ in self.weights if not _adapter(p)), default=0)
        passing = self.tape.block(2 * largest * 4, TEMPORARY)
        del passing


def _adapter(param: Param) -> bool:
    return "lora_" in param.name or param.name.endswith(("magnitude", COPY))
