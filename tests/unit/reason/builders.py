"""Small rules, books and failures for the tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.facts.book import FactBook
from oomdoctor.model.core import Fact, Failure, Quote
from oomdoctor.model.enums import Maturity, Safety, Severity
from oomdoctor.rules.language import compile_expression
from oomdoctor.rules.shape import Cause, Condition, Evidence, Fix, Rule, RuleSet, SavingFormula

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from oomdoctor.model.core import Value

GIB = 1 << 30


def leaf(source: str) -> Condition:
    return Condition(op="leaf", leaf=compile_expression(source))


def line(
    source: str, in_cause: float, otherwise: float, *, label: str = "", group: str | None = None
) -> Evidence:
    return Evidence(
        condition=leaf(source),
        in_cause=in_cause,
        otherwise=otherwise,
        label=label or source,
        group=group,
    )


def rule(
    code: str,
    cause: str | None,
    when: str = "oom.seen",
    *,
    evidence: Iterable[Evidence] = (),
    fixes: Iterable[Fix] = (),
    says: str | None = None,
    explains: str | None = None,
) -> Rule:
    return Rule(
        code=code,
        name=code.lower(),
        title=f"Title of {code}",
        severity=Severity.ERROR,
        maturity=Maturity.STABLE,
        since="0.1.0",
        when=leaf(when),
        cause=cause,
        says=says,
        evidence=tuple(evidence),
        explains=None if explains is None else compile_expression(explains),
        fixes=tuple(fixes),
    )


def fix(
    fix_id: str,
    *,
    needs: str | None = None,
    in_force: str | None = None,
    saves: tuple[str, str, str] | None = None,
    patch: Mapping[str, Mapping[str, object]] | None = None,
    time_factor: float = 1.0,
    quality: str = "none",
) -> Fix:
    formula = None
    if saves is not None:
        low, likely, high = (compile_expression(text) for text in saves)
        formula = SavingFormula(low=low, likely=likely, high=high)
    return Fix(
        id=fix_id,
        title=f"Do {fix_id}",
        safety=Safety.SAFE,
        needs=None if needs is None else leaf(needs),
        in_force=None if in_force is None else leaf(in_force),
        saves=formula,
        patch=patch or {},
        time_factor=time_factor,
        quality=quality,
    )


def cause(
    cause_id: str, *, prior: float = 0.1, resource: str = "gpu", near: tuple[str, ...] = ()
) -> Cause:
    return Cause(
        id=cause_id, resource=resource, definition="", tells_apart="", near=near, prior=prior
    )


def ruleset(rules: Iterable[Rule], causes: Iterable[Cause]) -> RuleSet:
    return RuleSet(rules=tuple(rules), causes={one.id: one for one in causes})


def fact(
    key: str, value: Value, *, at: int | None = None, text: str = "", slack: float = 0
) -> Fact:
    quotes = () if at is None else (Quote(artifact="crash.log", line=at, text=text or key),)
    return Fact(key=key, value=value, quotes=quotes, slack=slack)


def book(**values: Value) -> FactBook:
    """Return a book of stated facts; `__` in a name stands for the dot of the key."""
    named = {key.replace("__", "."): value for key, value in values.items()}
    return FactBook().add(
        fact(key, value, at=number) for number, (key, value) in enumerate(named.items(), 1)
    )


def failure(
    kind: str = "gpu-oom",
    *,
    order: int = 1,
    rank: int | None = None,
    stamp: str | None = None,
    consequence: bool = False,
    artifact: str = "crash.log",
    facts: Iterable[Fact] = (),
) -> Failure:
    return Failure(
        kind=kind,
        order=order,
        line_quote=Quote(artifact=artifact, line=order, text=f"{kind} at {order}"),
        rank=rank,
        stamp=stamp,
        consequence=consequence,
        facts=tuple(facts),
    )
