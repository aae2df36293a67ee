"""What a line shows of the data: questions, prompts, answers. It is not said about the run.

{'question': 'RuntimeError: CUDA out of memory. How do I solve this?', 'answer': '...'}
{"messages": [{"role": "user", "content": "Process finished with exit code 137"}]}
INFO 01-05 10:00:01 logger.py:39] Received request cmpl-1: prompt: 'why was it OOMKilled?', ...)
decoded: <s> ### Question: CUDA out of memory ### Answer: other processes may hold it</s>
User: Why does my training die with "CUDA out of memory"?

A record that has a level, a message or an error speaks for itself and stays whole.
"""

from __future__ import annotations

import re
from functools import cache

_FAILURES = ("emory", "OOM", "oom", "ill", "137", "alloc", "us error", "EXHAUSTED", "egmentation")
_STARTS = frozenset("UHAQPCR<[#")
_FIRST_CHARS = 600
"""Data are told at the head of a line, and a line may be a whole file."""


def without_data(text: str) -> str:
    """Return `text` up to where it shows a piece of the data that speaks of a failure."""
    if "'" not in text and '"' not in text and text[:1] not in _STARTS and "<" not in text:
        return text
    for word in _FAILURES:
        if word in text:
            break
    else:
        return text
    found = _shown().search(text, 0, _FIRST_CHARS)
    if found is None or _record().search(text):
        return text
    return text[: found.start()].rstrip()


@cache
def _shown() -> re.Pattern[str]:
    return re.compile(
        r"""\{?["']?\b(?:question|instruction|prompt|completion|chosen|rejected)["']?"""
        r"""\s{0,3}[:=]\s{0,3}\[?["']"""
        r"""|\{["'](?:messages|conversations?)["']\s{0,3}:\s{0,3}\["""
        r"""|\{["'](?:role|from)["']\s{0,3}:\s{0,3}["'](?:user|assistant|system|human|gpt)["']"""
        r"""|["']text["']\s{0,3}:\s{0,3}["'](?:<s>|<\||###|\[INST|<bos>|Question:|User:|Human:)"""
        r"""|(?:<s>|<bos>|<\|(?:im_start|begin_of_text|user|start_header_id)\|>|\[INST\])"""
        r"""|### (?:Question|Instruction|Human|User|Input|Response|Answer)\b"""
        r"""|^(?:User|Human|Assistant|Question|Answer|Prompt|Completion|Response): (?=.{12})"""
    )


@cache
def _record() -> re.Pattern[str]:
    return re.compile(
        r"""["'](?:error|exception|exc_info|traceback|detail|msg|message|log|level|levelname"""
        r"""|severity)["']\s{0,3}:"""
    )
