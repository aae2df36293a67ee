"""Sizes of what engines hold: weights, a token's cache, a profile run, a GGUF file, pipelines.

vLLM: budget = utilization x card; from it go the weights, the peak of the profile run, what other
libraries hold (not before 0.2.5) and the captured graphs (since 0.21); the rest is the key/value
cache in blocks of 16 tokens. Measured on an 80 GB card (Llama-3-8B, defaults): weights 14.96,
profile 1.26, outside of torch 1.79, cache 53.29 of 71.29 GiB.
What libraries hold beside torch was 0.16 to 3.6 GiB in published starts: a middle value is taken.
The profile's sampler sorts the logits of every sequence: 35 to 41 bytes for each value in published
starts (vocabularies of 128 and 152 thousand, 256 sequences: 1.26, 1.26, 1.42 GiB, on one card and
on two), 14 in one where it does not sort.
llama.cpp: a GGUF's bits per weight, a cache of the whole context, and a compute buffer for a
micro-batch of tokens: fp32 logits and one hidden state (a published log with 50,688 and 3,072 of
them says 105.00 MiB, as the formula does), or the scores where attention is not in tiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.memory.formula_network import Network
from oomdoctor.memory.formula_shape import shape_of
from oomdoctor.memory.tape import Tape
from oomdoctor.record import NamedTuple, dataclass

if TYPE_CHECKING:
    from oomdoctor.memory.formula_shape import Shape
    from oomdoctor.model.job import Job, ModelSpec

BATCHED_TOKENS = 8192
SEQUENCES = 256
SAMPLER = 36  # bytes for each logit, from the starts above
UNSORTED = 14
SORTED = 41
# Bytes for each weight: values and their scales (bitsandbytes: fp32 for 64; GPTQ and AWQ: fp16 and
# a zero point for 128; both read off the formats, published sizes of files agree to 3 %).
PACKED = {"nf4": 0.5625, "fp4": 0.5625, "int8": 1.0, "fp8": 1.0, "gptq": 0.52, "awq": 0.53}
PACKED["mxfp4"] = 0.53  # 4 bits and a scale of 8 for 32 values
# Bits for each weight of the file types of llama.cpp (README of its quantize tool, Llama-3.1-8B).
GGUF_BITS = {
    "f32": 32.0,
    "f16": 16.0,
    "bf16": 16.0,
    "q8_0": 8.5,
    "q6_k": 6.56,
    "q5_k_m": 5.7,
    "q5_k_s": 5.57,
    "q5_1": 6.0,
    "q5_0": 5.5,
    "q4_k_m": 4.89,
    "q4_k_s": 4.67,
    "q4_1": 5.0,
    "q4_0": 4.5,
    "iq4_nl": 4.68,
    "iq4_xs": 4.46,
    "q6_k_l": 6.6,
    "q5_k_l": 5.75,
    "q4_k_l": 4.95,
    "q3_k_l": 4.3,
    "q3_k_m": 4.0,
    "q3_k_s": 3.64,
    "iq3_m": 3.76,
    "iq3_s": 3.66,
    "iq3_xxs": 3.25,
    "q2_k": 3.16,
    "iq2_m": 2.93,
    "iq2_xxs": 2.38,
    "iq1_m": 2.15,
    "iq1_s": 2.0,
    "mxfp4": 4.25,
}
# Bits of the table of tokens, which stays in main memory, where they are not those of the file
# (llama.cpp, llama_tensor_get_type: the type's own format, without its better layers).
TABLE_BITS = {"q5_k_m": 5.5, "q5_k_s": 5.5, "q4_k_m": 4.5, "q4_k_s": 4.5}
TABLE_BITS |= {"q3_k_l": 3.4375, "q3_k_m": 3.4375, "q3_k_s": 3.4375, "q2_k": 2.625, "q6_k": 6.5625}
HEAD_BITS = 6.5625  # q6_k, the least of an output layer in files of 4 bits and more
# Bytes of a value in the cache (ggml: a block of 32 with its scale).
CACHE_BYTES = {"f16": 2.0, "bf16": 2.0, "f32": 4.0, "q8_0": 34 / 32, "q5_1": 24 / 32}
CACHE_BYTES |= {"q5_0": 22 / 32, "q4_1": 20 / 32, "q4_0": 18 / 32, "fp8": 1.0, "auto": 2.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalBuffers:
    """llama.cpp's buffers on the card: weights of its layers, their cache, the computation."""

    weights: int
    cache: int
    compute: int

    @property
    def total(self) -> int:
        """Return all of them."""
        return self.weights + self.cache + self.compute


def token_bytes(shape: Shape, *, width: float = 2.0, ranks: int = 1) -> int:
    """Return the cache of one token: two values per head and layer, or one latent (MLA)."""
    if shape.key_rank:
        return int(shape.layers * (shape.key_rank + shape.rope_dim) * width)
    heads = max(1, -(-shape.kv_heads // ranks))
    return int(2 * shape.layers * heads * shape.head_dim * width)


def weight_bytes(job: Job, shape: Shape) -> int:
    """Return the weights in the dtype or packed form of the job."""
    network = Network(Tape(), job, shape)
    counted = network.counted()
    packed = PACKED.get(job.quant.kind, 2.0) if job.quant is not None else 0.0
    total = sum(p.count * n * (packed if p.quantised else p.width) for p, n in counted)
    values = sum(p.count * n for p, n in counted)
    published = job.model.params
    return int(total + (max(0, published - values) * network.maker.rest if published else 0))


def profile_bytes(
    shape: Shape, *, tokens: int, sequences: int, ranks: int = 1, each: int = SAMPLER
) -> int:
    """Return the peak of a forward pass over a full batch: the widest layer, or the sampler."""
    wide = 1.5 * (2 * shape.width if shape.gated else shape.width) / ranks
    if shape.experts:
        # vLLM's fused experts: one buffer for the products before and after, as wide as the wider
        # (a sum over cards is of the whole hidden size), and one for what lies between
        inner = shape.expert_width / ranks
        wide = shape.top_k * (max(2 * inner, shape.hidden) + inner)
    layer = 2 * tokens * (2 * shape.hidden + wide)
    sampler = sequences * shape.vocab * each
    return int(max(layer, sampler + 2 * tokens * shape.hidden))


def local_buffers(
    model: ModelSpec,
    *,
    file_type: str,
    context: int,
    layers_on_card: int | None = None,
    micro_batch: int = 512,
    cache: str = "f16",
    flash: bool = True,
) -> LocalBuffers:
    """Return llama.cpp's buffers; ValueError for a file type that is not known."""
    shape = shape_of(model.config)
    parts = file_parts(model, file_type)
    whole = layers_on_card is None or layers_on_card > shape.layers
    share = 1.0 if layers_on_card is None else min(1.0, layers_on_card / shape.layers)
    weights = parts.inside * share + (parts.head if whole else 0)
    held = token_bytes(shape, width=CACHE_BYTES.get(cache, 2.0)) * context * share
    rows = min(micro_batch, context)
    logits = 4 * rows * (shape.vocab + shape.hidden)
    # an output layer that stays in main memory is brought to the card for a pass
    work = [logits + (0 if whole else parts.head)]
    if flash:
        work.append(4 * rows * (2 * shape.hidden + 2 * shape.width))
    else:
        work.append(4 * rows * (context * shape.heads + 6 * shape.hidden))
    return LocalBuffers(weights=int(weights), cache=int(held), compute=int(max(work)))


class FileParts(NamedTuple):
    """Bytes of a GGUF file: layers, the table of tokens, the output layer (the table if tied)."""

    inside: int
    table: int
    head: int


def file_parts(model: ModelSpec, file_type: str) -> FileParts:
    """Divide a GGUF file; ValueError for a file type that is not known."""
    kind = file_type.lower()
    bits = GGUF_BITS.get(kind)
    if bits is None:
        raise ValueError(f"no file type of llama.cpp: {file_type}")
    shape = shape_of(model.config)
    params = model.params or _counted(model)
    values = shape.vocab * shape.hidden
    table = values * TABLE_BITS.get(kind, bits) / 8
    head = values * max(bits, HEAD_BITS if bits > 4 else bits) / 8
    if shape.tied:
        head = table = max(table, head)
    inside = params * bits / 8 - (table if shape.tied else table + head)
    return FileParts(int(max(0, inside)), int(table), int(head))


def _counted(model: ModelSpec) -> int:
    from oomdoctor.model.job import Job

    job = Job(model=model, task="forward", optimizer=None)
    return sum(p.count * n for p, n in Network(Tape(), job, shape_of(model.config)).counted())


# Pipelines of diffusers: transformer or UNet, text encoders, decoder in 16-bit GiB by their
# published counts, and about what an image of 1,024 x 1,024 pixels needs while it is decoded.
PIPELINES: dict[str, tuple[float, float, float, float]] = {
    "stable-diffusion-v1-5": (1.60, 0.23, 0.16, 0.9),
    "stable-diffusion-xl-base-1.0": (4.78, 1.52, 0.16, 2.6),
    "stable-diffusion-3-medium": (3.88, 10.0, 0.16, 2.6),
    "stable-diffusion-3.5-large": (15.0, 10.0, 0.16, 2.6),
    "FLUX.1-dev": (22.17, 9.1, 0.16, 2.6),
    "FLUX.1-schnell": (22.17, 9.1, 0.16, 2.6),
    "PixArt-Sigma-XL-2-1024-MS": (1.14, 8.87, 0.16, 2.6),
}
