"""Run a Python program on virtual cards from a shell.

    python -m oomdoctor.virtual --card "NVIDIA L4" --python CUDA_VENV/bin/python train.py --lr 1e-4
    python -m oomdoctor.virtual --count 2 -- -m torch.distributed.run --nproc-per-node 2 train.py

The exit code is the program's; what was not modelled is said on the standard error at its end.
"""

from __future__ import annotations

import argparse
import sys

from oomdoctor.errors import OomdoctorError
from oomdoctor.virtual.card import card_named
from oomdoctor.virtual.run import run_python

STOPPED = 124


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m oomdoctor.virtual", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--card", default="NVIDIA A100-SXM4-80GB", help="as nvidia-smi names it")
    parser.add_argument("--count", type=int, default=1, help="how many of them there are")
    parser.add_argument("--python", default=sys.executable, help="the one that has CUDA's torch")
    parser.add_argument("--timeout", type=float, help="seconds")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="what Python gets")
    asked = parser.parse_args()
    program = asked.program[1:] if asked.program[:1] == ["--"] else asked.program
    try:
        done = run_python(
            program,
            card=card_named(asked.card),
            count=asked.count,
            python=asked.python,
            timeout_s=asked.timeout,
            captures=False,
        )
    except OomdoctorError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    for sentence in done.unmodelled.sentences():
        sys.stderr.write(f"virtual card: {sentence}\n")
    return STOPPED if done.exit_code is None else done.exit_code


if __name__ == "__main__":
    sys.exit(main())
