"""Chat templates are filled in as trainers do it, and can do nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.data.layouts import BadRowError
from oomdoctor.data.template import renderer, template_text

if TYPE_CHECKING:
    from pathlib import Path

CHAT = """{{ bos_token }}{% for message in messages %}
    {% if message.role == 'system' %}{{ raise_exception('no system message') }}{% endif %}
    {% generation %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endgeneration %}
{% endfor %}"""
MESSAGES = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]


def test_a_template_is_filled_in_with_blocks_trimmed() -> None:
    render = renderer(CHAT, {"bos_token": {"content": "<s>"}})

    shown = "".join(render(MESSAGES, None).split())

    assert shown == "<s><|user|>hi<|end|><|assistant|>yes<|end|>"


def test_a_template_can_refuse_messages() -> None:
    with pytest.raises(BadRowError, match="refuses it: no system message"):
        renderer(CHAT, {})([{"role": "system", "content": "x"}], None)


def test_a_template_that_fails_is_a_bad_row() -> None:
    with pytest.raises(BadRowError, match="the chat template fails"):
        renderer("{{ messages[9].content.strip() }}", {})(MESSAGES, None)


@pytest.mark.parametrize(
    "hostile",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.__class__.__base__.__subclasses__() }}",
        "{{ raise_exception.__globals__['json'].loads }}",
        "{{ messages.append('x') }}",
    ],
)
def test_a_template_reaches_nothing_of_python(hostile: str) -> None:
    with pytest.raises(BadRowError):
        renderer(hostile, {})(list(MESSAGES), None)


def test_text_that_is_no_template_says_so() -> None:
    with pytest.raises(BadRowError, match="does not compile"):
        renderer("{% for %}", {})


def test_json_in_a_template_keeps_its_letters() -> None:
    assert (
        renderer("{{ tools | tojson }}", {})([], [{"name": "caf\u00e9"}])
        == '[{"name": "caf\u00e9"}]'
    )


def test_a_file_of_its_own_comes_first_then_the_default_of_several(tmp_path: Path) -> None:
    several = [{"name": "rag", "template": "R"}, {"name": "default", "template": "D"}]
    held = {"chat_template": several}

    assert template_text(tmp_path, {}) is None
    assert template_text(tmp_path, {"chat_template": "T"}) == "T"
    assert template_text(tmp_path, held) == "D"
    (tmp_path / "chat_template.jinja").write_text("F", encoding="utf-8")
    assert template_text(tmp_path, held) == "F"
