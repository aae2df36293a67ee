r"""A row of a data set as the texts that a model is shown, whatever its layout.

{"messages": [{"role": "user", "content": "..."}, ...]}              chat
{"conversations": [{"from": "human", "value": "..."}, ...]}          chat (ShareGPT)
{"prompt": ..., "chosen": ..., "rejected": ...}                      preference: two sequences
{"instruction": "...", "input": "...", "output": "..."}              instruction (Alpaca)
{"prompt": "...", "completion": "..."}                               prompt and completion
{"text": "..."}                                                      text
{"input_ids": [1, 2, 3]}                                             tokens already
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Message = dict[str, Any]
    Render = Callable[[Sequence[Message], object], str]

CHATS = ("messages", "conversations", "conversation", "dialog", "dialogue", "chat")
TEXTS = ("text", "content", "document", "body")
PAIRS = (
    ("prompt", ("completion", "response", "answer", "output")),
    ("instruction", ("output", "response", "completion", "answer")),
    ("question", ("answer", "response", "output")),
    ("query", ("response", "answer", "output")),
    ("inputs", ("targets", "outputs")),
    ("input", ("output", "target")),
    ("source", ("target",)),
)
EXTRA = ("input", "context", "system", "history", "tools")
FIELDS = frozenset(
    (
        *(*CHATS, *TEXTS, *EXTRA, "input_ids", "chosen", "rejected"),
        *(name for first, others in PAIRS for name in (first, *others)),
    )
)
"""Every field that a layout looks at; the other columns of a table need not be read."""

ROLES = {
    "human": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "function_call": "assistant",
    "observation": "tool",
    "function": "tool",
}
MOST_NAMED = 6


class BadRowError(Exception):
    """A row that cannot be counted; the message is the reason, the same for all of its kind."""


class Sample(NamedTuple):
    """What a row holds: texts to count, one per sequence, or the lengths themselves.

    `special` is True where the tokenizer adds its own tokens, which a chat template has in it.
    `pictures` counts parts of messages that are no text.
    """

    layout: str
    texts: tuple[str, ...] = ()
    special: bool = True
    lengths: tuple[int, ...] = ()
    pictures: int = 0


def sample_of(row: object, *, render: Render | None = None, field: str | None = None) -> Sample:
    """Return the sample of a row; `render` is the chat template, `field` a field that was named."""
    if isinstance(row, str):
        return Sample("text", (row,))
    if not isinstance(row, dict):
        raise BadRowError("not an object")
    if field is not None:
        return _named(row, field, render)
    for read in (_tokens, _preference, _messages, _instruction, _text):
        sample = read(row, render)
        if sample is not None:
            return sample
    raise BadRowError(f"no text field among {_names(row)}")


def _tokens(row: Mapping[str, Any], _: Render | None) -> Sample | None:
    ids = row.get("input_ids")
    return Sample("tokens", lengths=(len(ids),)) if isinstance(ids, list) else None


def _messages(row: Mapping[str, Any], render: Render | None) -> Sample | None:
    name = next((name for name in CHATS if isinstance(row.get(name), list)), None)
    if name is None:
        return None
    return _chat(_with_system(row, messages_of(row[name])), row.get("tools"), render)


def _instruction(row: Mapping[str, Any], render: Render | None) -> Sample | None:
    for first, others in PAIRS:
        second = next((name for name in others if row.get(name) is not None), None)
        if row.get(first) is not None and second is not None:
            return _pair(row, first, second, render)
    return None


def _text(row: Mapping[str, Any], _: Render | None) -> Sample | None:
    name = next((name for name in TEXTS if isinstance(row.get(name), str)), None)
    return None if name is None else Sample("text", (row[name],))


def _names(row: Mapping[str, object]) -> str:
    named = ", ".join(str(name)[:40] for name in list(row)[:MOST_NAMED])
    return (named + (", ..." if len(row) > MOST_NAMED else "")) or "no fields"


def _named(row: Mapping[str, Any], field: str, render: Render | None) -> Sample:
    if row.get(field) is None:
        raise BadRowError(f"no field {field}")
    value = row[field]
    if isinstance(value, str):
        return Sample("text", (value,))
    if isinstance(value, list) and all(isinstance(one, int) for one in value):
        return Sample("tokens", lengths=(len(value),))
    return _chat(messages_of(value), row.get("tools"), render)


def messages_of(value: object) -> list[Message]:
    """Return messages with role and content, however they are spelled."""
    if not isinstance(value, list):
        raise BadRowError("messages that are no list")
    found = []
    for one in value:
        if not isinstance(one, dict):
            raise BadRowError("a message that is no object")
        found.append(_message(one))
    if not found:
        raise BadRowError("no messages")
    return found


def _message(one: Mapping[str, Any]) -> Message:
    if "role" in one:
        return {key: value for key, value in one.items() if value is not None} | {
            "role": str(one["role"]),
            "content": one.get("content"),
        }
    if "from" in one and "value" in one:
        who = str(one["from"])
        return {"role": ROLES.get(who.lower(), who), "content": one["value"]}
    raise BadRowError("a message without role and content")


def _with_system(row: Mapping[str, Any], messages: list[Message]) -> list[Message]:
    system = row.get("system")
    if isinstance(system, str) and system and messages[0]["role"] != "system":
        return [{"role": "system", "content": system}, *messages]
    return messages


def _chat(messages: Sequence[Message], tools: object, render: Render | None) -> Sample:
    pictures = sum(_pictures(one) for one in messages)
    if render is None:
        return Sample("chat", (plain(messages),), pictures=pictures)
    return Sample("chat", (render(messages, tools),), special=False, pictures=pictures)


def plain(messages: Sequence[Message]) -> str:
    """Return the contents alone, a line for each message."""
    return "\n".join(_content(one) for one in messages)


def _content(message: Message) -> str:
    value = message.get("content")
    calls = message.get("tool_calls")
    called = json.dumps(calls, ensure_ascii=False, default=str) if calls else ""
    if isinstance(value, list):
        parts = (part.get("text") or "" for part in value if isinstance(part, dict))
        return "\n".join([*map(str, parts), called] if called else map(str, parts))
    return f"{value or ''}{called}"


def _pictures(message: Message) -> int:
    value = message.get("content")
    if not isinstance(value, list):
        return 0
    return sum(isinstance(part, dict) and part.get("type") not in ("text", None) for part in value)


def _preference(row: Mapping[str, Any], render: Render | None) -> Sample | None:
    """Return chosen and rejected, each with what stands before it: two sequences."""
    if row.get("chosen") is None or row.get("rejected") is None:
        return None
    before = _before(row)
    chat = False
    sequences = []
    for name in ("chosen", "rejected"):
        answer = row[name]
        if isinstance(answer, str) and isinstance(before, str):
            sequences.append(before + answer)
            continue
        messages = _as_messages(answer, "assistant")
        if before:
            messages = [*_as_messages(before, "user"), *messages]
        chat = render is not None
        sequences.append(plain(messages) if render is None else render(messages, row.get("tools")))
    return Sample("preference", tuple(sequences), special=not chat)


def _before(row: Mapping[str, Any]) -> str | list[Message]:
    prompt = row.get("prompt")
    if isinstance(prompt, str):
        return prompt
    found = next((row[name] for name in CHATS if isinstance(row.get(name), list)), prompt)
    if found is None:
        asked = row.get("question") or row.get("instruction") or row.get("input") or ""
        return str(asked)
    return messages_of(found)


def _as_messages(value: object, role: str) -> list[Message]:
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    return messages_of([value] if isinstance(value, dict) else value)


def _pair(row: Mapping[str, Any], first: str, second: str, render: Render | None) -> Sample:
    """Return prompt and answer as one sequence, with the further input of an instruction."""
    if isinstance(row[first], list) or isinstance(row[second], list):
        messages = [*_as_messages(row[first], "user"), *_as_messages(row[second], "assistant")]
        return _chat(messages, row.get("tools"), render)
    between = row.get("input") or row.get("context") if first == "instruction" else None
    parts = [row.get("system"), row[first], between, row[second]]
    joined = "\n".join(str(part) for part in parts if part)
    layout = "instruction" if first == "instruction" else "prompt and answer"
    return Sample(layout, (joined,))
