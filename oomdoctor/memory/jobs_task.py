"""What a job does: its task, the loop that runs it, what comes besides training steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin
from oomdoctor.model.job import TRAINING, EvalSpec, GenerationSpec

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook
    from oomdoctor.memory.jobs_book import Said
    from oomdoctor.model.job import ModelSpec

_TASKS = {
    "serve": "serving",
    "generate": "generation",
    "evaluate": "forward",
    "merge": "forward",
    "vision": "image-classification",
}
_OF_KIND = {
    "seq2seq": "seq2seq",
    "speech": "seq2seq",
    "encoder": "classification",
    "vision": "image-classification",
}
_UNKNOWN = ("ppo", "detection", "diffusion", "other")
_OWN_LOOP = ("torchtune", "torchtitan", "lightning", "nanogpt", "plain", "megatron", "accelerate")
DEFAULT_NEW_TOKENS = 256
OF_TRL = ("dpo", "orpo", "kto", "grpo", "reward")
WITHOUT_REFERENCE = ("orpo", "simpo", "cpo")


def task_of(said: Said, model: ModelSpec) -> str:
    """Return the task; one that is not described is missing and named."""
    stated = said.text("job.task")
    variant = said.text("train.variant")
    if variant in WITHOUT_REFERENCE and stated == "dpo":
        return "orpo"
    kind = said.text("model.kind") or "causal-lm"
    if "library" in model.config and kind == "diffusion":
        said.lack("a task that is described: diffusion models are trained by no formula here")
        return "forward"
    if stated in _UNKNOWN:
        said.lack(f"a task that is described: {stated} is not (--task sft)")
        return "sft"
    return _unstated(said, kind) if stated is None else _stated(stated, kind)


def _stated(stated: str, kind: str) -> str:
    task = _TASKS.get(stated, stated)
    if task in ("sft", "pretrain") and kind == "encoder":
        return "masked-lm"
    return "seq2seq" if task == "sft" and kind in ("seq2seq", "speech") else task


def _unstated(said: Said, kind: str) -> str:
    if said.text("serve.engine") or said.text("job.framework") in ("vllm", "sglang"):
        return "serving"
    if said.flag("run.inference_only") or said.flag("train.inference"):
        return "generation"
    task = _OF_KIND.get(kind, "sft")
    said.assume(f"the task {task}, as is usual for this kind of model")
    return task


def with_framework(book: FactBook) -> FactBook:
    """Return the book with TRL as its framework where none is named and the task is TRL's own.

    Its defaults, such as the way of its loss, follow from that.
    """
    task = book.value("job.task")
    if task not in OF_TRL or book.value("job.framework") is not None:
        return book
    source = f"no framework is named, and {task} is TRL's task"
    fact = Fact(key="job.framework", value="trl", origin=Origin.ASSUMED, source=source)
    return book.add([fact])


def framework_of(said: Said, task: str) -> str:
    """Return whose training loop runs."""
    name = said.text("job.framework")
    if name is None and task in OF_TRL:
        said.assume(f"the training loop of TRL (no framework is named, and {task} is its task)")
        return "trl"
    if name is None:
        said.assume("the training loop of transformers (no framework is named)")
        return "transformers"
    if name in ("plain", "nanogpt", "megatron", "accelerate"):
        return "torch"
    return name


def evaluation_of(said: Said, task: str, batch: int, length: int) -> EvalSpec | None:
    """Return how evaluation between steps works, None without one."""
    strategy = said.text("eval.strategy")
    if task not in TRAINING or strategy in (None, "no"):
        return None
    rows = said.count("eval.batch") or batch
    total = said.count("data.eval_rows")
    metrics = bool(said.flag("eval.compute_metrics")) and not said.flag("eval.loss_only")
    small = said.flag("eval.preprocess_logits") or said.flag("eval.batch_metrics")
    keeps = metrics and not small and not said.flag("eval.generate")
    batches = max(1, -(-total // rows)) if total else 2
    if keeps and not total:
        said.assume("an evaluation of two batches (the rows of its data set are not known)")
    return EvalSpec(
        batch=rows,
        seq_len=length,
        batches=batches,
        keeps_outputs=keeps,
        accumulation=said.count("eval.accumulation_steps"),
    )


def generation_of(said: Said, task: str, batch: int, length: int) -> GenerationSpec | None:
    """Return the generation of a job: its task, an evaluation that generates, or GRPO's answers."""
    engine = said.flag("rl.use_vllm") or said.flag("gen.colocated_engine")
    answers = task == "grpo" and not engine
    if task != "generation" and not answers and not said.flag("eval.generate"):
        return None
    new = said.count("gen.max_new_tokens")
    if new is None:
        new = DEFAULT_NEW_TOKENS
        said.assume(f"answers of {new} tokens (no number is given)")
    prompt = said.count("gen.prompt") or (max(1, length - new) if answers else length)
    rows = said.count("gen.batch") or _rows(said, batch, answers=answers)
    if task == "generation" and not said.count("gen.batch"):
        rows = batch
    return GenerationSpec(
        batch=rows,
        prompt=prompt,
        new_tokens=new,
        beams=said.count("gen.beams") or 1,
        returns=said.count("gen.returns") or 1,
        cache="none" if said.flag("gen.caches") is False else "dynamic",
    )


def _rows(said: Said, batch: int, *, answers: bool) -> int:
    """Return the rows that generate at once: GRPO answers all micro-batches of a step together."""
    if not answers:
        return said.count("eval.batch") or batch
    steps = said.count("rl.steps_per_generation") or said.count("train.grad_accum") or 1
    return batch * steps


def engine_share_of(said: Said, task: str) -> float | None:
    """Return the share of the card that vLLM takes beside the trainer, None where it is elsewhere.

    Nothing is said of a server on other cards.
    """
    if task != "grpo" or not said.flag("rl.use_vllm"):
        return None
    return said.number("rl.engine_share")


def reference_of(said: Said, task: str, *, adapter: bool) -> str | None:
    """Return where the reference model is: nowhere, separate, or the base of the adapter."""
    if said.flag("ref.separate") is False or task not in ("dpo", "kto", "grpo"):
        return None
    if task == "grpo" and not said.number("rl.beta"):
        return None  # beta is 0 by default, and then no reference is loaded
    if said.flag("ref.separate"):
        return "separate"
    return "adapter-off" if adapter else "separate"
