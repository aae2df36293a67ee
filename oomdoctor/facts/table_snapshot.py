"""Registry rows of a memory snapshot: what it shows at the failed request, else at the peak."""

from __future__ import annotations

from oomdoctor.facts.spec import boolean, count, ratio, size, text

ROWS = (
    boolean(
        "snapshot.fragmented",
        "A request failed although as much was free, only not in one piece that it could have.",
    ),
    size("snapshot.largest_hole", "The largest free piece that the failed request could have had."),
    size("snapshot.inactive_split", "Free pieces of segments that a held block keeps in use."),
    size("snapshot.held", "Bytes of all blocks that somebody held."),
    ratio("snapshot.activation_share", "Share of them that the forward pass asked for."),
    ratio("snapshot.gradient_share", "Share of them that the backward pass asked for."),
    ratio("snapshot.optimizer_share", "Share of them that an optimizer asked for."),
    ratio("snapshot.weights_share", "Share of them that was made or moved as weights."),
    ratio(
        "snapshot.earlier_share", "Share of them from before the recording, whose use is not known."
    ),
    size("snapshot.loaded", "Bytes of them that reading a checkpoint asked for."),
    ratio("snapshot.loss_share", "Share of them that functions of a loss asked for."),
    ratio(
        "snapshot.leak_share",
        "Share of them that lines hold which keep more in every step; 0 where no line does.",
    ),
    size("snapshot.leak_per_step", "Bytes that these lines keep more in every step."),
    count("snapshot.leak_blocks", "Blocks that the first of these lines has piled up."),
    text("snapshot.leak_frame", "The user's own line of the first of them: `path:line function`."),
    text("snapshot.leak_stack", "Its calls, outermost first: `path:line function`."),
    boolean(
        "snapshot.leak_graph",
        "Two lines or more of the forward pass pile up together, as those of a kept graph do.",
    ),
)
