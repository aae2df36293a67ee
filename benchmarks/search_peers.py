"""What other tools find for the simulated jobs, by their own code.

    pip install accelerate lightning batch-probe        (and torch's CPU build)
    python benchmarks/search_peers.py 400

It is run by the interpreter that has them, and prints a JSON object by tool: for each job the
answer in steps of the axis, and the trials as pairs of steps and whether they fitted. Every tool is
given the whole range where it takes one, and no safety margin, so that what it found is compared.
"""

from __future__ import annotations

import gc
import json
import logging
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.search_jobs import VALUES, jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.search_jobs import Trials

    Finder = Callable[[Trials], int]

DEFAULT_START = 128
# from 2 on, every doubling and every halving of 4,096 values: a limit must not be what ends it
MOST_TRIALS = 64


def attempt(trials: Trials, steps: int) -> int:
    """Run a trial; what torch raises when a card is full, if it does not fit."""
    if not trials.fits(steps):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    return steps


def accelerate_from(start: int) -> Finder:
    """Return accelerate's search from a batch size down."""
    from accelerate.utils import find_executable_batch_size

    def find(trials: Trials) -> int:
        def train(batch_size: int) -> int:
            return attempt(trials, batch_size)

        try:
            found: int = find_executable_batch_size(train, starting_batch_size=start)()
        except RuntimeError:  # it reached zero
            return 0
        return found

    return find


def lightning(mode: str) -> Finder:
    """Return Lightning's search, one step a trial."""
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.tuner import Tuner
    from torch.utils.data import DataLoader, IterableDataset

    class Endless(IterableDataset[Any]):
        def __iter__(self) -> Iterator[torch.Tensor]:
            while True:
                yield torch.zeros(1)

    class Model(LightningModule):
        def __init__(self, trials: Trials) -> None:
            super().__init__()
            self.batch_size = 2
            self.weight = torch.nn.Parameter(torch.zeros(1))
            self._trials = trials

        def training_step(self, _batch: torch.Tensor, _number: int) -> torch.Tensor:
            attempt(self._trials, self.batch_size)
            return self.weight.sum()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

        def train_dataloader(self) -> DataLoader[Any]:
            return DataLoader(Endless(), batch_size=None)

    def find(trials: Trials) -> int:
        with tempfile.TemporaryDirectory() as folder:
            trainer = Trainer(
                accelerator="cpu",
                max_epochs=1,
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                default_root_dir=folder,
            )
            found = Tuner(trainer).scale_batch_size(
                Model(trials),
                mode=mode,
                steps_per_trial=1,
                max_trials=MOST_TRIALS,
                margin=0.0,
                max_val=2 * VALUES,
            )
        return int(found or 0)

    return find


def batch_probe(trials: Trials) -> int:
    """Return batch-probe's search over the whole range."""
    from batch_probe import probe

    def work(steps: int) -> None:
        attempt(trials, steps)

    found: int = probe(
        work,
        low=1,
        high=VALUES,
        headroom=0.0,
        backend="torch",
        verbose=False,
    )
    return found


def tools() -> dict[str, Finder]:
    """Return the tools by what the table calls them."""
    ours = {name: version(name) for name in ("accelerate", "lightning", "batch-probe")}
    probe = f"accelerate {ours['accelerate']} `find_executable_batch_size`"
    return {
        f"{probe} from {DEFAULT_START}": accelerate_from(DEFAULT_START),
        f"{probe} from {VALUES:,}": accelerate_from(VALUES),
        f"lightning {ours['lightning']} `BatchSizeFinder` power": lightning("power"),
        f"lightning {ours['lightning']} `BatchSizeFinder` binsearch": lightning("binsearch"),
        f"batch-probe {ours['batch-probe']} `probe`": batch_probe,
    }


def main() -> None:
    """Run every tool on the first so many jobs."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    found: dict[str, list[Any]] = {}
    finders = tools()
    gc.freeze()  # the tools collect garbage before each trial, and what was imported is none
    for name, find in finders.items():
        rows = found[name] = []
        for job in jobs(int(sys.argv[1])):
            trials = job.trials()
            rows.append([find(trials), trials.made])
        print(name, sum(len(made) for _, made in rows), file=sys.stderr)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
