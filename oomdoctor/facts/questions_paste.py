"""Questions for a paste: the message, the traceback, the config; read like any other input."""

from __future__ import annotations

from oomdoctor.facts.question import Choice, Question

ROWS = (
    Question(
        id="message",
        text="Can you paste the complete error message (with 'Tried to allocate')?",
        kind="paste",
        choices=(
            Choice(
                "its own tensors fill the card",
                ("balance.allocated_share=0.92", "balance.foreign_low_share=0"),
                0.60,
            ),
            Choice("others hold part of the card", ("balance.foreign_low_share=0.35",), 0.15),
            Choice(
                "a large part of the cache is unused",
                (
                    "torch.reserved_unallocated=4 GiB",
                    "oom.requested=1 GiB",
                    "torch.reserved=20 GiB",
                    "balance.foreign_low_share=0",
                    "oom.request_fits_free=false",
                ),
                0.15,
            ),
            Choice("one request is larger than the card", ("balance.request_share=1.3",), 0.10),
        ),
        seconds=15,
        settled=("oom.requested", "torch.allocated", "oom.capacity"),
        only_if=("oom.seen!=false", "host.killed!=true", "host.oom_kill!=true"),
        answered=0.42,
    ),
    Question(
        id="traceback",
        text="Can you paste the traceback?",
        kind="paste",
        choices=(
            Choice("a layer of the model", ("run.phase=forward",), 0.4),
            Choice("the loss", ("run.phase=loss",), 0.1),
            Choice("backward", ("run.phase=backward",), 0.2),
            Choice("evaluation", ("run.phase=eval",), 0.1),
            Choice("loading", ("run.phase=load",), 0.15),
            Choice("the optimizer", ("run.phase=optimizer",), 0.05),
        ),
        seconds=18,
        settled=("trace.stack",),
        answered=0.35,
    ),
    Question(
        id="config",
        text="Can you paste the config, the command line or the training loop?",
        kind="paste",
        choices=(
            Choice("checkpointing is off", ("train.grad_checkpointing=false",), 0.4),
            Choice("outputs are collected", ("code.appends_outputs=true",), 0.08),
            Choice("the loss tensor is summed", ("code.loss_accumulated=true",), 0.07),
            Choice("full training", ("train.full_finetune=true", "states.total_share=1.2"), 0.1),
            Choice(
                "nothing of note",
                ("code.appends_outputs=false", "code.loss_accumulated=false"),
                0.35,
            ),
        ),
        seconds=25,
        settled=("job.text",),
        answered=0.4,
    ),
)
