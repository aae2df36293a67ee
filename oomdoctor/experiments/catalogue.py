"""The experiments, by the causes that they prove or refute."""

from __future__ import annotations

from oomdoctor.experiments.experiment import Experiment
from oomdoctor.model.enums import Safety

GROWING_STEPS = 12
"""Optimizer steps after which what is kept from step to step stands out from what is not."""

TRAINING = (
    Experiment(
        name="half-rows",
        causes=("batch-or-seq-too-large", "activation-peak-at-edge"),
        title="half the rows in a pass, twice the accumulation",
        safety=Safety.CHANGES_SPEED,
        time_factor=1.05,
        job="half-rows",
        fix="micro-batch-half",
        hook="rows",
        arguments={"count": 1},
    ),
    Experiment(
        name="cut-rows",
        causes=("truncation-not-applied", "quadratic-attention-long-input"),
        title="rows cut to half of the longest length",
        safety=Safety.CHANGES_MATH,
        job="half-length",
        fix="drop-or-cut",
        hook="cut-rows",
    ),
    Experiment(
        name="checkpoint-activations",
        causes=("no-grad-checkpointing", "batch-or-seq-too-large"),
        title="activations recomputed in backward",
        safety=Safety.CHANGES_SPEED,
        time_factor=1.3,
        job="checkpointed",
        fix="checkpoint-activations",
        hook="checkpointing",
    ),
    Experiment(
        name="non-reentrant",
        causes=("grad-checkpointing-inert",),
        title="checkpointing that works on a frozen base",
        job="not-reentrant",
        fix="non-reentrant",
        hook="checkpointing",
    ),
    Experiment(
        name="fused-attention",
        causes=("attention-not-flash", "quadratic-attention-long-input"),
        title="attention without the matrix of scores",
        job="fused-attention",
        fix="fused-attention",
        hook="attention",
        arguments={"implementation": "sdpa"},
    ),
    Experiment(
        name="chunked-loss",
        causes=("logits-vocab-fp32",),
        title="a loss in chunks, so that the logits never exist as a whole",
        job="chunked-loss",
        fix="chunked-loss",
        hook="chunked-loss",
    ),
    Experiment(
        name="smaller-images",
        causes=("image-tokens-unbounded", "many-gt-objects"),
        title="images of half the side",
        safety=Safety.CHANGES_MATH,
        job="smaller-images",
        fix="pixel-limit",
    ),
    Experiment(
        name="reduce-every-pass",
        causes=("unsharded-grad-accumulation", "zero2-grad-buffer"),
        title="gradients exchanged after every pass",
        safety=Safety.CHANGES_SPEED,
        job="one-micro-step",
        fix="reduce-every-pass",
    ),
    Experiment(
        name="benchmark-off",
        causes=("conv-workspace",),
        title="no search for the fastest convolution",
        safety=Safety.CHANGES_SPEED,
        fix="benchmark-off",
        hook="benchmark-off",
    ),
    Experiment(
        name="no-compile",
        causes=("cuda-graph-private-pool",),
        title="no compiled graphs",
        safety=Safety.CHANGES_SPEED,
        fix="no-graphs",
        environment={"TORCHDYNAMO_DISABLE": "1"},
        grows=None,
    ),
)
STATES = (
    Experiment(
        name="lighter-optimizer",
        causes=("optimizer-states", "embedding-optimizer-state"),
        title="an optimizer without states",
        is_remedy=False,
        safety=Safety.CHANGES_MATH,
        job="stateless-optimizer",
        hook="optimizer",
        arguments={"name": "sgd"},
    ),
    Experiment(
        name="load-in-16-bit",
        causes=("fp32-load", "fp32-transient-on-device"),
        title="weights in bf16",
        job="sixteen-bit",
        fix="load-in-16-bit",
        hook="load-16-bit",
    ),
    Experiment(
        name="without-casts",
        causes=("kbit-fp32-upcast",),
        title="a quantised base without casts to fp32",
        job="unprepared",
        fix="keep-embeddings-16-bit",
    ),
    Experiment(
        name="adapter-alone",
        causes=("trainable-embeddings", "embedding-optimizer-state"),
        title="no whole modules trained beside the adapter",
        safety=Safety.CHANGES_MATH,
        job="adapter-alone",
        fix="drop-modules-to-save",
    ),
    Experiment(
        name="shared-reference",
        causes=("ref-model-copy",),
        title="the base under the adapter as the reference",
        job="shared-reference",
        fix="adapter-is-the-reference",
    ),
    Experiment(
        name="load-on-host",
        causes=("load-checkpoint-held-twice", "load-map-location-gpu0"),
        title="checkpoints read to the host",
        fix="read-to-host",
        hook="load-on-host",
    ),
    Experiment(
        name="save-by-pieces",
        causes=("checkpoint-save-gather", "fsdp-full-state-load"),
        title="states saved without gathering them on the card",
        fix="sharded-state-dict",
        hook="save-without-gather",
        saves=True,
    ),
)
KEPT = (
    Experiment(
        name="moved-outputs",
        causes=("eval-predictions-accumulate",),
        title="outputs of evaluation moved to the host batch after batch",
        job="moved-outputs",
        fix="move-to-host",
        hook="eval-accumulation",
        arguments={"steps": 1},
        evaluates=True,
        phases=("evaluation",),
    ),
    Experiment(
        name="no-grad",
        causes=("missing-no-grad",),
        title="evaluation without a graph",
        fix="no-grad",
        hook="no-grad",
        evaluates=True,
        phases=("evaluation",),
    ),
    Experiment(
        name="detach",
        causes=("loss-graph-retained",),
        title="running sums without their graphs",
        fix="keep-the-number",
        hook="detach",
        steps=GROWING_STEPS,
        grows=True,
    ),
    Experiment(
        name="to-host",
        causes=(
            "python-list-holds-gpu-tensors",
            "epoch-end-outputs-retained",
            "metric-state-on-gpu",
        ),
        title="what is kept from step to step goes to the host",
        fix="keep-on-host",
        steps=GROWING_STEPS,
        grows=True,
    ),
    Experiment(
        name="no-retain-graph",
        causes=("retain-graph",),
        title="backward frees its graph",
        fix="detach-state",
        hook="no-retain-graph",
        steps=GROWING_STEPS,
        grows=True,
    ),
    Experiment(
        name="collect",
        causes=("previous-objects-not-freed", "mps-backend-leak"),
        title="cycles collected after every step",
        hook="collect",
        steps=GROWING_STEPS,
        grows=True,
    ),
    Experiment(
        name="use-cache-off",
        causes=("kv-cache-too-large",),
        title="no cache of keys and values",
        safety=Safety.CHANGES_SPEED,
        job="fewer-answers",
        hook="use-cache-off",
    ),
)
ALLOCATOR = (
    Experiment(
        name="expandable-segments",
        causes=("fragmentation", "stream-deferred-free"),
        title="segments that grow",
        fix="expandable-segments",
        environment={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        grows=None,
        of_allocator=True,
    ),
    Experiment(
        name="empty-cache",
        causes=("fragmentation", "allocator-cache-blocks-outsiders"),
        title="the cache given back after every step",
        safety=Safety.CHANGES_SPEED,
        fix="return-the-cache",
        hook="empty-cache",
        grows=None,
        of_allocator=True,
    ),
    Experiment(
        name="without-the-cap",
        causes=("memory-fraction-cap", "other-process-on-gpu", "several-own-processes"),
        title="the whole card",
        fix="raise-the-cap",
        lifts_cap=True,
        grows=None,
    ),
)
HOST = (
    Experiment(
        name="no-workers",
        causes=("host-ram-exhausted", "shm-too-small", "dataloader-cow", "fd-limit"),
        title="data loaded in the main process",
        safety=Safety.CHANGES_SPEED,
        time_factor=1.5,
        fix="fewer-workers",
        hook="workers",
        arguments={"count": 0},
        grows=None,
    ),
    Experiment(
        name="pageable",
        causes=("pinned-memory-host",),
        title="no pinned memory",
        safety=Safety.CHANGES_SPEED,
        hook="pin-memory-off",
        grows=None,
    ),
)
EXPERIMENTS = (*TRAINING, *STATES, *KEPT, *ALLOCATOR, *HOST)


def experiments_of(cause: str) -> tuple[Experiment, ...]:
    """Return the experiments that speak of a cause, the most telling first."""
    return tuple(one for one in EXPERIMENTS if cause in one.causes)
