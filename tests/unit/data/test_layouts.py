"""What a row of each layout is read as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from oomdoctor.data.layouts import BadRowError, Sample, sample_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def join(messages: Sequence[dict[str, Any]], _tools: object) -> str:
    return "|".join(f"{one['role']}={one['content']}" for one in messages)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"text": "ab"}, Sample("text", ("ab",))),
        ({"id": 3, "content": "ab"}, Sample("text", ("ab",))),
        ("ab", Sample("text", ("ab",))),
        ({"input_ids": [5, 6, 7], "text": "ab"}, Sample("tokens", lengths=(3,))),
        (
            {"instruction": "add", "input": "1 2", "output": "3"},
            Sample("instruction", ("add\n1 2\n3",)),
        ),
        ({"instruction": "add", "input": "", "output": "3"}, Sample("instruction", ("add\n3",))),
        ({"prompt": "add", "completion": "3"}, Sample("prompt and answer", ("add\n3",))),
        ({"question": "add", "answer": "3"}, Sample("prompt and answer", ("add\n3",))),
        (
            {"prompt": "q", "chosen": "yes", "rejected": "no"},
            Sample("preference", ("qyes", "qno")),
        ),
        (
            {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
            Sample("chat", ("a\nb",)),
        ),
        (
            {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]},
            Sample("chat", ("a\nb",)),
        ),
        (
            {
                "system": "be short",
                "conversations": [{"from": "human", "value": "a"}],
            },
            Sample("chat", ("be short\na",)),
        ),
    ],
)
def test_a_row_becomes_the_texts_to_count(row: object, expected: Sample) -> None:
    assert expected == sample_of(row)


def test_roles_of_sharegpt_become_those_that_templates_know() -> None:
    row = {
        "conversations": [
            {"from": "human", "value": "a"},
            {"from": "gpt", "value": "b"},
            {"from": "observation", "value": "c"},
        ]
    }

    assert sample_of(row, render=join).texts == ("user=a|assistant=b|tool=c",)


def test_a_rendered_chat_gets_no_further_special_tokens() -> None:
    row = {"messages": [{"role": "user", "content": "a"}]}

    assert [sample_of(row).special, sample_of(row, render=join).special] == [True, False]


def test_a_pair_of_message_lists_has_the_prompt_in_both() -> None:
    row = {
        "prompt": [{"role": "user", "content": "q"}],
        "chosen": [{"role": "assistant", "content": "yes"}],
        "rejected": [{"role": "assistant", "content": "no"}],
    }

    expected = ("user=q|assistant=yes", "user=q|assistant=no")
    assert expected == sample_of(row, render=join).texts


def test_a_pair_after_a_conversation_has_the_conversation_in_both() -> None:
    row = {
        "conversations": [{"from": "human", "value": "q"}],
        "chosen": {"from": "gpt", "value": "yes"},
        "rejected": {"from": "gpt", "value": "no"},
    }

    assert sample_of(row).texts == ("q\nyes", "q\nno")


def test_parts_that_are_no_text_are_counted_apart() -> None:
    content = [{"type": "image", "image": "cat.png"}, {"type": "text", "text": "what is it"}]

    sample = sample_of({"messages": [{"role": "user", "content": content}]})

    assert sample.pictures == 1
    assert "what is it" in sample.texts[0]
    assert "cat.png" not in sample.texts[0]


def test_calls_of_tools_count() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [{"name": "look_up"}]}

    assert "look_up" in sample_of({"messages": [message]}).texts[0]


def test_a_named_field_comes_before_every_layout() -> None:
    row = {"text": "ab", "story": "once upon a time"}

    assert sample_of(row, field="story").texts == ("once upon a time",)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (3, "not an object"),
        ({}, "no text field among no fields"),
        ({"label": 1, "score": 2}, "no text field among label, score"),
        ({"messages": []}, "no messages"),
        ({"messages": ["hello"]}, "a message that is no object"),
        ({"messages": [{"speaker": "a"}]}, "a message without role and content"),
        ({"text": None}, "no text field among text"),
    ],
)
def test_a_row_that_cannot_be_counted_says_why(row: object, reason: str) -> None:
    with pytest.raises(BadRowError) as caught:
        sample_of(row)

    assert reason == str(caught.value)


def test_a_named_field_that_lacks_is_named() -> None:
    with pytest.raises(BadRowError, match="no field story"):
        sample_of({"text": "ab"}, field="story")
