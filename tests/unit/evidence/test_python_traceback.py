"""A stack says its frames, library, operator, the user's frame and whether it is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.libraries import is_installed, library_of
from oomdoctor.evidence.python_traceback import facts_of, quoted_code, stacks
from oomdoctor.evidence.source import source_of_text
from oomdoctor.facts.registry import spec_of
from tests.unit.evidence.documents import document_of, raw_text

if TYPE_CHECKING:
    from oomdoctor.model.core import Fact


def facts(text: str) -> dict[str, Fact]:
    document = clean(source_of_text(text))
    return {fact.key: fact for fact in facts_of(document, stacks(document)[0])}


def values(name: str) -> dict[str, object]:
    return {key: fact.value for key, fact in facts(raw_text("tracebacks", f"{name}.txt")).items()}


def test_a_complete_traceback_says_all_there_is_to_say() -> None:
    found = values("plain_backward")

    assert found["trace.complete"] is True
    assert found["trace.exception"] == "torch.OutOfMemoryError"
    assert found["trace.function"] == "forward"
    assert found["trace.user_frame"] == "/home/ana/finetune/run.py:71 main | trainer.train()"
    assert found["trace.checkpoint_frames"] is True
    assert found["run.library"] == "transformers"
    assert found["run.operator"] == "down_proj"
    assert found["run.phase"] == "backward"
    assert found["run.inference_only"] is False
    assert found["job.framework"] == "transformers"


def test_the_stack_has_one_line_and_one_quote_per_frame() -> None:
    found = facts(raw_text("tracebacks", "chained.txt"))["trace.stack"]

    assert str(found.value).split("\n") == [
        "/app/serve.py:10 encode | hidden = encoder(tokens)",
        "/app/encoder.py:31 encoder | scores = q @ k.transpose(-2, -1)",
    ]
    assert [quote.line for quote in found.quotes] == [2, 4]


def test_every_fact_is_registered_and_quoted() -> None:
    for fact in facts(raw_text("tracebacks", "plain_backward.txt")).values():
        assert spec_of(fact.key).key == fact.key
        assert fact.quotes


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("two_ranks_interleaved", "cross_entropy"),
        ("lightning_closure", "conv2d"),
        ("notebook_8", "softmax"),
        ("rich_box", "zeros_like"),
        ("chained", "matmul"),
        ("no_code_lines", "forward"),
        ("worker_log_prefixed", "empty"),
    ],
)
def test_the_operator_is_the_call_that_asked(name: str, operator: str) -> None:
    assert values(name)["run.operator"] == operator


def test_builtins_are_no_operators() -> None:
    found = facts(
        '  File "a.py", line 1, in join\n    return tuple(len(x) for x in torch.cat(parts))\n'
        "RuntimeError: CUDA out of memory."
    )

    assert found["run.operator"].value == "cat"


def test_absence_of_checkpointing_needs_a_whole_forward_pass() -> None:
    assert values("forward_layers")["trace.checkpoint_frames"] is False
    assert "trace.checkpoint_frames" not in values("chained")
    assert "trace.checkpoint_frames" not in values("no_code_lines")


def test_a_notebook_is_recognised() -> None:
    assert values("notebook_8")["env.notebook"] is True
    assert values("notebook_7_colab")["env.notebook"] is True
    assert "env.notebook" not in values("chained")


def test_a_signal_handler_says_nothing_about_the_phase() -> None:
    found = facts(
        '  File "train.py", line 3, in step\n    loss.backward()\n'
        '  File "torch/utils/data/_utils/signal_handling.py", line 63, in handler\n'
        "    _error_if_any_worker_fails()\n"
        "RuntimeError: DataLoader worker (pid 1) is killed by signal: Killed."
    )

    assert "run.phase" not in found
    assert found["run.library"].value == "torch"


def test_code_that_stands_alone_before_the_message_is_a_stack_of_one() -> None:
    document = document_of(raw_text("tracebacks", "code_alone.txt"))
    stack = quoted_code(document, 1)
    assert stack is not None

    found = {fact.key: fact.value for fact in facts_of(document, stack)}

    assert found["run.operator"] == "gelu"
    assert found["trace.code"] == (
        'hidden = torch.nn.functional.gelu(self.up(x), approximate="tanh")'
    )
    assert "trace.file" not in found


@pytest.mark.parametrize(
    "code", ["scores = scores / self.scale", "return out * scale", "x += y @ w.transpose(0, 1)"]
)
def test_arithmetic_that_stands_alone_before_the_message_is_a_stack_of_one(code: str) -> None:
    stack = quoted_code(document_of(f"    {code}\n    ~~~~^~~~\nCUDA out of memory."), 2)

    assert stack is not None
    assert [frame.code for frame in stack.frames] == [code]


@pytest.mark.parametrize(
    ("code", "phase"),
    [
        ("denom = (exp_avg_sq.sqrt() / bias_correction2_sqrt).add_(eps)", "optimizer"),
        ("state['exp_avg'] = torch.zeros_like(p)", "optimizer"),
        ("return torch._C._nn.cross_entropy_loss(input, target, weight, 1, -100)", "loss"),
    ],
)
def test_a_bare_line_of_a_library_tells_the_phase(code: str, phase: str) -> None:
    document = document_of(f"    {code}\nCUDA out of memory.")
    stack = quoted_code(document, 1)

    assert stack is not None
    assert {fact.key: fact.value for fact in facts_of(document, stack)}["run.phase"] == phase


def test_a_paste_that_starts_within_a_frame_keeps_that_frame() -> None:
    found = facts(
        'fused/ce.py", line 108, in forward\n    grad = torch.zeros_like(x)\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 17.37 GiB."
    )

    assert found["trace.frame"].value == "fused/ce.py:108 forward | grad = torch.zeros_like(x)"


@pytest.mark.parametrize("text", ["total = 3 GiB - free", "    batch = 4", "rate = a / b"])
def test_a_setting_or_a_sum_at_the_margin_is_no_code(text: str) -> None:
    assert quoted_code(document_of(f"{text}\nCUDA out of memory."), 1) is None


def test_the_code_of_a_warning_is_no_stack() -> None:
    warned = (
        "/opt/torch/cuda/graphs.py:82: UserWarning: nothing was captured\n  graph.capture_end()"
    )

    assert quoted_code(document_of(f"{warned}\nCUDA out of memory."), 2) is None


def test_the_last_line_of_a_listing_is_no_stack() -> None:
    listing = "".join(f"    x{row} = f(\n" for row in range(8))

    assert quoted_code(document_of(f"{listing}CUDA out of memory."), 8) is None


def test_a_line_of_code_behind_a_listing_of_another_is_a_stack() -> None:
    listing = "    x = f(\n" * 8
    stack = quoted_code(document_of(f"{listing}    y = gelu(x)\nCUDA out of memory."), 9)

    assert stack is not None
    assert [frame.code for frame in stack.frames] == ["y = gelu(x)"]


@pytest.mark.parametrize("prose", ["step 3 done (in 4 s): fine", "loading model", "lr = 3"])
def test_prose_before_the_message_is_no_code(prose: str) -> None:
    assert quoted_code(document_of(f"{prose}\nCUDA out of memory."), 1) is None


@pytest.mark.parametrize(
    ("path", "library", "installed"),
    [
        ("/opt/v/lib/python3.11/site-packages/torch/nn/functional.py", "torch", True),
        ("/usr/local/lib/python3.10/dist-packages/trl/trainer/sft.py", "trl", True),
        (r"C:\v\Lib\site-packages\xformers\ops\fmha.py", "xformers", True),
        ("~/env/lib/python3.9/site-packages/six.py", "six", True),
        ("transformers/trainer.py", "transformers", True),
        ("/workspace/src/vllm/vllm/worker/worker.py", "vllm", True),
        ("/usr/lib/python3.10/threading.py", "python", True),
        ("reconstruct/warp.py", "reconstruct", False),
        ("tools/train.py", None, False),
        ("train.py", None, False),
        ("/home/ana/run.py", None, False),
        ("./pkg/run.py", None, False),
        ("<ipython-input-3-ab>", None, False),
        ("", None, False),
    ],
)
def test_a_file_belongs_to_its_package(path: str, library: str | None, *, installed: bool) -> None:
    assert library_of(path) == library
    assert is_installed(path) == installed
