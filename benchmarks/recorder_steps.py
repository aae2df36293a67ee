"""Measure what recording costs in a training step: the same process, with and without, in turn.

    python benchmarks/recorder_steps.py [--device cpu] [--rounds 8] [--steps 20] [--check]
    python -m oomdoctor.virtual --python PYTHON benchmarks/recorder_steps.py --device cuda

CPU time of the process counts: wall time doubles on a loaded machine. The order changes from round
to round, and the median of the rounds' differences is told. On a virtual card kernels take no time,
so that a step is what Python and the allocator make of it: the worst case for a recorder.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import statistics
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from oomdoctor.inject.recording.whole import Recording

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_SHARE = 0.02
LOOPS = ("loop", "trainer")


def loop(device: str) -> Callable[[int], None]:
    """Return what makes so many steps of a plain loop."""
    torch = importlib.import_module("torch")
    model = _llama(device)
    optimizer = torch.optim.AdamW(model.parameters())
    ids = torch.ones((4, 128), dtype=torch.long, device=device)

    def run(steps: int) -> None:
        for _ in range(steps):
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    return run


def trainer(device: str) -> Callable[[int], None]:
    """Return what makes so many steps of a Trainer."""
    torch = importlib.import_module("torch")
    transformers = importlib.import_module("transformers")
    transformers.utils.logging.set_verbosity_error()
    row = torch.ones(128, dtype=torch.long)
    rows = [{"input_ids": row, "labels": row}] * 4096
    model = _llama(device)

    def run(steps: int) -> None:
        arguments = transformers.TrainingArguments(
            output_dir=tempfile.gettempdir(),
            per_device_train_batch_size=4,
            max_steps=steps,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            use_cpu=device == "cpu",
        )
        transformers.Trainer(model=model, args=arguments, train_dataset=rows).train()

    return run


def _llama(device: str) -> Any:  # noqa: ANN401 - a model of transformers
    transformers = importlib.import_module("transformers")
    config = transformers.LlamaConfig(
        vocab_size=4096,
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=8,
    )
    return transformers.LlamaForCausalLM(config).to(device).train()


def step_s(run: Callable[[int], None], steps: int, folder: str | None) -> float:
    """Return the CPU seconds of a step, recorded into a folder or not."""
    gc.collect()
    recording = None if folder is None else Recording(folder, os.environ)
    run(2)
    began = time.process_time()
    run(steps)
    used = time.process_time() - began
    if recording is not None:
        recording.stop()
    return used / steps


def measured(run: Callable[[int], None], rounds: int, steps: int) -> tuple[float, float]:
    """Return the seconds of a step without recording, and the median of what it adds."""
    plain, added = [], []
    run(5)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            order = (None, folder) if number % 2 else (folder, None)
            taken = {where: step_s(run, steps, where) for where in order}
            plain.append(taken[None])
            added.append(taken[folder] - taken[None])
    return statistics.median(plain), statistics.median(added)


def main() -> int:
    """Print the figures; with --check exit 1 where one is above what is promised."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    worst = 0.0
    for name, make in zip(LOOPS, (loop, trainer), strict=True):
        plain, added = measured(make(asked.device), asked.rounds, asked.steps)
        worst = max(worst, added / plain)
        figures = f"{1000 * plain:8.2f} ms CPU a step, recording adds {1000 * added:6.3f} ms"
        print(f"{name:8}{figures} ({100 * added / plain:5.2f} %)")
    return 1 if asked.check and worst > MOST_SHARE else 0


if __name__ == "__main__":
    sys.exit(main())
