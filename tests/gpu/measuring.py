"""Runs a script as it stands, under a limit, and writes down what torch counted at its end.

    python measuring.py FOLDER LIMIT SCRIPT [ARGUMENT ...]

Each process writes FOLDER/RANK.json. LIMIT is in bytes, 0 for none: torch's allocator refuses more.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path


def main() -> None:
    """Run the script; its end, error and exit code stay what they are."""
    folder, limit = Path(sys.argv[1]), int(sys.argv[2])
    sys.argv = sys.argv[3:]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    import torch

    if limit:
        card = int(os.environ.get("LOCAL_RANK", "0"))
        total = torch.cuda.get_device_properties(card).total_memory
        torch.cuda.set_per_process_memory_fraction(limit / total, card)
    told: dict[str, object] = {"outcome": "crash"}
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
        told["outcome"] = "fit"
    except torch.OutOfMemoryError as error:
        told = {"outcome": "oom", "message": str(error)}
        raise
    finally:
        if torch.cuda.is_initialized():
            told["allocated_bytes"] = torch.cuda.max_memory_allocated()
            told["reserved_bytes"] = torch.cuda.max_memory_reserved()
        text = json.dumps(told)
        (folder / f"{os.environ.get('RANK', '0')}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
