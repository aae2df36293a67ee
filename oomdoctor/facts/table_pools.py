"""Registry rows of TensorFlow's and XLA's pools, and of the programs that XLA compiles."""

from __future__ import annotations

from oomdoctor.facts.spec import boolean, count, enum, ratio, size, text

DUMP = "Paste the allocator's dump as well, from 'ran out of memory' to the lines below 'Stats:'."
REPORT = "Paste the whole error, with the lines below 'BufferAssignment stats' and 'Peak buffers'."
START = "Paste the log's lines 'Created device ... with N MB memory' from the start of the run."

ROWS = (
    size(
        "bfc.limit",
        "Limit of the BFC pool: what TensorFlow or JAX took of the card, not the card's size.",
        obtain=DUMP,
        cost_s=5,
    ),
    size("bfc.in_use", "Bytes of the pool in live tensors when it failed.", obtain=DUMP, cost_s=5),
    size("bfc.max_in_use", "Most bytes that were ever in use in the pool."),
    size("bfc.max_alloc", "Largest single allocation of the pool so far."),
    size(
        "bfc.largest_free",
        "Largest free block of the pool, as it states it.",
        obtain=DUMP,
        cost_s=5,
    ),
    size("bfc.unused", "Limit - in use: free in sum, perhaps in pieces (derived)."),
    ratio("bfc.in_use_share", "In use / limit (derived)."),
    boolean("bfc.unused_fits", "The pool's unused bytes exceed the request (derived)."),
    boolean("bfc.warning", "The allocator only warned: the caller goes on without the memory."),
    text("bfc.chunks", "Largest groups of equal chunks, `count x bytes`, one per line."),
    size("bfc.largest_group", "Bytes of all chunks of the size that takes most of the pool."),
    count("bfc.largest_group_chunks", "How many chunks that group has."),
    size(
        "tf.device_memory",
        "Memory of the device that TensorFlow made: what it could reserve.",
        obtain=START,
        cost_s=5,
    ),
    ratio("tf.device_share", "That memory as a share of the card (derived)."),
    size("tf.reserve_first", "First size of a series of reservations that the driver refused."),
    size("tf.reserve_last", "Last size of that series."),
    count("tf.reserve_tries", "How many sizes of that series were refused."),
    boolean("tf.reserve_backoff", "Each size of the series is nine tenths of the one before."),
    ratio("tf.reserve_share", "The first refused reservation as a share of the card (derived)."),
    text("tf.node", "Node of the graph whose tensor could not be allocated."),
    boolean("fault.handle_failed", "cuDNN, cuBLAS or cuSOLVER could not start in a process."),
    enum("fault.handle_in", "Library in which it failed.", ("tensorflow", "xla", "other")),
    boolean("fault.handle_room", "It could not start although the process saw most memory free."),
    boolean("tf.cudnn_version_clash", "cuDNN was loaded in another version than it was built for."),
    size("xla.parameters", "Arguments of the compiled program (weights, states, batch)."),
    size("xla.constants", "Constants of the compiled program."),
    size("xla.outputs", "Results that may be live while it runs (maybe_live_out)."),
    size(
        "xla.temp",
        "Temporary buffers of the compiled program: the bytes that the error line asks for.",
        obtain=REPORT,
        cost_s=5,
    ),
    size("xla.total", "All that the compiled program needs at once.", obtain=REPORT, cost_s=5),
    size("xla.fragmentation", "Padding and holes in XLA's plan of the buffers."),
    ratio("xla.fragmentation_share", "Their share of the total."),
    text(
        "xla.buffers",
        "Largest buffers at the peak, `bytes | operator | shape`, one per line.",
        obtain=REPORT,
        cost_s=5,
    ),
    size("xla.largest_buffer", "The largest of them."),
    ratio("xla.scores_share", "Share of them in the shape of attention scores (tokens squared)."),
    ratio("xla.pair_share", "Share of them that hold a vector per pair of tokens (proteins)."),
    ratio("xla.vocab_share", "Share of them that are logits: last dimension a vocabulary."),
    ratio("xla.entry_share", "Share of them that are arguments of the program."),
    size("xla.hbm_used", "What a program needs of a TPU's memory, by the compiler."),
    size("xla.limit", "What XLA's compiler was told that a program may use."),
    size("xla.needed", "What the program needs at least, after rematerialization."),
    size("xla.excess", "What the program needs beyond the whole device (derived)."),
    ratio("xla.parameter_share", "Arguments and constants / total (derived)."),
    ratio("xla.temp_share", "Temporary buffers / total (derived)."),
)
