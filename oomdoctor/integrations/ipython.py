"""A cell magic of IPython and of notebooks: the cell is recorded, and diagnosed at its end.

%load_ext oomdoctor.integrations.ipython

%%oomdoctor [folder]
trainer.train()
"""

from __future__ import annotations

import sys
from typing import Any

from oomdoctor.integrations.session import Session


def load_ipython_extension(shell: Any) -> None:
    """Register the magic; IPython calls this."""

    def oomdoctor(line: str, cell: str) -> None:
        run_cell(shell, line, cell)

    shell.register_magic_function(oomdoctor, "cell")


def run_cell(shell: Any, line: str, cell: str) -> Session:
    """Run a cell as it is, recorded; its own exception is shown as ever."""
    session = Session(line.strip() or None, say=False)
    try:
        result = shell.run_cell(cell)
    except BaseException as error:
        session.end(error)
        raise
    failure = result.error_before_exec or result.error_in_exec
    session.end(failure)
    if session.line:
        sys.stdout.write(f"{session.report if failure is not None else session.line}\n")
    return session
