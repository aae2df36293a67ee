"""Run the command line as `python -m oomdoctor`."""

from __future__ import annotations

from oomdoctor.cli.main import main

if __name__ == "__main__":
    main()
