"""Free notes: what someone types about a job in a line of its own words.

RTX 4090, bs 4, seq 2048, Qwen2.5-7B, lora r16, 24GB
2 x V100 16GB, tensor_parallel_size 2, gpu_memory_utilization 0.95
H100 80GB, colocated actor + rollout engine
# 26B parameters, 2 nodes x 8 GPUs of 80 GB
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.configs import hardware, phrases, scalars, vocabulary
from oomdoctor.configs.claims import Claim
from oomdoctor.configs.hardware import Found
from oomdoctor.configs.mapping import claims_of
from oomdoctor.configs.meanings import spoken_model, written_name
from oomdoctor.configs.setting import Lines, Setting, normal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.mapping import Dialect
    from oomdoctor.model.core import Quote

MAX_LINES = 5000
MAX_WIDTH = 4000


@cache
def _pair() -> re.Pattern[str]:
    value = r"(?P<value>\"[^\"]*\"|'[^']*'|\[[^\]]*\]|[^\s,;|()\[\]{}]+)"
    return re.compile(
        rf"(?<![\w./$-])(?:--)?(?P<key>[A-Za-z_][\w.-]*)(?:\s?[:=]\s?|\s(?=\d|true\b|false\b)){value}",
        re.IGNORECASE,
    )


@cache
def _model() -> re.Pattern[str]:
    families = (
        r"qwen|llama|code-?llama|tiny-?llama|mistral|mixtral|ministral|gemma|phi-?\d|gpt-?2|gpt-?neo|gpt-?j|opt|bloom"
        r"|falcon|mpt|pythia|deepseek|yi|glm|chatglm|internlm|internvl|baichuan|vicuna|alpaca|bert|roberta"
        r"|deberta|t5|flan|mt5|bart|whisper|llava|smollm|smolvlm|olmo|granite|stable-?lm|starcoder"
        r"|wan\d|flux|sdxl|command-r|dbrx|jamba|mamba|nemotron|minicpm|gpt-oss|kimi|exaone|vit"
    )
    size = r"(?:[-_.]?v?\d[\w.]*|[-_][\w.]+)*"
    return re.compile(
        rf"(?<![\w./:=-])(?:[A-Za-z0-9][\w.-]{{1,40}}/(?=[\w.-]*(?:{families}|\d+(?:\.\d+)?[bBmM]\b))[\w.-]{{2,90}}"
        rf"|(?:{families}){size}(?<![.-]))(?![\w/])",
        re.IGNORECASE,
    )


@cache
def _sized() -> re.Pattern[str]:
    return re.compile(
        r"\d[bm](?![a-z])|gpt-?2|(?:base|large|small|tiny|medium|mini|xl|xxl)(?![a-z])",
        re.IGNORECASE,
    )


@cache
def _parameters() -> re.Pattern[str]:
    return re.compile(
        r"(?<![\w.-])(?P<n>\d{1,4}(?:\.\d{1,2})?)\s?(?P<unit>[BbMm]|billion|million)\s*[- ]?"
        r"(?:parameters?|params?|model|LLM)\b"
    )


def read(lines: Lines, dialect: Dialect) -> Iterator[tuple[Claim, Quote]]:
    """Read every line of free text; the settings in it go through `dialect`'s table."""
    rows = lines.rows[:MAX_LINES]
    ollama = any(_ollama().search(text[:MAX_WIDTH]) for _, text in rows)
    for row, (_, text) in enumerate(rows):
        for found in claims_in(text[:MAX_WIDTH], dialect):
            claim = _layers(found, text) if ollama else found.claim
            yield claim, lines.quote(row, found.start, found.end)


@cache
def _ollama() -> re.Pattern[str]:
    return re.compile(r"\bnum_(?:ctx|predict|batch|keep|thread)\b|\bollama\b", re.IGNORECASE)


def _layers(found: Found, text: str) -> Claim:
    """Read Ollama's `num_gpu` as it is meant: layers on the card, where others count cards."""
    counts = found.claim.key == "gpu.count" and re.search(r"\bnum_gpu\W+$", text[: found.start])
    return Claim("serve.gpu_layers", found.claim.value) if counts else found.claim


def claims_in(text: str, dialect: Dialect) -> Iterator[Found]:
    """Return all claims of one line, the plainest statements first."""
    yield from _pairs(text, dialect)
    yield from hardware.find(text)
    yield from phrases.find(text)
    yield from _names(text)


def settings_in(lines: Lines) -> list[Setting]:
    """Return the `key: value`, `key=value` and `key 4` of free lines as settings."""
    rows = []
    for row, (_, text) in enumerate(lines.rows[:MAX_LINES]):
        for key, value, start, end in _written(text[:MAX_WIDTH]):
            rows.append(Setting((key,), scalars.value_of(value), lines.quote(row, start, end)))
    return rows


def _written(text: str) -> Iterator[tuple[str, str, int, int]]:
    for hit in _pair().finditer(text):
        value = hit["value"].rstrip(".:")
        if not value or value.startswith(("//", "=")):
            continue
        if scalars.number_of(value) is not None or _ends(text[hit.end("value") :]):
            yield hit["key"].lstrip("-"), value, hit.start("value"), hit.start("value") + len(value)


@cache
def _end() -> re.Pattern[str]:
    return re.compile(r"\s*(?:$|[,;|)#\]}]|--|[\w.]+\s?[:=])")


def _ends(rest: str) -> bool:
    """Say whether a value is over where its word ends, so that it is no start of a sentence."""
    return _end().match(rest) is not None


def _pairs(text: str, dialect: Dialect) -> Iterator[Found]:
    for key, value, start, end in _written(text):
        bare = scalars.value_of(value)
        spaced = text[start - 1] == " " and text[:start].rstrip()[-1:] not in (":", "=")
        known = normal(key) in vocabulary.table() or normal(key) in dialect.keys
        if spaced and not known:
            continue
        place = Setting(tuple(key.split(".")), bare, _nowhere())
        for claim in claims_of(place, dialect):
            yield Found(claim, start, end)


@cache
def _nowhere() -> Quote:
    return Lines("", [(1, " ")]).quote(0)


def _model_names(text: str) -> Iterator[Found]:
    spoken = spoken_model().search(text)
    if spoken is not None:
        yield Found(Claim("model.name", written_name(spoken.group())), *spoken.span())
        return
    hit = _model().search(text)
    if hit is not None and not text[hit.end() :].startswith((".py", "(", ".sh", "=")):
        name = hit.group().rstrip(".-_")
        if "/" in name or _sized().search(name):
            yield Found(Claim("model.name", name), hit.start(), hit.start() + len(name))


def _names(text: str) -> Iterator[Found]:
    """Find a model by its name, and a number of parameters."""
    yield from _model_names(text)
    number = _parameters().search(text)
    if number is not None:
        scale = 10**9 if number["unit"][0] in "Bb" else 10**6
        count = int(float(number["n"]) * scale)
        if count:
            yield Found(Claim("model.params", count, count * 0.08), *number.span("n"))
