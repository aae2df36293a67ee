"""What the scripts of `fixtures/virtual` need at least and at most, from their shapes alone.

Weights, gradients and states of the optimizer are counted exactly. Of the activations, what
autograd keeps is counted for each token of a layer; where a copy depends on the layout that a
kernel gives its result, it is in the upper bound alone. All figures are bytes.
"""

from __future__ import annotations

from typing import TypeAlias

MIB = 1 << 20
FP32, BF16 = 4, 2
# torch's workspaces of cuBLAS, masks, tables of positions, buffers of a norm
SMALL = 96 * MIB

Bound: TypeAlias = tuple[int, int]

# the Llama of fixtures/virtual/made.py
VOCABULARY, WIDTH, INNER, LAYERS, KEYS = 8192, 1024, 2816, 8, 256
LINEARS = 2 * WIDTH * WIDTH + 2 * WIDTH * KEYS + 3 * WIDTH * INNER
ENDS = 2 * VOCABULARY * WIDTH
LLAMA = LAYERS * (LINEARS + 2 * WIDTH) + ENDS + WIDTH

# a norm of Llama: its input in float32 and what it normalised, then one copy for the next linears
_LAYER_BF16 = (4 + 2 + 2) * WIDTH * 2 + (2 + 2) * WIDTH + 2 * 2 * KEYS + 4 * 2 * INNER
# by autocast each of q, k, v, gate and up gets a copy of its own of the norm's output
_LAYER_AUTOCAST = (
    (4 + 4) * WIDTH * 2 + (3 + 2) * 2 * WIDTH + (2 + 2) * WIDTH + 2 * 2 * KEYS + 4 * 2 * INNER
)
# what attention gives may be copied into another layout, and keys may be repeated for each head
_COPIES = 8 * WIDTH


def loss(tokens: int, vocabulary: int = VOCABULARY) -> int:
    """Return what a cross entropy holds as its backward begins: three tensors in float32."""
    return 3 * FP32 * tokens * vocabulary


def trainer_full(batch: int, length: int) -> Bound:
    """Weights and two states in float32, bfloat16 copies by autocast, and all activations."""
    tokens = batch * length
    states = 3 * FP32 * LLAMA + BF16 * (LAYERS * LINEARS + ENDS // 2)
    low = states + LAYERS * tokens * _LAYER_AUTOCAST + loss(tokens)
    return low, low + LAYERS * tokens * _COPIES + SMALL


def lightning_fit(batch: int, length: int) -> Bound:
    """As above, but the gradients of the step before live until the next backward begins."""
    tokens = batch * length
    low, high = trainer_full(batch, length)
    # they are gone when the gradient of the logits is there; before it, two tensors and a half are
    extra = FP32 * LLAMA - (FP32 - BF16) * tokens * VOCABULARY
    return max(low, low + extra), high + max(0, extra)


def trainer_lora(batch: int, length: int) -> Bound:
    """A frozen base in bfloat16, adapters in float32, the inputs of layers, and the loss."""
    tokens = batch * length
    adapters = LAYERS * 16 * (2 * 2 * WIDTH + 2 * (WIDTH + KEYS))
    fixed = BF16 * LLAMA + 3 * FP32 * adapters + LAYERS * tokens * BF16 * WIDTH
    low = fixed + loss(tokens)
    return low, low + 2 * BF16 * tokens * WIDTH + SMALL


def trl_sft(batch: int, length: int) -> Bound:
    """All of it in bfloat16."""
    tokens = batch * length
    low = 3 * BF16 * LLAMA + LAYERS * tokens * _LAYER_BF16 + loss(tokens)
    return low, low + LAYERS * tokens * _COPIES + SMALL


def trl_dpo(batch: int, length: int) -> Bound:
    """Two rows for each pair, and a reference that neither has gradients nor states."""
    tokens = 2 * batch * length
    # the log-probabilities of one row at a time are made from logits in bfloat16
    low = 4 * BF16 * LLAMA + LAYERS * tokens * _LAYER_BF16 + 2 * BF16 * tokens * VOCABULARY
    return low, low + LAYERS * tokens * _COPIES + loss(tokens) + SMALL


def nanogpt(batch: int, length: int) -> Bound:
    """A compiled GPT, whose compiler decides what is kept between forward and backward."""
    width, layers, vocabulary = 768, 6, 50304
    weights = (vocabulary + length) * width + layers * (12 * width**2 + 4 * width) + 2 * width
    tokens = batch * length
    # inputs of the linears, queries, keys, values, and what the gelu gets
    kept = layers * tokens * (2 + 6 + 2 + 2 + 8) * width
    backward = 3 * FP32 * weights + kept + 2 * BF16 * tokens * vocabulary
    low = max(4 * FP32 * weights, backward)
    more = layers * tokens * (4 + 4 + 8) * width + FP32 * tokens * vocabulary
    return low, low + more + BF16 * weights + SMALL


def vit(batch: int) -> Bound:
    """ViT-B/16 at 224 pixels: 196 patches and a token for the class."""
    width, layers, tokens = 768, 12, batch * 197
    weights = layers * (12 * width**2 + 13 * width) + (3 * 16 * 16 + 1 + 197 + 1 + 2 + 10) * width
    layer = (4 + 2 + 6 + 2 + 4 + 2 + 8 + 8) * width
    low = 3 * FP32 * weights + BF16 * weights + layers * tokens * layer
    return low, low + layers * tokens * 4 * width + SMALL


def resnet(batch: int) -> Bound:
    """ResNet-50 in float32: what each convolution and each norm gets is kept once."""
    weights, kept, side, width = 64 * 3 * 49 + 2 * 64, 3 * 224**2 + 2 * 64 * 112**2, 56, 64
    kept += 64 * 56**2 + 2 * 64 * 56**2  # of the pool: its result, and where (in int64) it lay
    inputs = 64
    for blocks, planes in ((3, 64), (4, 128), (6, 256), (3, 512)):
        for block in range(blocks):
            before = side
            side = side // 2 if block == 0 and planes > 64 else side
            wide = 4 * planes
            weights += inputs * planes + 9 * planes**2 + planes * wide + 4 * planes + 2 * wide
            # a convolution's result, for its norm, and that norm's, for the next convolution
            kept += 2 * planes * before**2 + 2 * planes * side**2 + 2 * wide * side**2
            if block == 0:
                weights += inputs * wide + 2 * wide
                kept += wide * side**2
            inputs = wide
    weights += inputs * 10 + 10
    low = 2 * FP32 * weights + FP32 * batch * kept
    # cuDNN's choice of workspaces, and two gradients of the widest stage
    return low, low + FP32 * weights + 2 * FP32 * batch * 4 * width * 56**2 + 2 * SMALL


def qlora(batch: int, length: int) -> Bound:
    """4 bits for each weight of a linear layer and their scales; the states are paged."""
    tokens = batch * length
    base = LAYERS * LINEARS // 2 + LAYERS * LINEARS // 64 + FP32 * ENDS + BF16 * ENDS // 2
    ends = 2 * 2 * WIDTH + 2 * (WIDTH + KEYS) + 3 * (WIDTH + INNER)
    adapters = FP32 * LAYERS * 16 * ends
    low = base + adapters + LAYERS * tokens * FP32 * WIDTH + loss(tokens)
    return low, low + adapters + 2 * FP32 * tokens * WIDTH + SMALL


def _of_ranks(tokens: int) -> int:
    # these scripts keep the logits until the next step
    return LAYERS * tokens * _LAYER_BF16 + loss(tokens) + BF16 * tokens * VOCABULARY


def fsdp2(batch: int, length: int, ranks: int = 4) -> Bound:
    """A rank's share of weights and states; the ends and two layers are whole in bfloat16."""
    tokens = batch * length
    low = 3 * FP32 * LLAMA // ranks + BF16 * (ENDS + LINEARS) + _of_ranks(tokens)
    more = (BF16 + FP32) * LINEARS + FP32 * LLAMA // ranks
    return low, low + more + LAYERS * tokens * _COPIES + SMALL


def zero2(batch: int, length: int, ranks: int = 4) -> Bound:
    """Whole weights in bfloat16, a share of states in float32, buckets of 20 million values."""
    tokens = batch * length
    low = BF16 * LLAMA + 3 * FP32 * LLAMA // ranks + _of_ranks(tokens)
    buckets = 2 * FP32 * 20_000_000
    return low, low + FP32 * LLAMA // ranks + buckets + LAYERS * tokens * _COPIES + SMALL


def zero3(batch: int, length: int, ranks: int = 4) -> Bound:
    """A share of all; weights that were gathered stay, as long as they are fewer than 10^9."""
    tokens = batch * length
    low = (BF16 + 3 * FP32) * LLAMA // ranks + BF16 * ENDS + _of_ranks(tokens)
    more = BF16 * (LLAMA - ENDS) + FP32 * LLAMA // ranks + 2 * FP32 * 20_000_000
    return low, low + more + LAYERS * tokens * _COPIES + SMALL


def trl_grpo(batch: int, length: int, prompt: int = 64) -> Bound:
    """Answers of full length behind their prompts; logits of the answers alone."""
    tokens, answers = batch * (prompt + length), batch * length
    low = 3 * BF16 * LLAMA + LAYERS * tokens * _LAYER_BF16 + 2 * BF16 * answers * VOCABULARY
    return low, low + LAYERS * tokens * _COPIES + 2 * loss(answers) + SMALL


def diffusers_lora(batch: int, size: int) -> Bound:
    """The blocks of the UNet one by one: (channels in, out, part of the pixels, attention)."""
    wide, middle, narrow = 1, 4, 16
    blocks = (
        *((128, 128, wide, True),) * 2,
        *((128, 256, middle, True), (256, 256, middle, True)),
        *((256, 512, narrow, False), (512, 512, narrow, False)),
        *((512, 512, narrow, True), (512, 512, narrow, False)),
        *((1024, 512, narrow, False), (1024, 512, narrow, False), (768, 512, narrow, False)),
        *((768, 256, middle, True), (512, 256, middle, True), (384, 256, middle, True)),
        *((384, 128, wide, True), (256, 128, wide, True), (256, 128, wide, True)),
    )
    weights = kept = copies = 0
    for inputs, outputs, part, attends in blocks:
        pixels = size * size // part
        weights += 9 * outputs * (inputs + outputs) + 512 * outputs
        weights += inputs * outputs if inputs != outputs else 0
        # both norms and both activations keep float32, both convolutions float16
        kept += pixels * (4 + 4 + 2) * (inputs + outputs)
        if attends:
            weights += 20 * outputs**2 + 2 * 768 * outputs
            # four norms, inputs of adapters, queries, keys, values, results, and the gated layer
            kept += pixels * (4 * 4 + 4 * 2 + 4 * 2 + 2 * 2 + 8 * 3) * outputs
            copies += pixels * 24 * outputs
    # the first block needs no gradient before its attention
    kept -= size * size * (4 + 4 + 2) * 2 * 128
    low = BF16 * weights + batch * kept
    return low, low + batch * copies + 2 * SMALL
