"""A worker's double: makes the stream of a small transformer out of a job, without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oomdoctor.model.job import CardSpec, Job, ModelSpec
from tests.unit.memory.streams import Script

if TYPE_CHECKING:
    from oomdoctor.lab.protocol import TraceRequest
    from oomdoctor.lab.session import WorkerError
    from oomdoctor.memory.stream import Stream

GIB = 1 << 30
CONFIG: dict[str, object] = {
    "model_type": "llama",
    "num_hidden_layers": 24,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "vocab_size": 32000,
    "max_position_embeddings": 8192,
}


def a_job(**values: Any) -> Job:
    model = ModelSpec(name="made/tiny", config=CONFIG, source="made for tests")
    return Job(**{"model": model, "batch": 2, "seq_len": 1024, **values})


def a_card(size: int, name: str = "card") -> CardSpec:
    return CardSpec(name=name, capability=(8, 0), processors=108, total_bytes=size)


class Double:
    """Answers every request with such a stream, and remembers them."""

    def __init__(self, *, fails: WorkerError | None = None) -> None:
        """Answer, or fail each time."""
        self.requests: list[TraceRequest] = []
        self.fails = fails

    def trace(self, request: TraceRequest) -> Stream:
        self.requests.append(request)
        if self.fails is not None:
            raise self.fails
        return stream_of(request.job)


def stream_of(job: Job) -> Stream:
    config: Any = job.model.config
    hidden, wide, vocab = (config[k] for k in ("hidden_size", "intermediate_size", "vocab_size"))
    layers, tokens = config["num_hidden_layers"], job.batch * job.seq_len
    run = Script()
    run.phase("load")
    sizes = [4 * hidden * hidden * 2, 3 * hidden * wide * 2]
    for at in range(layers):
        for size in sizes:
            run.make(size, "aten.empty", f"model.layers.{at}", "weights")
    for name in ("model.embed_tokens", "lm_head"):
        run.make(vocab * hidden * 2, "aten.empty", name, "weights")
    for number in (1, 2):
        run.phase(f"step {number}")
        _step(run, job, layers=layers, hidden=hidden, wide=wide, tokens=tokens, first=number == 1)
    if job.evaluation is not None:
        run.phase("evaluation")
        run.free(run.make(job.evaluation.batch * job.evaluation.seq_len * vocab * 4))
    return run.stream()


def _step(
    run: Script, job: Job, *, layers: int, hidden: int, wide: int, tokens: int, first: bool
) -> None:
    config: Any = job.model.config
    run.part("forward")
    batch = run.make(tokens * 8, "aten.to", category="input")
    angles = run.make(job.seq_len * 64 * 2, "aten.cos.default", "model.rotary_emb")
    saved = []
    for at in range(layers):
        module = f"model.layers.{at}"
        if job.attention == "eager":
            scores = job.batch * 16 * job.seq_len**2 * 2
            saved.append(run.make(scores, "aten._softmax.default", f"{module}.self_attn"))
        saved.append(run.make(4 * tokens * hidden * 2, "aten.mm.default", f"{module}.self_attn"))
        saved.append(run.make(3 * tokens * wide * 2, "aten.mm.default", f"{module}.mlp"))
    logits = run.make(tokens * config["vocab_size"] * 2, "aten.mm.default", "lm_head")
    copy = run.make(tokens * config["vocab_size"] * 4, "aten._to_copy.default", "")
    run.part("backward")
    run.free(copy, logits)
    gradients = []
    for at in reversed(range(layers)):
        module = f"model.layers.{at}"
        size = 4 * hidden * hidden * 2
        gradients += [run.make(size, "aten.mm.default", module) for _ in range(2)]
    run.free(*reversed(saved))
    run.free(angles, batch)
    run.part("optimizer")
    if first:
        for _ in range(2 * layers):
            run.make(8 * hidden * hidden * 2, "aten.zeros_like.default", "")
    run.part("zero-grad")
    run.free(*gradients)
