"""Options of `estimate` and `plan`: the job, the cards, the engine, and what to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

from oomdoctor.cli.options import complete_fact

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from click.shell_completion import CompletionItem

F = TypeVar("F", bound="Callable[..., object]")
METHODS = ("full", "lora", "dora", "rslora", "qlora", "qdora", "lora-8bit")
TASKS = (
    *("pretrain", "sft", "dpo", "orpo", "simpo", "kto", "grpo", "reward", "classification"),
    *("token-classification", "masked-lm", "seq2seq", "embedding", "image-classification"),
    *("generation", "evaluation", "merge", "serving"),
)
SERVERS = ("vllm", "sglang", "tgi", "llama.cpp", "ollama", "diffusers")
ENGINES = ("simulate", "formula", "virtual")


def complete_card(_ctx: object, _param: object, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a card."""
    from click.shell_completion import CompletionItem

    from oomdoctor.facts.gpus import cards

    low = incomplete.lower()
    return [CompletionItem(card.name) for card in cards() if low in card.name.lower()]


def complete_model(_ctx: object, _param: object, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a model, and files."""
    from click.shell_completion import CompletionItem

    from oomdoctor.facts.models import models

    low = incomplete.lower()
    found = [CompletionItem(one.name) for one in models() if low in one.name.lower()]
    return [*found, CompletionItem(incomplete, type="file")]


_MODEL = (
    click.option(
        "--fact",
        multiple=True,
        metavar="KEY=VALUE",
        shell_complete=complete_fact,
        help="Something you know, such as dist.world_size=8; outranks the configs.",
    ),
    click.option(
        "--python",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="The interpreter that has torch.  [default: the one that runs oomdoctor]",
    ),
    click.option(
        "--engine",
        type=click.Choice(ENGINES),
        help="Trace the model's code, compute, or run the job by torch's CUDA build on a card that"
        " is played.  [default: simulate where torch is installed, else formula]",
    ),
    click.option(
        "--gpu",
        multiple=True,
        metavar="NAME|SIZE",
        shell_complete=complete_card,
        help='A card, such as "RTX 4090", A100-80GB or 24GiB; may be given again.',
    ),
    click.option(
        "--model",
        metavar="FILE|NAME",
        shell_complete=complete_model,
        help="The model: its config.json, or a name from the hub.",
    ),
)
_SERVER = (
    click.option(
        "--max-len", type=click.IntRange(min=1), metavar="N", help="Tokens of a server's request."
    ),
    click.option(
        "--utilization",
        type=click.FloatRange(min=0, max=1, min_open=True),
        metavar="SHARE",
        help="Share of the card that a serving engine may take.",
    ),
    click.option("--engine-name", type=click.Choice(SERVERS), help="The engine that serves."),
)
_JOB = (
    click.option("--labels", type=click.IntRange(min=1), metavar="N", help="Classes of a head."),
    click.option(
        "--new-tokens", type=click.IntRange(min=1), metavar="N", help="Tokens to generate."
    ),
    click.option("--prompt", type=click.IntRange(min=1), metavar="N", help="Tokens of a prompt."),
    click.option(
        "--eval-batch", type=click.IntRange(min=1), metavar="N", help="Rows in evaluation."
    ),
    click.option(
        "--sharding",
        metavar="KIND",
        help="How ranks share the model: none, ddp, zero1, zero2, zero3, fsdp1, fsdp2.",
    ),
    click.option("--gpus", type=click.IntRange(min=1), metavar="N", help="How many ranks run."),
    click.option("--loss", metavar="KIND", help="full, chunked, fused or liger."),
    click.option(
        "--attention", metavar="KIND", help="eager, sdpa, flash_attention_2 or flex_attention."
    ),
    click.option("--optimizer", metavar="NAME", help="adamw, adamw_8bit, adafactor, sgd, ..."),
    click.option(
        "--checkpointing/--no-checkpointing",
        default=None,
        help="Compute activations again in backward.",
    ),
    click.option(
        "--grad-accum", type=click.IntRange(min=1), metavar="N", help="Micro-steps of a step."
    ),
    click.option(
        "--seq", type=click.IntRange(min=1), metavar="N", help="Tokens of the longest row."
    ),
    click.option(
        "--batch", type=click.IntRange(min=1), metavar="N", help="Rows for each card and pass."
    ),
    click.option("--amp", metavar="DTYPE", help="Autocast: bf16, fp16 or none."),
    click.option("--dtype", metavar="DTYPE", help="Weights are loaded as bf16, fp16 or fp32."),
    click.option(
        "--quant",
        metavar="KIND",
        help="How the base is packed: nf4, nf4-double, fp4, int8, gptq, awq, fp8 or none.",
    ),
    click.option("--modules-to-save", metavar="NAMES", help="Modules trained beside an adapter."),
    click.option(
        "--lora-targets",
        metavar="NAMES",
        help="Modules with an adapter, with commas, or all-linear.",
    ),
    click.option("--lora-r", type=click.IntRange(min=1), metavar="N", help="Rank of the adapter."),
    click.option("--task", type=click.Choice(TASKS), help="What the job does."),
    click.option(
        "--method", type=click.Choice(METHODS), help="What is trained, and how the base is kept."
    ),
)
_SHAPES = (
    click.option(
        "--limits/--no-limits",
        default=True,
        help="Look for the largest batch and length on the cards that are named.",
    ),
    click.option(
        "--lengths", metavar="N,N", help="Lengths of the table.  [default: powers of two]"
    ),
    click.option(
        "--batches", metavar="N,N", help="Batches of the table.  [default: powers of two]"
    ),
    click.option("--table", is_flag=True, help="Peaks for every batch and length, as a heat map."),
    click.option(
        "--alloc-conf",
        multiple=True,
        metavar="SETTING",
        help="PYTORCH_CUDA_ALLOC_CONF, such as expandable_segments:True; each is compared.",
    ),
    click.option(
        "--what-if",
        multiple=True,
        metavar="K=V",
        help="The job with something changed, side by side; K names a flag or a fact.",
    ),
)


def job_options(function: F) -> F:
    """Add the configs, the model, the flags of the job, the cards and the engine."""
    configs = click.argument(
        "configs",
        nargs=-1,
        metavar="[CONFIG|-]...",
        type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    )
    return _with(function, (*_MODEL, *_JOB, configs))


_ENTRY = (
    click.option(
        "--entry-args",
        multiple=True,
        metavar="K=V",
        help="An argument for the function of --entry, by name; may be given again.",
    ),
    click.option(
        "--entry",
        metavar="MODULE:FUNCTION",
        help="Run your own function, which makes model, optimizer and step, on the fake card.",
    ),
)


def entry_options(function: F) -> F:
    """Add what runs the user's own code."""
    return _with(function, _ENTRY)


def shape_options(function: F) -> F:
    """Add the table, the limits, and what to compare."""
    return _with(function, (*_SERVER, *_SHAPES))


def _with(function: F, options: Sequence[Callable[[F], F]]) -> F:
    for option in options:
        function = option(function)
    return function
