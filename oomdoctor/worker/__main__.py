"""`python -m oomdoctor.worker --fd N`: answers requests on an inherited socket, until it closes."""

from __future__ import annotations

import argparse


def main() -> None:
    """Serve until the other side is gone."""
    parser = argparse.ArgumentParser(prog="oomdoctor.worker", description=__doc__)
    parser.add_argument("--fd", type=int, required=True, help="the socket of the session")
    number = parser.parse_args().fd
    from oomdoctor.worker.serve import Server

    Server(number).run()


if __name__ == "__main__":
    main()
