"""What is put off answers what is plain, and gives way to the real module for the rest."""

import subprocess
import sys

import pytest

pytest.importorskip("torch")


def printed(code: str) -> str:
    """Return what code prints in a process where modules are put off."""
    start = "import torch\nfrom oomdoctor.worker.later import put_off\nput_off()\n"
    done = subprocess.run(
        [sys.executable, "-c", start + code], capture_output=True, text=True, check=True
    )
    return done.stdout.split("\n", 1)[0]


def test_an_optimizer_is_made_and_steps_without_the_compiler() -> None:
    code = (
        "import sys\n"
        "weight = torch.nn.Parameter(torch.ones(2))\n"
        "weight.sum().backward()\n"
        "torch.optim.SGD([weight], lr=1.0).step()\n"
        "print('torch._dynamo.eval_frame' in sys.modules, weight.tolist())\n"
    )
    assert printed(code) == "False [0.0, 0.0]"


def test_a_checkpointed_part_is_computed_again_without_the_compiler() -> None:
    code = (
        "import sys\n"
        "from torch.utils.checkpoint import checkpoint\n"
        "weight = torch.ones(2, requires_grad=True)\n"
        "checkpoint(lambda one: one.exp().sum(), weight, use_reentrant=False).backward()\n"
        "print('torch._dynamo.eval_frame' in sys.modules, weight.grad.shape)\n"
    )
    assert printed(code) == "False torch.Size([2])"


def test_what_compiles_gets_the_real_compiler() -> None:
    code = (
        "import torch._dynamo.eval_frame\n"
        "double = torch.compile(lambda one: one * 2, backend='eager')\n"
        "print(double(torch.ones(2)).tolist())\n"
    )
    assert printed(code) == "[2.0, 2.0]"


def test_a_mask_is_computed_under_vmap_without_the_compiler() -> None:
    code = (
        "import sys\n"
        "from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex\n"
        "kinds = torch.tensor([[5, 6, 7], [8, 9, 10]])\n"
        "with TransformGetItemToIndex():\n"
        "    found = torch.vmap(lambda row: kinds[row, 1] + kinds.dim())(torch.tensor([1, 0]))\n"
        "print('torch._dynamo.eval_frame' in sys.modules, found.tolist())\n"
    )
    assert printed(code) == "False [11, 8]"
