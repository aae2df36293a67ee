"""`bisect --dry-run`: what would run and what it would cost; nothing runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from oomdoctor.cli.bisect_places import opened
from oomdoctor.cli.bisect_run import range_of
from oomdoctor.cli.bisect_search import begun
from oomdoctor.cli.bisect_setup import setup_of
from oomdoctor.lab.simulated import FormulaBackend
from oomdoctor.lab.timeouts import MOST_SECONDS
from oomdoctor.model.bisect import BisectPlan
from oomdoctor.model.trial import TrialSpec
from oomdoctor.search.edge import find_edge, most_trials
from oomdoctor.search.frontier import ladder
from oomdoctor.search.rounds import run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from oomdoctor.cli.bisect import Asked
    from oomdoctor.cli.bisect_search import Begun
    from oomdoctor.cli.bisect_setup import Setup
    from oomdoctor.model.trial import Value


def planned(values: Mapping[str, object], *, stdin: BinaryIO | None) -> str:
    """Return the plan of a run, as its format asks for it."""
    asked = cast("Asked", values)
    plan = plan_of(values, stdin=stdin)
    if asked["format"] == "json":
        from oomdoctor.render.bisect_json import plan_json

        return plan_json(plan)
    from oomdoctor.cli.pages import written
    from oomdoctor.render.bisect_plan_page import bisect_plan_page

    return written(bisect_plan_page(plan), asked)


def plan_of(values: Mapping[str, object], *, stdin: BinaryIO | None) -> BisectPlan:
    """Return the plan of a run; a guard that would refuse it refuses the plan as well."""
    asked = cast("Asked", values)
    setup = setup_of(values, stdin=stdin)
    with opened(setup, asked) as found:
        allowed = found.allowed
        width = len(found.places)
        wanted = begun(setup, asked, allowed, width=width)
    return BisectPlan(
        backend=setup.backend,
        axes=tuple(range_of(one) for one in setup.axes),
        expected=_expected(setup, wanted),
        most=_most(setup),
        seconds_each=MOST_SECONDS,
        start=wanted.start,
        job=setup.job if setup.template is None else None,
        command=setup.command_at({}),
        card=setup.card_words(allowed),
        cap_bytes=allowed.cap_bytes,
        limit_bytes=wanted.limit_bytes,
        host_cap_bytes=allowed.host_cap_bytes,
        executor=asked["executor"] or "one",
        width=width,
        notes=(*setup.notes, *allowed.notes),
    )


def _expected(setup: Setup, wanted: Begun) -> tuple[Mapping[str, Value], ...]:
    """Return the trials of a search on one axis whose estimate is right."""
    curve, limit = wanted.start.curve, wanted.limit_bytes
    if curve is None or limit is None or setup.outer is not None:
        return ()
    name = setup.inner.name
    computed = FormulaBackend(lambda values: curve.at(float(values[name])), cap_bytes=limit)
    search = find_edge(setup.inner, cap_bytes=limit, estimate=curve, error=wanted.start.error)
    answer = run(
        search,
        lambda ask: computed.run(TrialSpec(values=ask.values, repeat=ask.repeat), lambda _: None),
    )
    return tuple(one.values for one in answer.trials)


def _most(setup: Setup) -> int:
    """Return how many trials there are where every guess misleads."""
    each = most_trials(setup.inner)
    return each if setup.outer is None else each * len(ladder(setup.outer))
