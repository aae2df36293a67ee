"""Settings of a patch whose value is an expression: `"= max(1, train.micro_batch // 2)"`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from oomdoctor.model.enums import Kind
from oomdoctor.rules.evaluate import expression_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.facts.book import FactBook
    from oomdoctor.rules.shape import Expression

MARK = "="
_COMPILED: dict[str, Expression] = {}
KINDS = (Kind.COUNT, Kind.RATIO, Kind.BOOL, Kind.ENUM, Kind.TEXT, Kind.SECONDS)


def expression_of(value: object) -> Expression | None:
    """Compile a setting that begins with `=`; None for a plain one, RuleError for a wrong one."""
    if not isinstance(value, str) or not value.startswith(MARK):
        return None
    known = _COMPILED.get(value)
    if known is None:
        from oomdoctor.rules.language import compile_expression

        known = _COMPILED[value] = compile_expression(value[len(MARK) :].strip())
    return known


def learn(expressions: Mapping[str, Expression]) -> None:
    """Take over settings that were compiled before, by their texts."""
    _COMPILED.update(expressions)


def expressions_in(settings: Mapping[str, object]) -> Iterator[tuple[str, Expression]]:
    """Yield the texts of settings that are expressions, with what they compile to."""
    for value in settings.values():
        if isinstance(value, Mapping):
            yield from expressions_in(value)
        else:
            expression = expression_of(value)
            if expression is not None:
                yield str(value), expression


def filled(settings: Mapping[str, object], book: FactBook) -> dict[str, object] | None:
    """Return the settings with expressions evaluated; None where a fact for one is missing."""
    done: dict[str, object] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            inner = filled(value, book)
            if inner is None:
                return None
            done[key] = inner
            continue
        expression = expression_of(value)
        if expression is None:
            done[key] = value
            continue
        result, _ = expression_value(expression, book)
        if result is None:
            return None
        done[key] = int(result) if isinstance(result, float) and result.is_integer() else result
    return done
