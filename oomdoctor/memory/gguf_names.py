"""What the names of GGUF files and of Ollama's models say: the model, and its file type.

models/Qwen2.5-7B-Instruct-Q4_K_M.gguf   Qwen2.5-7B-Instruct, q4_k_m
llama3.1:8b-instruct-q4_K_M              llama-3.1-8b-instruct, q4_k_m
"""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.facts import model_configs
from oomdoctor.record import NamedTuple

OLLAMA_TYPE = "q4_k_m"  # of tags that name none (recalled; read off its library's pages)
_SIZES = {  # of tags without a size: what `latest` is (recalled from Ollama's library)
    "llama3": "8b",
    "llama3.1": "8b",
    "llama3.2": "3b",
    "llama2": "7b",
    "qwen2.5": "7b",
    "qwen3": "8b",
    "mistral": "7b",
    "gemma2": "9b",
    "gemma3": "4b",
    "gpt-oss": "20b",
    "mixtral": "8x7b",
    "codellama": "7b",
}


class Named(NamedTuple):
    """The model that a name means, and its file type where the name says it."""

    model: str
    file_type: str | None


@cache
def _types() -> re.Pattern[str]:
    return re.compile(
        r"[-._](?:UD-)?(?P<type>(?:IQ|Q)\d_(?:K_?(?:XL|[SML])?|XXS|XS|NL|[SM01])(?:_[SML])?"
        r"|BF16|F16|F32|FP16|MXFP4)(?=$|[-._])",
        re.IGNORECASE,
    )


@cache
def _pieces() -> re.Pattern[str]:
    return re.compile(r"-\d{5}-of-\d{5}$", re.IGNORECASE)


def file_name(name: str) -> Named:
    """Read the name of a GGUF file, or of a repository of such files."""
    base = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    base = re.sub(r"\.gguf$", "", base, flags=re.IGNORECASE)
    base = _pieces().sub("", base)
    repository, colon, quant = base.partition(":")
    if colon and _types().fullmatch(f"-{quant}"):
        base = f"{repository}-{quant}"
    found = list(_types().finditer(base))
    if not found:
        return Named(_plain(base), None)
    last = found[-1]
    return Named(_plain(base[: last.start()]), _type(last["type"]))


def tag_name(tag: str) -> Named:
    """Read a model of Ollama: `family:size-variant-type`."""
    if tag.lower().endswith(".gguf") or "/" in tag:
        return file_name(tag)
    family, _, rest = tag.partition(":")
    found = list(_types().finditer(f"-{rest}"))
    kind = _type(found[-1]["type"]) if found else None
    stem = f"-{rest}"[: found[-1].start()].lstrip("-") if found else rest
    size = stem if stem not in ("", "latest") else _SIZES.get(family, "")
    low = f"{family}-{size}".rstrip("-")
    shorter = low
    while shorter.count("-"):  # a tag's last words are its variant: -it-qat, -text
        for name in (shorter, re.sub(r"^([a-z]+)(\d)", r"\1-\2", shorter)):
            if model_configs.lookup(name) is not None:
                return Named(name, kind)
        shorter = shorter.rpartition("-")[0]
    return Named(low, kind)


def _plain(name: str) -> str:
    name = re.sub(r"[-_.]?(?:i\d-)?gguf$", "", name, flags=re.IGNORECASE)
    return name if model_configs.lookup(name) is not None else name.replace("_", "-")


def _type(name: str) -> str:
    low = name.lower().replace("fp16", "f16").replace("k_xl", "k_l")
    return low if low != "q4_k" else "q4_k_m"
