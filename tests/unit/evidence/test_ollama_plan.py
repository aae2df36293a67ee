"""What ollama plans to place on its devices."""

from __future__ import annotations

from oomdoctor.evidence import ollama_log
from tests.unit.evidence.tables_documents import read_text, values


def test_ollama_s_whole_requirement_is_that_of_its_only_device() -> None:
    text = 'msg=offload memory.available="[8.0 GiB]" memory.required.full="6.0 GiB"'

    assert values(read_text(ollama_log, text))["serve.fullest_share"] == 0.75
