"""Scripts that touch a card in a loader's worker, or let all ranks take the default card."""

from __future__ import annotations

import pytest

from oomdoctor.configs.reader import read_config

SET = "from torch.utils.data import Dataset\nclass Rows(Dataset):\n    def {method}(self, i):\n"
RANKS = (
    "import torch.distributed as dist\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    "dist.init_process_group('nccl')\n"
)


def said(text: str, key: str) -> object:
    readings = read_config(text, name="train.py")
    return next((fact.value for one in readings for fact in one.facts if fact.key == key), None)


@pytest.mark.parametrize(
    "line",
    [
        "x.cuda()",
        "x.to('cuda')",
        "x.to('cuda:1')",
        "torch.zeros(4, device='cuda')",
        "x.to(torch.device('cuda:0'))",
        "torch.cuda.set_device(0)",
    ],
)
def test_a_data_set_that_puts_rows_on_a_card_is_seen(line: str) -> None:
    text = SET.format(method="__getitem__") + f"        return {line}\n"

    assert said(text, "code.cuda_in_workers") is True


@pytest.mark.parametrize(
    "text",
    [
        SET.format(method="__getitem__") + "        return torch.tensor(self.rows[i])\n",
        SET.format(method="prepare") + "        return x.cuda()\n",
        "class Net(torch.nn.Module):\n    def __getitem__(self, i):\n        return x.cuda()\n",
        "loader = DataLoader(rows, num_workers=4)\nfor x in loader:\n    x = x.cuda()\n",
        "def collate(rows):\n    return torch.stack(rows).cuda()\n",
    ],
)
def test_code_that_no_worker_runs_may_use_the_card(text: str) -> None:
    assert said(text, "code.cuda_in_workers") is None


@pytest.mark.parametrize("argument", ["collate_fn=collate", "worker_init_fn=collate"])
def test_functions_handed_to_a_loader_run_in_its_workers(argument: str) -> None:
    text = (
        "def collate(rows):\n    return torch.stack(rows).cuda()\n"
        f"loader = DataLoader(rows, num_workers=4, {argument})\n"
    )

    assert said(text, "code.cuda_in_workers") is True


def test_a_lambda_handed_to_a_loader_runs_in_its_workers() -> None:
    text = "loader = DataLoader(rows, collate_fn=lambda rows: torch.stack(rows).cuda())\n"

    assert said(text, "code.cuda_in_workers") is True


@pytest.mark.parametrize("place", ["net.to('cuda')", "net.cuda()", "net.to(torch.device('cuda'))"])
def test_ranks_that_nowhere_choose_a_card_share_the_default_one(place: str) -> None:
    assert said(f"{RANKS}model = DDP({place})\n", "code.same_device") is True


@pytest.mark.parametrize(
    "chosen",
    [
        "torch.cuda.set_device(int(os.environ['LOCAL_RANK']))\nmodel = DDP(net.to('cuda'))\n",
        "model = DDP(net.to('cuda'), device_ids=[0])\n",
        "model = DDP(net.to(f'cuda:{rank}'))\n",
        "model = DDP(net.to(torch.device('cuda', rank)))\n",
        "model = DDP(net.cuda(rank))\n",
        "os.environ['CUDA_VISIBLE_DEVICES'] = str(rank)\nmodel = DDP(net.cuda())\n",
    ],
)
def test_ranks_that_choose_their_card_are_left_alone(chosen: str) -> None:
    assert said(RANKS + chosen, "code.same_device") is None


def test_a_single_process_may_use_the_default_card() -> None:
    assert said("import torch\nmodel = net.to('cuda')\n", "code.same_device") is None
