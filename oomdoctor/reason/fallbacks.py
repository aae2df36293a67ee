"""General measurements for where no rule could gain from a particular one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.plan import Measurement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.facts.book import FactBook

_SUMMARY = (
    "Print torch.cuda.memory_summary() when it fails (except torch.OutOfMemoryError: "
    "print(torch.cuda.memory_summary()); raise)."
)
FALLBACKS = (
    (
        "oom.requested",
        "Paste the complete error message (the line with 'Tried to allocate').",
        5.0,
        "Its figures tell a full card from a cap, a foreign process and a split cache.",
    ),
    (
        "trace.stack",
        "Paste the whole traceback, from 'Traceback (most recent call last)' to the last line.",
        5.0,
        "The failing frame tells loading, forward, loss, backward, optimizer and evaluation apart.",
    ),
    (
        "gpu.foreign",
        "nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name,used_memory --format=csv",
        2.0,
        "Rows that are not of this job raise other processes; none lowers them.",
    ),
    (
        "torch.non_releasable",
        _SUMMARY,
        60.0,
        "Active above allocated means another stream; much non-releasable means fragmentation.",
    ),
    (
        "growth.per_step",
        "Log torch.cuda.memory_allocated() at the same place of 20 consecutive steps.",
        60.0,
        "A steady rise is growth (something is kept); a flat line with peaks is a large batch.",
    ),
)


_IN_MESSAGE = (
    *("oom.requested", "oom.capacity", "oom.free", "oom.allowed", "oom.other_allocations"),
    *("oom.request_fits_free", "oom.shortfall", "torch.allocated", "torch.reserved"),
)
OF_DEVICE = ("oom.capacity", "oom.free")
OF_MESSAGE = ("oom.", "torch.allocated", "torch.reserved")
_OF_TORCH = ("oom.", "torch.", "growth.")
_OF_OTHER_ALLOCATORS = ("xla.", "tf.")
_OF_ENGINES = "serve."
_OF_GGML = frozenset(
    (
        *("serve.ggml", "serve.failed_buffer", "serve.devices", "serve.gpu_layers"),
        *("serve.model_layers", "serve.required", "serve.available", "serve.fullest_share"),
        *("serve.emptiest_share", "serve.load_spread", "serve.tensor_split"),
    )
)


def is_known(book: FactBook, key: str) -> bool:
    """Say whether somebody stated, measured or derived the fact; an assumption does not count."""
    fact = book.get(key)
    return fact is not None and fact.origin.value != "assumed"


def is_of_another_writer(book: FactBook) -> bool:
    """Say whether an engine or another library wrote the message, which has figures of its own."""
    if book.value("oom.form") == "engine":
        return True
    return book.value("oom.library") not in (None, "torch", "other")


def is_moot(book: FactBook, key: str) -> bool:
    """Say whether asking for a fact is in vain: the message was given, or has another writer.

    A message with what was asked for, what lives and what is left has all that this allocator
    prints. What XLA, TensorFlow or an engine built on ggml plans tells nothing about a failure of
    PyTorch's allocator, and no engine's plan about a job that trains. An engine's own message has
    none of PyTorch's figures; the driver can still tell what the device has.
    """
    if key.startswith(OF_MESSAGE) and key not in OF_DEVICE and is_of_another_writer(book):
        return True
    of_metal = book.value("oom.backend") == "mps" and key == "torch.reserved_unallocated"
    if key in _IN_MESSAGE or of_metal:
        whole = is_known(book, "oom.requested") and is_known(book, "torch.allocated")
        return whole and (is_known(book, "oom.free") or is_known(book, "oom.allowed"))
    if key.startswith(_OF_ENGINES) and book.value("run.inference_only") is False:
        return True
    of_another = key in _OF_GGML or key.startswith(_OF_OTHER_ALLOCATORS)
    return of_another and book.value("oom.library") == "torch"


def fallbacks(
    book: FactBook, chosen: Sequence[Measurement], names: Sequence[str]
) -> list[Measurement]:
    """Return general measurements for facts that nobody stated, cheapest first."""
    facts = {one.fact for one in chosen}
    commands = {one.command for one in chosen}
    return [
        Measurement(
            fact=fact,
            command=command,
            seconds=cost,
            gain_bits=0.0,
            decides_between=tuple(names[:-1][:4]),
            meanings=(meaning,),
        )
        for fact, command, cost, meaning in FALLBACKS
        if fact not in facts and command not in commands and not is_known(book, fact)
        if not (fact.startswith(_OF_TORCH) and is_of_another_writer(book))
    ]
