"""An nvidia-smi that tells what a test put into a file, for guards that look at cards."""

from __future__ import annotations

import json
import stat
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

UUID = "GPU-11111111-2222-3333-4444-555555555555"
_PROGRAM = """#!{python} -S
import json, sys, time
told = json.load(open({path!r}))
time.sleep(told.get("seconds", 0))
if told.get("fails"):
    sys.exit(told["fails"])
asked = next(one for one in sys.argv if one.startswith("--query"))
if asked.startswith("--query-compute-apps"):
    for card in told["cards"]:
        for pid, name, mib in card.get("processes", []):
            print(f"{{card['uuid']}}, {{pid}}, {{name}}, {{mib}}")
elif asked == "--query-gpu=memory.free":
    chosen = next(one.partition("=")[2] for one in sys.argv if one.startswith("--id="))
    print(next(card["free"] for card in told["cards"] if card["uuid"] == chosen))
else:
    for at, card in enumerate(told["cards"]):
        used = card.get("used", card["total"] - card["free"])
        mig = card.get("mig", "Disabled")
        print(f"{{at}}, {{card['uuid']}}, {{card['name']}}, {{card['total']}}, {{used}},"
              f" {{card['free']}}, {{mig}}")
"""


class StubSmi:
    """Writes the program, and what it tells."""

    def __init__(self, folder: Path) -> None:
        """Put it into a folder that is to stand first on PATH."""
        self.folder = folder / "bin"
        self.folder.mkdir()
        self._told = folder / "cards.json"
        program = self.folder / "nvidia-smi"
        program.write_text(_PROGRAM.format(python=sys.executable, path=str(self._told)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def tells(self, *cards: dict[str, Any], seconds: float = 0, fails: int = 0) -> None:
        """Replace at once what the program tells; sizes are MiB."""
        text = json.dumps({"cards": cards, "seconds": seconds, "fails": fails})
        fresh = self._told.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(self._told)


def card(**changes: Any) -> dict[str, Any]:
    """Return an idle card of 24 GiB."""
    return {"uuid": UUID, "name": "NVIDIA Test", "total": 24576, "free": 24570} | changes
