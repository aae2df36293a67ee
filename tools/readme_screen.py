"""Write the console blocks of the README (and docs) anew by running their commands.

    python tools/readme_screen.py [--check] [PAGE...]

In each block marked ```console every line `$ oomdoctor ...` is run in the checkout, and what it
prints replaces what stands below it.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(?ms)^(```console\n)(.*?)^(```)$")


def printed(command: str) -> str:
    """Run one command line in the checkout and return what it prints."""
    program, *arguments = shlex.split(command)
    if program != "oomdoctor":
        raise SystemExit(f"only oomdoctor is run, not {program}")
    environment = {key: value for key, value in os.environ.items() if key != "FORCE_COLOR"}
    done = subprocess.run(
        [sys.executable, "-m", "oomdoctor", *arguments],
        cwd=ROOT,
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env=environment | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
    )
    return done.stdout.decode() + done.stderr.decode()


def refreshed(block: re.Match[str]) -> str:
    """Return a console block with fresh output."""
    parts = []
    for part in re.split(r"(?m)^\$ ", block[2])[1:]:
        command = part.partition("\n")[0]
        parts.append(f"$ {command}\n{printed(command)}")
    return block[1] + "".join(parts) + block[3]


def main() -> int:
    """Rewrite the pages, or with --check say which are stale."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    asked = parser.parse_args()
    stale = []
    for page in asked.pages or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        fresh = BLOCK.sub(refreshed, text)
        if fresh != text:
            stale.append(page)
            if not asked.check:
                page.write_text(fresh, encoding="utf-8", newline="\n")
    for page in stale:
        print(f"{'stale' if asked.check else 'written'}: {page}")
    return 1 if asked.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
