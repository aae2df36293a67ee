"""What a loader worker gets, holds and may not do."""

from __future__ import annotations

import multiprocessing
import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.proofs.proving import proves
from tests.proofs.tiny import arguments, trainer

if TYPE_CHECKING:
    from pathlib import Path

torch = pytest.importorskip("torch")


class Where(torch.utils.data.Dataset):
    """Samples that say in which process they were made, and on which device."""

    def __init__(self, number: int = 64) -> None:
        """Be of this length."""
        self.number = number

    def __len__(self) -> int:
        """Return the number of samples."""
        return self.number

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return the process's number as the one token of a sample."""
        made = torch.tensor([os.getpid()])
        return {"input_ids": made, "labels": made, "on_cpu": made.device.type == "cpu"}


@proves("workers-zero-slow")
@pytest.mark.parametrize(("workers", "elsewhere"), [(0, False), (2, True)])
def test_samples_are_made_in_the_training_process_without_workers(
    workers: int, *, elsewhere: bool, tmp_path: Path
) -> None:
    """With dataloader_num_workers=0, the default, samples are made by the training process."""
    assert arguments(tmp_path).dataloader_num_workers == 0
    made = trainer(tmp_path, given={"train_dataset": Where()}, dataloader_num_workers=workers)
    batch = next(iter(made.get_train_dataloader()))
    makers = set(batch["input_ids"].flatten().tolist())
    assert (os.getpid() not in makers) is elsewhere


@proves("workers-too-many-host")
@pytest.mark.parametrize(("workers", "factor"), [(1, None), (2, None), (2, 4)])
def test_each_worker_holds_two_batches_ready(workers: int, factor: int | None) -> None:
    """Before the first batch is used, workers times prefetch_factor (2) are asked for."""
    loader = torch.utils.data.DataLoader(
        Where(), batch_size=1, num_workers=workers, prefetch_factor=factor
    )
    batches = iter(loader)
    assert batches._tasks_outstanding == workers * (factor or 2)
    batches._shutdown_workers()


@proves("workers-cuda-context", "workers-too-many-host")
def test_a_worker_hands_over_tensors_of_host_memory() -> None:
    """What a worker returns lies in shared host memory: no GPU memory is involved."""
    loader = torch.utils.data.DataLoader(Where(4), batch_size=2, num_workers=1)
    batch = next(iter(loader))
    assert batch["input_ids"].device.type == "cpu"
    assert batch["input_ids"].is_shared()


def _touch_cuda(answers: Any) -> None:
    """Do in a forked child what `.cuda()` does first."""
    torch.cuda._lazy_init.__globals__["_is_in_bad_fork"] = lambda: True
    try:
        torch.cuda._lazy_init()
    except RuntimeError as error:
        answers.put(str(error))


@proves("workers-cuda-context")
def test_cuda_cannot_be_started_again_in_a_forked_worker() -> None:
    """In a fork of a process that used CUDA, any CUDA call raises and names spawn as the way."""
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_touch_cuda, args=(answers,))
    child.start()
    said = answers.get()
    child.join()
    assert "Cannot re-initialize CUDA in forked subprocess" in said
    assert "spawn" in said


class Listed(torch.utils.data.Dataset):
    """A data set that lives in a list of the parent."""

    def __init__(self) -> None:
        """Make the list."""
        self.content = [torch.tensor([n]) for n in range(8)]

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.content)

    def __getitem__(self, index: int) -> Any:
        """Return where the list lies in this process."""
        return torch.tensor([id(self.content), int(self.content[index])])


@proves("workers-too-many-host")
def test_a_forked_worker_inherits_the_data_set_without_a_copy() -> None:
    """A forked worker sees the parent's list at the parent's address: pages copied when touched."""
    data = Listed()
    loader = torch.utils.data.DataLoader(
        data, batch_size=4, num_workers=1, multiprocessing_context="fork"
    )
    places = {int(row[0]) for batch in loader for row in batch}
    assert places == {id(data.content)}
