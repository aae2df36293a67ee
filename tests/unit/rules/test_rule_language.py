"""What the rule language accepts, what it refuses, and how it says so."""

from __future__ import annotations

import pytest

from oomdoctor.errors import RuleError
from oomdoctor.model.enums import Kind
from oomdoctor.rules.language import compile_expression

GIB = 1024**3

ACCEPTED = [
    ("oom.free < 1.5*GiB", ["<", ["fact", "oom.free"], GIB * 3 // 2]),
    ("oom.free < '1.5 GiB'", ["<", ["fact", "oom.free"], GIB * 3 // 2]),
    ("'1 GiB' < oom.free", ["<", GIB, ["fact", "oom.free"]]),
    ("-oom.free < -1*GiB", ["<", ["*", -1, ["fact", "oom.free"]], -GIB]),
    ("oom.free // (2*MiB) > 3", None),
    ("oom.seen == true", ["iff", ["fact", "oom.seen"], True]),
    ("oom.seen != oom.caught", ["not", ["iff", ["fact", "oom.seen"], ["fact", "oom.caught"]]]),
    ("run.phase == 'eval'", ["same", ["fact", "run.phase"], "eval"]),
    ("run.phase not in ['eval']", ["not", ["one_of", ["fact", "run.phase"], "eval"]]),
    ("train.micro_batch in [1, 2]", None),
    ("optimizer.name in ['adamw', 'adam']", None),
    ("env.torch >= '2.3'", ["version>=", ["fact", "env.torch"], "2.3"]),
    ("env.torch in '>=2.1,<2.4'", ["in_range", ["fact", "env.torch"], ">=2.1,<2.4"]),
    ("assert.device_side", ["fact", "assert.device_side"]),
    (
        r"matches(trace.stack, '\d+ assert.x')",
        ["matches", ["fact", "trace.stack"], r"\d+ assert.x"],
    ),
    ("count(log.text) > 3", [">", ["count", ["fact", "log.text"]], 3]),
    ("absent(lora.on)", ["not", ["present", ["fact", "lora.on"]]]),
    ("oom.seen and not oom.caught or oom.absurd_size", None),
    ("run.progress > train.micro_batch / 4", None),
]


@pytest.mark.parametrize(("source", "tree"), ACCEPTED)
def test_an_expression_compiles(source: str, tree: object) -> None:
    compiled = compile_expression(source, expect=Kind.BOOL)

    assert compiled.kind is Kind.BOOL
    assert tree is None or tree == compiled.tree


KINDS = [
    ("oom.free / oom.capacity", Kind.RATIO),
    ("oom.free * train.micro_batch", Kind.BYTES),
    ("train.micro_batch * oom.free", Kind.BYTES),
    ("oom.free * run.progress", Kind.BYTES),
    ("oom.free + oom.capacity", Kind.BYTES),
    ("oom.free / 3", Kind.BYTES),
    ("oom.free // oom.capacity", Kind.COUNT),
    ("model.heads * model.head_dim", Kind.COUNT),
    ("model.heads / model.head_dim", Kind.RATIO),
    ("model.heads + run.progress", Kind.RATIO),
    ("min(oom.free, '2 GiB', 3*MiB)", Kind.BYTES),
    ("max(model.heads, run.progress)", Kind.RATIO),
    ("abs(oom.free - oom.capacity)", Kind.BYTES),
    ("ceil_to(oom.requested, 2*MiB)", Kind.BYTES),
    ("2 * 3", Kind.COUNT),
    ("run.phase", Kind.ENUM),
    ("env.torch", Kind.VERSION),
]


@pytest.mark.parametrize(("source", "kind"), KINDS)
def test_the_kind_follows_from_the_parts(source: str, kind: Kind) -> None:
    assert kind is compile_expression(source).kind


def test_the_facts_that_are_read_are_told() -> None:
    compiled = compile_expression("oom.free < oom.requested or matches(trace.stack, 'oom.seen')")

    assert frozenset({"oom.free", "oom.requested", "trace.stack"}) == compiled.reads


REFUSED = [
    ("oom.requested > 3", 17, "expected a size: write 3*GiB"),
    ("oom.free * oom.free > 1*B", 12, "bytes times bytes is no size"),
    ("oom.free + train.micro_batch > 1*B", 12, "expected bytes on both sides"),
    ("oom.free + 3 > 1*B", 12, "expected a size"),
    ("oom.seen == 1", 13, "expected two truth values"),
    ("oom.seen > oom.caught", 12, "has no order"),
    ("oom.seen + 1 > 2", 12, "expected two truth values"),
    ("oom.free and oom.seen", 1, "is not true or false"),
    ("oom.backend == 'cud'", 16, "did you mean 'cuda'?"),
    ("oom.backend in ['cuda', 'rocm']", 25, "oom.backend is never 'rocm'"),
    ("oom.backend < 'cuda'", 15, "has no order"),
    ("oom.fre < 1*GiB", 1, "did you mean oom.free"),
    ("GB > 1*GiB", 1, "units are B, KiB"),
    ("oom.free < '3 apples'", 12, "no size"),
    ("1 < oom.events < 3", 18, "join two with `and`"),
    ("oom.free.__class__ == 'x'", 1, "unknown fact"),
    ("(oom.free).real > 1*B", 1, "unknown fact"),
    ("[1][0] > 1", 1, "Subscript is not part of the language"),
    ("(lambda: 1)() == 1", 1, "a call of something else"),
    ("lambda: 1", 1, "Lambda is not part of the language"),
    ("[x for x in [1]]", 1, "ListComp is not part"),
    ("__import__('os')", 1, "a call of something else"),
    ("oom.free.bit_length() > 1", 1, "a call of something else"),
    ("open('x')", 1, "a call of something else"),
    ("min(oom.free) > 1*B", 1, "expected two or more"),
    ("abs(x=1) > 1", 1, "expected 1 in order"),
    ("min(oom.free, 3) > 1*B", 15, "expected a size"),
    ("min(oom.free, oom.seen) > 1*B", 15, "expected a number"),
    ("matches(oom.free, 'x')", 9, "expected a text fact"),
    ("matches(log.text, oom.seen)", 19, "expected a pattern"),
    ("matches(log.text, '(a')", 22, "bad pattern: missing )"),
    ("present(oom.free)", 9, "can never be known"),
    ("count(oom.events) > 3", 7, "expected a text fact"),
    ("oom.free ** 2 > 1*B", 1, "expected one of + - * / //"),
    ("oom.free % 2 > 1*B", 1, "expected one of + - * / //"),
    ("~oom.events > 1", 1, "an unknown sign"),
    ("oom.events is 1", 1, "expected == or !="),
    ("1/0 > 1", 1, "no division by zero"),
    ("1e400 > 1", 1, "expected a finite number"),
    ("None == oom.seen", 1, "not part of the language"),
    ("f'{1}' == log.text", 1, "JoinedStr is not part"),
    ("b'x' == log.text", 1, "not part of the language"),
    ("env.torch >= 'two'", 14, "expected a version"),
    ("env.torch in '2.1'", 14, "expected bounds"),
    ("env.torch in ['2.1']", 1, "expected an enum or text fact"),
    ("oom.free in ['1 GiB']", 1, "expected an enum or text fact"),
    ("run.phase in 'eval'", 14, "expected a list"),
    ("run.phase in []", 14, "expected a list of strings or numbers"),
    ("[1] == [1]", 1, "expected `in` before a list"),
    ("-oom.seen", 1, "has no negative"),
    ("run.step > 5 and", 17, "syntax error"),
    ("a b", 3, "syntax error"),
    ("", 1, "expected something like"),
    ("oom.seen\x01", 1, "expected something like"),
    ("oom.free < 1*GiB or " * 12 + "oom.seen", 201, "at most 200"),
]


@pytest.mark.parametrize(("source", "column", "words"), REFUSED)
def test_a_wrong_expression_is_refused_at_its_place(source: str, column: int, words: str) -> None:
    with pytest.raises(RuleError) as caught:
        compile_expression(source, expect=Kind.BOOL)

    assert words in caught.value.message
    assert caught.value.location is not None
    assert column == caught.value.location.column


def test_the_message_holds_the_source_and_a_caret_under_the_column() -> None:
    with pytest.raises(RuleError) as caught:
        compile_expression("oom.requested > 3")

    shown = "    oom.requested > 3\n                    ^"
    assert caught.value.message.endswith(shown)


def test_another_kind_than_asked_for_is_refused() -> None:
    with pytest.raises(RuleError, match="expected an expression of kind bytes"):
        compile_expression("oom.free / oom.capacity", expect=Kind.BYTES)


def test_a_string_alone_is_a_size_where_bytes_are_asked_for() -> None:
    assert compile_expression("'2 GiB'", expect=Kind.BYTES).tree == ["value", 2 * GIB]


def test_deep_nesting_is_refused_and_never_crashes() -> None:
    with pytest.raises(RuleError):
        compile_expression("(" * 100 + "1" + ")" * 99)


def test_a_backslash_in_a_string_is_a_backslash() -> None:
    compiled = compile_expression(r"matches(log.text, '\bfoo\x41\\')")

    assert compiled.tree[2] == r"\bfoo\x41\\"
