"""Stacks are put together per writer, whatever form the traceback has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.evidence.clean import clean
from oomdoctor.evidence.source import source_of_text
from oomdoctor.evidence.stacks import Stack, stacks
from tests.unit.evidence.documents import document_of, raw_text

if TYPE_CHECKING:
    from random import Random

    from oomdoctor.model.core import Document


def read(name: str) -> Document:
    return clean(source_of_text(raw_text("tracebacks", f"{name}.txt")))


def functions(stack: Stack) -> list[str]:
    return [frame.function for frame in stack.frames]


@pytest.mark.parametrize(
    ("name", "names", "code", "exception", "complete"),
    [
        (
            "plain_backward",
            [
                "<module>",
                "main",
                "train",
                "training_step",
                *["backward"] * 3,
                "unpack_hook",
                "forward",
            ],
            "down_proj = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))",
            "torch.OutOfMemoryError",
            True,
        ),
        (
            "notebook_8",
            ["", "_call_impl", "forward"],
            "attention_probs = nn.functional.softmax(attention_scores, dim=-1)",
            "OutOfMemoryError",
            True,
        ),
        (
            "notebook_7_colab",
            ["<module>", "fit", "backward"],
            "allow_unreachable=True, accumulate_grad=True)",
            "RuntimeError",
            True,
        ),
        (
            "rich_box",
            ["<module>", "train", "step"],
            'state["exp_avg"] = torch.zeros_like(p)',
            "OutOfMemoryError",
            True,
        ),
        (
            "worker_log_prefixed",
            ["worker_busy_loop", "determine_available_memory", "forward_cuda"],
            "out = torch.empty(output_shape, dtype=x.dtype, device=x.device)",
            "torch.OutOfMemoryError",
            True,
        ),
        (
            "stripped_indent",
            ["forward"],
            "x, _ = self.gate_up_proj(x)",
            "torch.OutOfMemoryError",
            False,
        ),
        (
            "ray_worker",
            ["update", "backward"],
            "self.optimizer.backward(loss, retain_graph=retain_graph)",
            "torch.OutOfMemoryError",
            False,
        ),
        ("no_code_lines", ["run", "one_batch", "forward"], None, "RuntimeError", False),
        ("faulthandler", ["<module>", "collate", "_new_shared"], None, None, False),
    ],
)
def test_a_traceback_gives_its_frames(
    name: str, names: list[str], code: str | None, exception: str | None, *, complete: bool
) -> None:
    (stack,) = stacks(read(name))

    assert functions(stack) == names
    assert stack.frames[-1].code == code
    assert stack.exception == exception
    assert stack.complete == complete


def test_code_over_several_lines_is_one_piece_and_carets_are_none_of_it() -> None:
    (stack,) = stacks(read("plain_backward"))

    assert stack.frames[1].code == "trainer.train()"
    assert stack.frames[2].code == (
        "return inner_training_loop( args=args, resume_from_checkpoint=resume_from_checkpoint, )"
    )


def test_the_stacks_of_interleaved_ranks_do_not_mix() -> None:
    first, second = stacks(read("two_ranks_interleaved"))

    assert (first.rank, functions(first)) == (1, ["<module>", "loop", "cross_entropy"])
    assert (second.rank, functions(second)) == (0, ["<module>", "loop", "_init_group"])
    assert first.complete
    assert second.complete


def test_chained_exceptions_are_stacks_of_their_own() -> None:
    first, second = stacks(read("chained"))

    assert (first.exception, functions(first)) == ("torch.OutOfMemoryError", ["encode", "encoder"])
    assert (second.exception, functions(second)) == ("RuntimeError", ["handle", "evaluate"])


def test_hidden_frames_are_known_to_be_missing() -> None:
    (collapsed,) = stacks(read("notebook_7_colab"))
    (whole,) = stacks(read("notebook_8"))

    assert collapsed.hidden
    assert not whole.hidden


def test_output_of_others_between_the_lines_does_not_break_a_stack() -> None:
    document = document_of(
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\nINFO something else\n'
        '    g()\n  File "a.py", line 2, in g\n    h()\nValueError: no'
    )

    (stack,) = stacks(document)

    assert functions(stack) == ["f", "g"]
    assert stack.exception == "ValueError"


def test_a_frame_that_two_processes_printed_at_once_counts_once() -> None:
    document = document_of(
        '  File "a.py", line 1, in f\n  File "a.py", line 1, in f\n    g()\n    g()\n'
        "RuntimeError: CUDA out of memory."
    )

    (stack,) = stacks(document)

    assert [frame.shown for frame in stack.frames] == ["a.py:1 f | g()"]


RANKS = st.lists(st.lists(st.integers(1, 99), min_size=1, max_size=5), min_size=2, max_size=4)


@given(RANKS, st.randoms())
def test_shuffling_ranks_keeps_the_stack_of_each(lines: list[list[int]], random: Random) -> None:
    queues = {rank: trace(rank, numbers) for rank, numbers in enumerate(lines)}
    mixed = []
    while any(queues.values()):
        rank = random.choice([one for one, rest in queues.items() if rest])
        mixed.append(queues[rank].pop(0))

    found = stacks(clean(source_of_text("\n".join(mixed))))

    assert {stack.rank: [frame.line for frame in stack.frames] for stack in found} == dict(
        enumerate(lines)
    )
    assert all(stack.complete for stack in found)


def trace(rank: int, numbers: list[int]) -> list[str]:
    frames = [
        line
        for at, number in enumerate(numbers)
        for line in (f'  File "m{at}.py", line {number}, in f{at}', f"    call{at}()")
    ]
    lines = ["Traceback (most recent call last):", *frames, f"RuntimeError: rank {rank} failed"]
    return [f"[rank{rank}]: {line}" for line in lines]


PIECES = st.sampled_from(
    [
        "Traceback (most recent call last):",
        '  File "a.py", line 3, in f',
        "    return g(x)",
        "           ^^^^",
        "Cell In[3], line 5",
        "----> 5     x()",
        "│ /a/b.py:1 in c │",
        "│ ❱ 1 c() │",
        "RuntimeError: CUDA out of memory.",
        "During handling of the above exception, another exception occurred:",
        "",
        "[rank1]: x",
        "  0%|          | 0/10 [00:00<?, ?it/s]",
    ]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=60)), max_size=40))
def test_any_mix_of_lines_gives_stacks_within_the_document(lines: list[str]) -> None:
    document = clean(source_of_text("\n".join(lines)))

    for stack in stacks(document):
        assert 0 <= stack.first <= stack.last < len(document.lines)
        assert all(0 <= frame.at < len(document.lines) for frame in stack.frames)


def test_a_box_whose_upper_part_was_cut_off_gives_its_running_line() -> None:
    text = (
        "│ ❱  629 │   │   probs = scores.softmax(dim=-1)                 │\n"
        "│    630 │   │                                                  │\n"
        "╰──────────────────────────────────────────────────────────────╯\n"
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 1024.00 MiB\n"
    )

    (stack,) = stacks(document_of(text))

    assert [frame.code for frame in stack.frames] == ["probs = scores.softmax(dim=-1)"]


def test_a_box_names_files_of_windows() -> None:
    text = (
        "│ C:\\env\\lib\\site-packages\\torch\\optim\\adamw.py:566 in _multi_tensor_adamw  │\n"
        "│ ❱ 566 │   │   denom = torch._foreach_add(exp_avg_sq_sqrt, eps)             │\n"
        "OutOfMemoryError: CUDA out of memory.\n"
    )

    (stack,) = stacks(document_of(text))

    assert [(f.function, f.line) for f in stack.frames] == [("_multi_tensor_adamw", 566)]


def test_a_frame_without_a_line_number_is_a_frame() -> None:
    text = (
        '  File "losses/loss.py", in gather_topk\n'
        "    return one_hot(topk, anchors)\n"
        "RuntimeError: CUDA out of memory.\n"
    )

    (stack,) = stacks(document_of(text))

    assert [(f.path, f.line, f.function) for f in stack.frames] == [
        ("losses/loss.py", None, "gather_topk")
    ]


@pytest.mark.parametrize(
    "ours",
    [
        """\
  File "/opt/oomdoctor/inject/counted.py", line 166, in __torch_dispatch__
    self._memory.note(out)
  File "/opt/oomdoctor/inject/counted.py", line 89, in _note_tensor
    raise self._out_of_memory(more)
""",
        """\
  File "C:\\venv\\oomdoctor\\virtual\\inside\\known_values.py", line 90, in run
    return call(*arguments)
""",
    ],
)
def test_who_counts_memory_or_follows_values_is_no_part_of_the_stack(ours: str) -> None:
    text = f"""\
Traceback (most recent call last):
  File "train.py", line 9, in extract
    return torch.cat(all_features)
{ours}\
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.88 MiB.
"""

    (stack,) = stacks(clean(source_of_text(text)))

    assert [frame.function for frame in stack.frames] == ["extract"]
