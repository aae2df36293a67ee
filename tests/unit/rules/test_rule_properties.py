"""Laws of three-valued evaluation on random conditions and random books of facts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoctor.errors import RuleError
from oomdoctor.facts.book import FactBook
from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Kind, Truth
from oomdoctor.rules.evaluate import condition_verdict
from oomdoctor.rules.language import compile_expression
from oomdoctor.rules.shape import Condition
from oomdoctor.rules.source import leaf_condition

NUMBERS = ("oom.free", "oom.requested", "torch.reserved", "oom.capacity")
FLAGS = ("oom.seen", "oom.caught", "lora.on")
OPPOSITE = {Truth.TRUE: Truth.FALSE, Truth.FALSE: Truth.TRUE, Truth.UNKNOWN: Truth.UNKNOWN}

numeric = st.recursive(
    st.sampled_from([*NUMBERS, "1*GiB", "64*B", "0*B"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(st.sampled_from(["2", "0.5", "-1"]), inner).map(lambda t: f"({t[0]} * {t[1]})"),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
            lambda t: f"{t[0]}({t[1]}, {t[2]})"
        ),
        inner.map(lambda a: f"abs({a})"),
        inner.map(lambda a: f"ceil_to({a}, 64*B)"),
        inner.map(lambda a: f"({a} // 3)"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} * ({t[1]} / {t[2]}))"),
    ),
    max_leaves=4,
)
comparison = st.tuples(numeric, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), numeric).map(
    " ".join
)
boolean = st.recursive(
    st.one_of(comparison, st.sampled_from([*FLAGS, "lora.on == oom.seen", "run.phase == 'eval'"])),
    lambda inner: st.one_of(
        inner.map(lambda a: f"not ({a})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda t: f"({t[0]}) {t[1]} ({t[2]})"
        ),
    ),
    max_leaves=3,
)


def _compiled(source: str) -> Condition | None:
    try:
        return leaf_condition(compile_expression(source, expect=Kind.BOOL))
    except RuleError:  # too long, or a constant division by zero
        return None


leaves = boolean.map(_compiled).filter(lambda condition: condition is not None)
conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        inner.map(lambda a: Condition(op="not", parts=(a,))),
        st.tuples(st.sampled_from(["all", "any"]), st.lists(inner, min_size=1, max_size=3)).map(
            lambda t: Condition(op=t[0], parts=tuple(t[1]))
        ),
    ),
    max_leaves=4,
)
sizes = st.one_of(st.integers(-200, 200), st.integers(0, 4 * 1024**3))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[dict[str, object], FactBook]:
    """Return what is true, and a book that states a part of it, rounded."""
    truth: dict[str, object] = {key: draw(sizes) for key in NUMBERS}
    truth |= {key: draw(st.booleans()) for key in FLAGS}
    truth["run.phase"] = draw(st.sampled_from(["eval", "loss"]))
    facts = []
    for key, value in truth.items():
        if draw(st.booleans()):
            continue
        slack, shown = 0, value
        if key in NUMBERS and isinstance(value, int):
            slack = draw(st.sampled_from([0, 0, 3, 50]))
            shown = value + draw(st.integers(-slack, slack))
        facts.append(Fact(key=key, value=shown, slack=slack))  # type: ignore[arg-type] - values of their kind
    return truth, FactBook().add(facts)


def complete(truth: dict[str, object], *, without: frozenset[str] = frozenset()) -> FactBook:
    return FactBook().add(
        Fact(key=key, value=value)  # type: ignore[arg-type] - values of their kind
        for key, value in truth.items()
        if key not in without
    )


@settings(max_examples=120, deadline=None)
@given(conditions, worlds())
def test_what_is_decided_stays_when_everything_is_known(
    condition: Condition, world: tuple[dict[str, object], FactBook]
) -> None:
    truth, partial = world
    early = condition_verdict(condition, partial).truth
    late = condition_verdict(condition, complete(truth)).truth

    assert early is Truth.UNKNOWN or late is early


@settings(max_examples=80, deadline=None)
@given(conditions, worlds(), st.data())
def test_one_more_fact_never_turns_true_into_false(
    condition: Condition, world: tuple[dict[str, object], FactBook], data: st.DataObject
) -> None:
    truth, partial = world
    absent = sorted(set(truth) - set(partial.facts))
    chosen = data.draw(st.lists(st.sampled_from(absent), unique=True)) if absent else []
    more = partial.add(Fact(key=key, value=truth[key]) for key in chosen)  # type: ignore[arg-type] - values of their kind

    before = condition_verdict(condition, partial).truth
    after = condition_verdict(condition, more).truth

    assert before is Truth.UNKNOWN or after is before


@settings(max_examples=80, deadline=None)
@given(conditions, worlds())
def test_an_unknown_verdict_says_what_it_misses_and_nothing_else_matters(
    condition: Condition, world: tuple[dict[str, object], FactBook]
) -> None:
    truth, partial = world
    verdict = condition_verdict(condition, partial)

    assert (verdict.truth is Truth.UNKNOWN) is bool(verdict.missing)
    if verdict.truth is Truth.UNKNOWN:
        others = [key for key in truth if key not in partial.facts and key not in verdict.missing]
        more = partial.add(Fact(key=key, value=truth[key]) for key in others)  # type: ignore[arg-type] - values of their kind
        assert condition_verdict(condition, more).truth is Truth.UNKNOWN


@settings(max_examples=50, deadline=None)
@given(conditions, conditions, worlds())
def test_negation_is_an_involution_and_de_morgan_holds(
    one: Condition, other: Condition, world: tuple[dict[str, object], FactBook]
) -> None:
    _, book = world

    def truth(condition: Condition) -> Truth:
        return condition_verdict(condition, book).truth

    def negated(condition: Condition) -> Condition:
        return Condition(op="not", parts=(condition,))

    assert truth(one) is truth(negated(negated(one)))
    assert OPPOSITE[truth(one)] is truth(negated(one))
    both = Condition(op="all", parts=(one, other))
    neither = Condition(op="any", parts=(negated(one), negated(other)))
    assert truth(negated(both)) is truth(neither)


@settings(max_examples=50, deadline=None)
@given(st.lists(conditions, min_size=1, max_size=4), worlds(), st.randoms())
def test_order_does_not_matter(
    parts: list[Condition], world: tuple[dict[str, object], FactBook], random: object
) -> None:
    _, book = world
    shuffled = list(parts)
    random.shuffle(shuffled)  # type: ignore[attr-defined] - hypothesis' Random

    for op in ("all", "any"):
        one = condition_verdict(Condition(op=op, parts=tuple(parts)), book)
        other = condition_verdict(Condition(op=op, parts=tuple(shuffled)), book)
        assert (one.truth, one.missing) == (other.truth, other.missing)


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=220))
def test_no_text_makes_the_compiler_raise_anything_but_a_rule_error(text: str) -> None:
    fault = _fault_of(text)

    assert fault is None or fault.location is not None


def _fault_of(text: str) -> RuleError | None:
    try:
        compile_expression(text)
    except RuleError as error:
        return error
    return None
