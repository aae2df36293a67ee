"""A chat template of a tokenizer, filled in by jinja2's sandbox: it can call nothing of ours.

Templates come as `chat_template.jinja`, or in `tokenizer_config.json` as a text or as a list of
named ones, of which `default` is taken.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from oomdoctor.data.layouts import BadRowError
from oomdoctor.extras import Library, need

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from oomdoctor.data.layouts import Message, Render

FILE = "chat_template.jinja"
CONFIG = "tokenizer_config.json"
_TOKENS = ("bos_token", "eos_token", "pad_token", "unk_token")


def template_text(folder: Path, config: Mapping[str, Any]) -> str | None:
    """Return the template of a tokenizer's folder, None where it has none."""
    path = folder / FILE
    if path.is_file():
        return path.read_text(encoding="utf-8")
    held = config.get("chat_template")
    if isinstance(held, list):
        named = {one.get("name"): one.get("template") for one in held if isinstance(one, dict)}
        held = named.get("default")
    return held if isinstance(held, str) and held else None


def renderer(text: str, config: Mapping[str, Any]) -> Render:
    """Compile a template; the function returned raises BadRowError for messages it refuses."""
    sandbox = need("jinja2.sandbox", purpose="a chat template", extra="data")
    extensions = need("jinja2.ext", purpose="a chat template", extra="data")
    jinja2 = need("jinja2", purpose="a chat template", extra="data")
    environment = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", _generation(extensions, jinja2)],
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = _today
    tokens = {name: _token(config.get(name)) for name in _TOKENS}
    try:
        template = environment.from_string(text)
    except jinja2.TemplateError as error:
        raise BadRowError(f"the chat template does not compile: {error}") from error

    def render(messages: Sequence[Message], tools: object) -> str:
        try:
            filled = template.render(
                messages=messages, tools=tools, add_generation_prompt=False, **tokens
            )
        except BadRowError:
            raise
        except Exception as error:
            kind = type(error).__name__
            raise BadRowError(f"the chat template fails: {kind}: {error}"[:200]) from error
        return str(filled)

    return render


def _generation(extensions: Library, jinja2: Library) -> type:
    """Return the extension for `{% generation %}`, which marks what the model is to say."""

    def parse(_: object, parser: Library) -> Library:
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)

    body = {"tags": {"generation"}, "parse": parse, "identifier": "generation"}
    return type("Generation", (extensions.Extension,), body)


def _token(value: object) -> str:
    """Return the text of a token, which may be an object with its `content`."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _to_json(value: object, indent: int | None = None, **_: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)


def _refuse(message: str) -> NoReturn:
    raise BadRowError(f"the chat template refuses it: {message}"[:200])


def _today(form: str) -> str:
    from datetime import datetime, timezone

    return datetime.now(timezone.utc).strftime(form)
