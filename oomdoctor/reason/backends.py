"""Spell a measurement for the accelerator that failed: no `nvidia-smi` on a Mac."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from oomdoctor.facts.book import FactBook


class Tools(NamedTuple):
    """A back end's device tool, and how its torch module spells what `torch.cuda` has."""

    device_tool: str
    module: str


TOOLS = {
    "hip": Tools("rocm-smi --showpids --showmeminfo vram", "torch.cuda"),
    "xpu": Tools("xpu-smi ps", "torch.xpu"),
    "npu": Tools("npu-smi info", "torch.npu"),
    "musa": Tools("mthreads-gmi", "torch.musa"),
    "mps": Tools("memory_pressure; ps aux | sort -nrk 4 | head", "torch.mps"),
}
# torch.mps has no summary and no allocator options of CUDA's kind (torch 2.13, torch/mps).
MPS_WORDS = (
    ("torch.mps.memory_summary()", "torch.mps.driver_allocated_memory()"),
    ("torch.mps.memory_allocated()", "torch.mps.current_allocated_memory()"),
    ("echo $PYTORCH_CUDA_ALLOC_CONF $PYTORCH_ALLOC_CONF", "echo $PYTORCH_MPS_HIGH_WATERMARK_RATIO"),
)


def spelled(command: str, book: FactBook) -> str:
    """Return `command` for the back end of the failure; CUDA's spelling where none is known."""
    tools = TOOLS.get(str(book.value("oom.backend")))
    if tools is None:
        return command
    if command.startswith("nvidia-smi"):
        return tools.device_tool
    command = command.replace("torch.cuda.", f"{tools.module}.")
    if tools.module == "torch.mps":
        for cuda_word, mps_word in MPS_WORDS:
            command = command.replace(cuda_word, mps_word)
    return command
