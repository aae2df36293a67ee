"""Commands inside manifests."""

from __future__ import annotations

import pytest

from oomdoctor.estimating.manifest import commands_in

BRACKETS = """
containers:
- name: server
  image: vllm/vllm-openai:v0.8.5
  args: ["--model", "some/model-7b", "--max-model-len", "32768"]
"""
ITEMS = """
      containers:
        - name: server
          image: vllm/vllm-openai:v0.8.5
          args:
            - --model=some/model-7b
            # a remark
            - "--max-model-len"
            - "32768"
          ports:
            - containerPort: 8000
"""
SHELL = """
containers:
- image: vllm/vllm-openai:v0.8.5
  command: ["/bin/sh", "-c"]
  args:
  - vllm serve some/model-7b --max-model-len 32768
"""
COMPOSE = """
services:
  llm:
    image: vllm/vllm-openai:latest
    command: --model some/model-7b --max-model-len 32768
    ipc: host
"""
OTHERS = """
services:
  data:
    image: postgres:16
    command: ["--max-connections", "9"]
  llm:
    image: ghcr.io/huggingface/text-generation-inference:3.0
    command: ["--model-id", "some/model-7b", "--num-shard", "2"]
"""


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (BRACKETS, "vllm serve --model some/model-7b --max-model-len 32768"),
        (ITEMS, "vllm serve --model=some/model-7b --max-model-len 32768"),
        (SHELL, "vllm serve some/model-7b --max-model-len 32768"),
        (COMPOSE, "vllm serve --model some/model-7b --max-model-len 32768"),
        (OTHERS, "text-generation-launcher --model-id some/model-7b --num-shard 2"),
        ("model: some/model-7b\nmax_model_len: 32768\n", None),
        ("image: vllm/vllm-openai:v0.8.5\nargs: []\n", None),
    ],
)
def test_a_container_has_a_command(text: str, command: str | None) -> None:
    assert commands_in(text) == command
