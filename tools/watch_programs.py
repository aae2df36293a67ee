"""Programs whose memory grows, and programs that only look so: `python watch_programs.py NAME`.

What they do is what training programs do, in small. `tools/record_watch.py` runs them: those in
CARD on a virtual card, all others on the host. Each step takes a while, as real ones do.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STEP_S = 0.03
WORDS, WIDTH, LAYERS = 32000, 1024, 4
ROWS, LENGTH = 8, 256


class Model(nn.Module):
    """A language model without attention: what it holds is what matters here."""

    def __init__(self, words: int = WORDS, width: int = WIDTH) -> None:
        """Make the layers."""
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        parts = (nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(LAYERS))
        self.layers = nn.Sequential(*parts)
        self.head = nn.Linear(width, words)

    def forward(self, input_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits and the last hidden states."""
        hidden = self.layers(self.embedding(input_ids))
        return self.head(hidden), hidden


class Training:
    """A model with its optimizer on a card or on the host."""

    def __init__(self, device: str, words: int = WORDS, width: int = WIDTH) -> None:
        """Put the model where it is trained."""
        self.device = device
        self.words = words
        self.model = Model(words, width).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)

    def batch(self, length: int = LENGTH, rows: int = ROWS) -> torch.Tensor:
        """Return some rows of made-up tokens."""
        return torch.randint(0, self.words, (rows, length)).to(self.device)

    def loss(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss and the hidden states of a pass."""
        logits, hidden = self.model(ids)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten())
        return loss, hidden

    def step(self, ids: torch.Tensor) -> torch.Tensor:
        """Make a whole step; return the hidden states."""
        loss, hidden = self.loss(ids)
        loss.backward()
        self.finish()
        return hidden

    def finish(self) -> None:
        """Step the optimizer."""
        self.optimizer.step()
        self.optimizer.zero_grad()
        time.sleep(STEP_S)

    @torch.no_grad()
    def evaluate(self, batches: int) -> list[torch.Tensor]:
        """Return the hidden states of an evaluation, all kept to its end."""
        self.model.eval()
        kept = [self.model(self.batch())[1] for _ in range(batches)]
        time.sleep(5 * STEP_S)
        self.model.train()
        return kept


def graph_of_losses() -> None:
    """Leak: a sum for the log is never detached, and holds what its backward pass would need."""
    run, total = Training("cuda"), torch.zeros((), device="cuda")
    for _ in range(500):
        loss, hidden = run.loss(run.batch())
        total = total + hidden.pow(2).mean()
        loss.backward()
        run.finish()


def evaluation_outputs() -> None:
    """Leak: the outputs of each evaluation go into a list that nobody empties."""
    run, history = Training("cuda"), []
    for number in range(1, 501):
        run.step(run.batch())
        if number % 20 == 0:
            history += run.evaluate(24)


def outputs_of_steps() -> None:
    """Leak: a part of each step's output is kept on the card for a metric at the end."""
    run, predictions = Training("cuda"), []
    rng = random.Random(5)
    for _ in range(500):
        ids = run.batch(rng.randint(64, 512))
        predictions.append(run.step(ids).detach())


def host_list() -> None:
    """Leak: batches are collected on the host."""
    run, seen = Training("cpu", words=1000, width=128), []
    for _ in range(320):
        run.step(run.batch(64))
        seen.append(torch.ones(random.randint(1, 3) << 20))


class Rows(Dataset[int]):
    """Rows as Python objects, whose counts of references lie beside them."""

    def __init__(self, count: int) -> None:
        """Make the rows."""
        self.rows = [f"{number:08d}" * 12 for number in range(count)]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.rows)

    def __getitem__(self, index: int) -> int:
        """Return one as a number."""
        return len(self.rows[index])


def loader_workers() -> None:
    """Leak: each worker of a loader copies the pages of the rows that it touches."""
    run = Training("cpu", words=1000, width=128)
    loader = DataLoader(Rows(7_200_000), batch_size=12_000, num_workers=2)
    for _ in loader:
        run.step(run.batch(16))
        time.sleep(12 * STEP_S)


def longer_batches() -> None:
    """No leak: rows of any length, now and then the longest so far."""
    run, rng = Training("cuda"), random.Random(11)
    for _ in range(400):
        run.step(run.batch(min(1024, int(rng.lognormvariate(5, 0.6)) + 1)))


def warm_up() -> None:
    """No leak: an average of the weights from step 40 on, a second head from step 80 on."""
    run = Training("cuda")
    average: nn.Module | None = None
    for number in range(400):
        run.step(run.batch())
        if number == 40:
            average = Model().to("cuda")
        if number == 80:
            head = nn.Linear(WIDTH, WORDS).to("cuda")
            run.optimizer.add_param_group({"params": list(head.parameters())})
    del average


def evaluation() -> None:
    """No leak: an evaluation every 25 steps holds much, and lets go of it."""
    run = Training("cuda")
    for number in range(1, 401):
        run.step(run.batch())
        if number % 25 == 0:
            run.evaluate(40)


def checkpoints() -> None:
    """No leak: a copy of all weights is made and saved every 30 steps."""
    run = Training("cpu", words=20000, width=256)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, 301):
            run.step(run.batch(8, rows=2))
            if number % 30 == 0:
                copy = {name: one.clone() for name, one in run.model.state_dict().items()}
                torch.save(copy, Path(folder) / "model.pt")


def token_cache() -> None:
    """No leak: tokenised rows are kept from the first epoch on; there are 120."""
    run, cache = Training("cpu", words=1000, width=128), {}
    for number in range(600):
        row = number % 120
        if row not in cache:
            cache[row] = torch.ones(256, 1024)
        run.step(run.batch(32))


def epoch_saw() -> None:
    """No leak: metrics are gathered on the card through an epoch, and let go at its end."""
    run, metrics = Training("cuda"), []
    for number in range(1, 401):
        metrics.append(run.step(run.batch()).detach())
        if number % 50 == 0:
            metrics.clear()


def accumulation() -> None:
    """No leak: gradients are held through four passes, and the log keeps numbers alone."""
    run, log = Training("cuda"), []
    for _ in range(300):
        for _ in range(4):
            loss, _ = run.loss(run.batch(random.randint(64, 256)))
            (loss / 4).backward()
        log.append(float(loss.detach().float().sum() * 0))
        run.finish()


def generation() -> None:
    """No leak: a cache of keys and values grows through each text, and ends with it."""
    run = Training("cuda")
    run.model.eval()
    with torch.no_grad():
        for text in range(40):
            cache: list[torch.Tensor] = []
            for _ in range(40 + text % 7 * 10):
                cache.append(run.model(run.batch(16))[1].repeat(1, 40, 1))
                time.sleep(STEP_S)


CARD: dict[str, Callable[[], None]] = {
    "graph-of-losses": graph_of_losses,
    "evaluation-outputs": evaluation_outputs,
    "outputs-of-steps": outputs_of_steps,
    "longer-batches": longer_batches,
    "warm-up": warm_up,
    "evaluation": evaluation,
    "epoch-saw": epoch_saw,
    "accumulation": accumulation,
    "generation": generation,
}
HOST: dict[str, Callable[[], None]] = {
    "host-list": host_list,
    "loader-workers": loader_workers,
    "checkpoints": checkpoints,
    "token-cache": token_cache,
}


def names() -> Iterator[str]:
    """Yield the names of all programs."""
    yield from CARD
    yield from HOST


if __name__ == "__main__":
    torch.set_num_threads(1)
    {**CARD, **HOST}[sys.argv[1]]()
