"""Trace twins on the fake card: requests as JSON lines on standard input, a stream's file each.

    {"entry": "litgpt:lora", "arguments": {...}, "steps": 1, "empties": false, "card": {...},
     "path": "/tmp/stream.json"}

Each runs in a process of its own, forked after the imports, so that none sees what another left. A
line with the path, or with what went wrong, comes back for each.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from oomdoctor.lab.protocol import decode
from oomdoctor.memory.stream_json import to_json
from oomdoctor.model.job import CardSpec
from oomdoctor.worker.fake.card import FakeCard
from oomdoctor.worker.fake.shim import Shim

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.memory.stream import Stream

STEPS = ("step 1", "step 2")


def trace(request: Mapping[str, Any]) -> Stream:
    """Build what the entry names on the fake card, and let it step."""
    name, function = request["entry"].split(":")
    build = getattr(importlib.import_module(f"benchmarks.twins.{name}"), function)
    with FakeCard(decode(CardSpec, request["card"]), Shim()) as card:
        seen = card.tracker
        seen.phase("load")
        model, optimizer, step = build(request["arguments"], torch.device("cuda"))
        if model is not None:
            seen.model(model)
            seen.tag(model.parameters(), "weights")
        for number in range(request["steps"]):
            if request["empties"] and number == request["steps"] - 1:
                seen.empty_cache()
            seen.phase(STEPS[min(number, 1)])
            step()
        del optimizer
        return seen.stream(f"a twin, simulated with torch {torch.__version__}", {})


def main() -> None:
    """Answer each line."""
    for name in ("litgpt", "liger_ops", "peft_comparison", "transformers_2023"):
        importlib.import_module(f"benchmarks.twins.{name}")
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            told = ""
            try:
                told = json.dumps(to_json(trace(request)))
            finally:  # what went wrong is told to who asked, and nothing else runs here
                told = told or json.dumps({"error": traceback.format_exc()})
                Path(request["path"]).write_text(told)
                os._exit(0)
        os.waitpid(child, 0)
        print(json.dumps({"path": request["path"]}), flush=True)


if __name__ == "__main__":
    main()
