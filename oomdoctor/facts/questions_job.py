"""Questions about the job: who is on the card, what runs, with which settings."""

from __future__ import annotations

from oomdoctor.facts.question import TRAINS, Choice, Question, yes_no

ON_CARD = ("oom.seen!=false", "host.killed!=true", "host.oom_kill!=true", "host.shm_error!=true")

ROWS = (
    Question(
        id="card",
        text="Who is on the card? (nvidia-smi shortly before or while it fails)",
        kind="choice",
        choices=(
            Choice(
                "only this job, or nobody else",
                ("gpu.process_rows=1", "gpu.foreign=0 B", "balance.foreign_low_share=0"),
                0.66,
            ),
            Choice(
                "other programs hold a fifth of the card or more",
                ("gpu.process_rows=2", "gpu.foreign_share=0.2", "balance.foreign_low_share=0.2"),
                0.12,
            ),
            Choice(
                "several processes of my own program, each with gigabytes",
                (
                    "gpu.process_rows=3",
                    "gpu.same_program_rows=3",
                    "gpu.small_rows=0",
                    "balance.foreign_low_share=0.2",
                ),
                0.06,
            ),
            Choice(
                "memory is in use, but no process is listed",
                ("gpu.process_table_empty=true", "balance.foreign_low_share=0.2"),
                0.05,
            ),
            Choice(
                "several small rows (0.3 to 0.6 GB) of my program on GPU 0",
                ("gpu.small_rows=3", "gpu.small_rows_only_gpu0=true"),
                0.03,
            ),
            Choice("one card is full, the others are nearly empty", ("gpu.imbalance=0.6",), 0.05),
            Choice("a slice of a card (MIG)", ("gpu.mig=true",), 0.03),
        ),
        seconds=9,
        settled=("gpu.foreign", "gpu.process_rows", "gpu.process_table_empty", "oom.capacity"),
        only_if=ON_CARD,
        answered=0.8,
        hint="you may paste the whole table: nvidia-smi",
    ),
    Question(
        id="runs",
        text="What runs on the card?",
        kind="choice",
        choices=(
            Choice(
                "full fine-tuning or pretraining",
                ("train.full_finetune=true", "lora.on=false"),
                0.25,
            ),
            Choice(
                "LoRA, QLoRA or another adapter",
                ("lora.on=true", "train.full_finetune=false"),
                0.25,
            ),
            Choice(
                "vision training (classification, detection, segmentation)",
                ("job.task=vision",),
                0.14,
            ),
            Choice("diffusion training or image generation", ("job.task=diffusion",), 0.08),
            Choice(
                "preference or reinforcement training (DPO, GRPO, PPO)", ("job.task=dpo",), 0.05
            ),
            Choice(
                "an inference script (generate, chat, predict)",
                ("job.task=generate", "train.inference=true"),
                0.13,
            ),
            Choice(
                "a serving engine (vLLM, SGLang, TGI)",
                ("job.task=serve", "job.framework=vllm"),
                0.08,
            ),
            Choice("merging or converting weights", ("job.task=merge",), 0.02),
        ),
        seconds=8,
        settled=("job.task", "train.full_finetune", "lora.on"),
        only_if=ON_CARD,
        hint="the config or command line may be pasted instead",
    ),
    Question(
        id="size",
        text="Which model, which card, which batch and length?",
        kind="words",
        choices=(
            Choice("the states of training exceed the card", ("states.total_share=1.3",), 0.15),
            Choice("the weights alone nearly fill it", ("states.weights_share=0.9",), 0.1),
            Choice("there is room for the states", ("states.total_share=0.4",), 0.75),
        ),
        seconds=15,
        settled=("model.name", "model.params", "states.total"),
        only_if=ON_CARD,
        answered=0.75,
        hint="for example: Qwen2.5-7B, RTX 4090 24GB, batch 4, seq 2048",
    ),
    Question(
        id="keeps",
        text="Does the code keep results from step to step?",
        kind="choice",
        choices=(
            Choice(
                "outputs or predictions are appended to a list or dict",
                ("code.appends_outputs=true", "code.keeps_device_tensors=true"),
                0.15,
            ),
            Choice(
                "the loss tensor is added up or logged (total += loss)",
                ("code.loss_accumulated=true",),
                0.12,
            ),
            Choice("retain_graph=True or create_graph=True", ("code.retain_graph=true",), 0.04),
            Choice(
                "no, only numbers (.item()) are kept",
                (
                    "code.appends_outputs=false",
                    "code.loss_accumulated=false",
                    "code.retain_graph=false",
                ),
                0.69,
            ),
        ),
        seconds=12,
        settled=("code.appends_outputs", "code.loss_accumulated", "code.keeps_device_tensors"),
        only_if=("growth.monotone!=false", "run.first_step!=true", "run.phase!=load"),
        answered=0.6,
    ),
    Question(
        id="metrics",
        text="Does evaluation compute metrics from all predictions (compute_metrics)?",
        kind="choice",
        choices=yes_no(
            yes=("eval.compute_metrics=true",), no=("eval.compute_metrics=false",), share=0.5
        ),
        seconds=6,
        settled=("eval.compute_metrics",),
        only_if=("run.phase=eval",),
    ),
    Question(
        id="no-grad",
        text="Does evaluation or inference run under torch.no_grad() or inference_mode()?",
        kind="choice",
        choices=yes_no(
            yes=("eval.no_grad=true", "code.eval_without_no_grad=false"),
            no=("eval.no_grad=false", "code.eval_without_no_grad=true"),
            share=0.8,
        ),
        seconds=6,
        settled=("eval.no_grad",),
        only_if=("run.phase!=backward", "run.phase!=optimizer", "run.phase!=load"),
        answered=0.7,
    ),
    Question(
        id="checkpointing",
        text="Is gradient (activation) checkpointing on?",
        kind="choice",
        choices=yes_no(
            yes=("train.grad_checkpointing=true",),
            no=("train.grad_checkpointing=false",),
            share=0.4,
        ),
        seconds=6,
        settled=("train.grad_checkpointing",),
        only_if=TRAINS,
    ),
    Question(
        id="attention",
        text="Which attention is in use?",
        kind="choice",
        choices=(
            Choice("flash attention", ("attention.impl=flash2",), 0.3),
            Choice("PyTorch's own (sdpa)", ("attention.impl=sdpa",), 0.45),
            Choice("plain or eager attention", ("attention.impl=eager",), 0.2),
            Choice("xformers", ("attention.impl=xformers",), 0.05),
        ),
        seconds=10,
        settled=("attention.impl",),
        answered=0.55,
        hint="print(model.config._attn_implementation)",
    ),
    Question(
        id="ranks",
        text="How many GPUs work together, and how?",
        kind="choice",
        choices=(
            Choice("one", ("dist.world_size=1", "dist.kind=none"), 0.5),
            Choice(
                "several, each with the whole model (DDP)",
                ("dist.world_size=2", "dist.kind=ddp"),
                0.2,
            ),
            Choice(
                "several, in one process (nn.DataParallel)", ("gpu.count=2", "dist.kind=dp"), 0.05
            ),
            Choice("sharded: FSDP", ("dist.world_size=2", "dist.kind=fsdp2"), 0.08),
            Choice("sharded: ZeRO-3", ("dist.world_size=2", "dist.kind=zero3"), 0.06),
            Choice("ZeRO-1 or ZeRO-2", ("dist.world_size=2", "dist.kind=zero2"), 0.05),
            Choice(
                "one process, device_map over several cards",
                ("gpu.count=2", "dist.device_map=auto"),
                0.06,
            ),
        ),
        seconds=8,
        settled=("dist.world_size", "dist.kind"),
        only_if=ON_CARD,
    ),
    Question(
        id="graphs",
        text="Are CUDA graphs in use (torch.compile with reduce-overhead, graphed callables)?",
        kind="choice",
        choices=yes_no(
            yes=("compile.cudagraphs=true",), no=("compile.cudagraphs=false",), share=0.1
        ),
        seconds=6,
        settled=("compile.cudagraphs",),
        only_if=ON_CARD,
        answered=0.6,
    ),
    Question(
        id="engine",
        text="Does an inference engine (vLLM, SGLang) share the card with the trainer?",
        kind="choice",
        choices=yes_no(
            yes=("gen.colocated_engine=true",), no=("gen.colocated_engine=false",), share=0.07
        ),
        seconds=6,
        settled=("gen.colocated_engine",),
        only_if=(*ON_CARD, *TRAINS),
    ),
    Question(
        id="expandable",
        text="Is PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True set?",
        kind="choice",
        choices=yes_no(
            yes=("alloc.expandable_segments=true",),
            no=("alloc.expandable_segments=false",),
            share=0.15,
        ),
        seconds=6,
        settled=("alloc.expandable_segments",),
        only_if=ON_CARD,
        hint="echo $PYTORCH_CUDA_ALLOC_CONF",
    ),
)
