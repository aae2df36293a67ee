"""Look up what a fact key means; one table out of all rows, checked for duplicates by a test."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError
from oomdoctor.facts import (
    table_config,
    table_gpu,
    table_host,
    table_launch,
    table_model,
    table_oom,
    table_pools,
    table_run,
    table_said,
    table_serve,
    table_snapshot,
    table_torch,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.core import FactSpec

TABLES = (
    table_oom,
    table_pools,
    table_torch,
    table_gpu,
    table_host,
    table_launch,
    table_run,
    table_config,
    table_serve,
    table_model,
    table_said,
    table_snapshot,
)


@cache
def _answered() -> Mapping[str, FactSpec]:
    """Return the rows that an answer to a log is made of."""
    return {row.key: row for table in TABLES for row in table.ROWS}


@cache
def specs() -> Mapping[str, FactSpec]:
    """Return all rows by key, in the order of the tables; those of lint and data come last."""
    from oomdoctor.facts import (
        table_data,
        table_job,
        table_lint,
        table_lint_checks,
        table_lint_correctness,
        table_lint_dist,
        table_lint_memory,
        table_lint_settings,
        table_lint_training,
    )

    more = (
        table_data,
        table_job,
        table_lint,
        table_lint_checks,
        table_lint_correctness,
        table_lint_dist,
        table_lint_memory,
        table_lint_settings,
        table_lint_training,
    )
    return {**_answered(), **{row.key: row for table in more for row in table.ROWS}}


def find(key: str) -> FactSpec | None:
    """Return the row of `key`, None for an unknown one; loads only the tables that it needs."""
    return _answered().get(key) or specs().get(key)


def spec_of(key: str) -> FactSpec:
    """Return the row of `key`; an unknown key is a UsageError that names near ones."""
    found = find(key)
    if found is None:
        raise UsageError(f"unknown fact {key!r}", hint=did_you_mean(key))
    return found


def did_you_mean(key: str) -> str:
    """Name the registered keys that look most like `key`."""
    from difflib import get_close_matches

    near = get_close_matches(key, specs(), n=3, cutoff=0.5)
    listed = ", ".join(near)
    return f"did you mean {listed}?" if near else "`oomdoctor facts` lists all fact keys"
