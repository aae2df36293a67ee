"""The shape of a rule file: one table that checks files, and that the JSON Schema comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.model.enums import Maturity, Safety, Severity
from oomdoctor.record import dataclass
from oomdoctor.rules.fields import Field, Items, Number, Plain, Record, Table, Text
from oomdoctor.rules.language import MAX_CHARS
from oomdoctor.rules.nodes import Problem, entries, place
from oomdoctor.rules.words import BASES, CATEGORIES, DIALECTS, FAMILIES, PACKAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import yaml

MAX_LEAVES = 20
MAX_DEPTH = 4
CODE = rf"^({'|'.join(FAMILIES)})\d{{3}}$"
SLUG = r"^[a-z0-9]+(-[a-z0-9]+)*$"
# A frame that only one cause makes is practically never seen otherwise: 1 in 10,000 is the floor.
LEAST_FREQUENCY, MOST_FREQUENCY = 0.0001, 0.9999
SKELETON = ("all", "any", "not")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionShape:
    """The skeleton all/any/not, or a leaf: one expression."""

    def check(self, node: yaml.Node, path: str) -> Iterator[Problem]:
        """Yield all that is wrong with a node."""
        yield from self._check(node, path, depth=1)
        leaves = _count_leaves(node)
        if leaves > MAX_LEAVES:
            message = f"{leaves} leaves in one condition, at most {MAX_LEAVES}"
            yield Problem(message=message, location=place(node, path))

    def _check(self, node: yaml.Node, path: str, *, depth: int) -> Iterator[Problem]:
        import yaml

        if isinstance(node, yaml.ScalarNode):
            yield from Text(longest=MAX_CHARS).check(node, path)
            return
        given = entries(node)
        names = list(given)
        if len(names) != 1 or names[0] not in SKELETON:
            message = "expected an expression, or a mapping with one of all, any, not"
            yield Problem(message=message, location=place(node, path))
            return
        if depth > MAX_DEPTH:
            message = f"nested deeper than {MAX_DEPTH} levels of all/any/not"
            yield Problem(message=message, location=place(node, path))
            return
        (_, value) = given[names[0]]
        if names[0] == "not":
            yield from self._check(value, path, depth=depth + 1)
        elif isinstance(value, yaml.SequenceNode) and value.value:
            for item in value.value:
                yield from self._check(item, path, depth=depth + 1)
        else:
            message = f"expected a list of conditions after {names[0]}"
            yield Problem(message=message, location=place(value, path))

    def json_schema(self) -> dict[str, object]:
        """Return the same limits as JSON Schema draft-07."""
        return {"$ref": "#/definitions/condition1"}


def _count_leaves(node: yaml.Node) -> int:
    import yaml

    if isinstance(node, yaml.ScalarNode):
        return 1
    if isinstance(node, yaml.SequenceNode):
        return sum(_count_leaves(item) for item in node.value)
    return sum(_count_leaves(value) for _, value in entries(node).values())


_CONDITION = ConditionShape()
_FORMULA = Text(longest=MAX_CHARS)
_FREQUENCY = Number(low=LEAST_FREQUENCY, high=MOST_FREQUENCY)
_SEEN = Record(
    fields={
        "cause": Field(
            shape=_FREQUENCY, doc="How often it is true when this is the cause", required=True
        ),
        "otherwise": Field(
            shape=_FREQUENCY, doc="How often it is true when it is not", required=True
        ),
    }
)
_EVIDENCE = Record(
    fields={
        "if": Field(shape=_CONDITION, doc="What is looked for", required=True),
        "seen": Field(shape=_SEEN, doc="Two frequencies, 0.0001 to 0.9999", required=True),
        "label": Field(shape=Text(longest=120), doc="The line in words, for the report"),
        "group": Field(
            shape=Text(longest=40, pattern=SLUG, hint="lower-case words joined by hyphens"),
            doc="Correlated lines share a group: only the strongest counts",
        ),
    }
)
_SAVES = Record(
    fields={
        "low": Field(shape=_FORMULA, doc="Least bytes saved", required=True),
        "likely": Field(shape=_FORMULA, doc="Bytes saved most likely", required=True),
        "high": Field(shape=_FORMULA, doc="Most bytes saved", required=True),
    }
)
_FIX = Record(
    fields={
        "id": Field(
            shape=Text(longest=60, pattern=SLUG, hint="lower-case words joined by hyphens"),
            doc="Name of the fix, unique in the rule",
            required=True,
        ),
        "title": Field(shape=Text(longest=100), doc="What to do, imperative", required=True),
        "safety": Field(
            shape=Text(choices=tuple(s.value for s in Safety)),
            doc="What it may change besides memory",
            required=True,
        ),
        "needs": Field(shape=_CONDITION, doc="False leaves the fix out"),
        "in_force": Field(shape=_CONDITION, doc="True suppresses the fix as already done"),
        "time_factor": Field(
            shape=Number(low=0.1, high=20), doc="Expected step time is multiplied by this"
        ),
        "quality": Field(
            shape=Text(longest=100), doc="Effect on the result: none, or what changes"
        ),
        "saves": Field(shape=_SAVES, doc="Bytes saved, as formulas"),
        "patch": Field(
            shape=Table(of=Table(of=Plain()), keys=DIALECTS),
            doc="Per dialect the settings to make; a text that begins with = is an expression",
        ),
        "advice": Field(shape=Text(longest=400), doc="One imperative sentence without a patch"),
        "cautions": Field(shape=Items(of=Text(longest=200), most=5), doc="What to mind"),
    }
)
_TEST = Record(
    fields={
        "name": Field(shape=Text(longest=100), doc="The case in words", required=True),
        "expect": Field(
            shape=Text(choices=("match", "no_match", "unknown")),
            doc="What the gate must come to",
            required=True,
        ),
        "probability": Field(
            shape=Text(longest=20, pattern=r"^(<|<=|>|>=) ?[01](\.\d+)?$", hint="such as '>= 0.5'"),
            doc="Bound on the posterior of the cause against all rules",
        ),
        "missing": Field(shape=Items(of=Text(longest=60)), doc="Facts that must be asked for"),
        "evidence": Field(
            shape=Table(of=Text(choices=("true", "false", "unknown"), truth=True)),
            doc="Pinned truth of evidence lines by label",
        ),
        "facts": Field(shape=Table(of=Plain(scalar=True)), doc="Facts as texts, by key"),
        "severity": Field(
            shape=Text(choices=tuple(s.value for s in Severity)),
            doc="Severity after what is assumed and what the version in use says",
        ),
        "closed": Field(
            shape=Items(of=Text(longest=40), most=5),
            doc="Artifact kinds read to the end (train-config), so that absence is known",
        ),
        "log": Field(shape=Text(longest=6000), doc="A log, read by the real parsers"),
        "config": Field(shape=Text(longest=6000), doc="A config, read by the real parsers"),
    }
)
RULE = Record(
    fields={
        "schema": Field(shape=Number(low=1, high=1, whole=True), doc="Always 1", required=True),
        "code": Field(
            shape=Text(longest=7, pattern=CODE, hint="a family such as ALC3 and three digits"),
            doc="Stable code, never reused",
            required=True,
        ),
        "name": Field(
            shape=Text(longest=60, pattern=SLUG, hint="lower-case words joined by hyphens"),
            doc="Names the problem, not the cure",
            required=True,
        ),
        "cause": Field(
            shape=Text(longest=60, pattern=SLUG, hint="an entry of causes.yaml"),
            doc="Entry of causes.yaml that the rule speaks for; none for side findings",
        ),
        "related": Field(shape=Items(of=Text(longest=60), most=8), doc="Related causes or codes"),
        "title": Field(shape=Text(longest=100), doc="The problem in one line", required=True),
        "severity": Field(
            shape=Text(choices=tuple(s.value for s in Severity)), doc="How bad", required=True
        ),
        "maturity": Field(
            shape=Text(choices=tuple(m.value for m in Maturity)),
            doc="How much evidence stands behind it",
            required=True,
        ),
        "since": Field(
            shape=Text(longest=12, pattern=r"^\d+\.\d+\.\d+$", hint="a version such as 0.1.0"),
            doc="First version that has it",
            required=True,
        ),
        "category": Field(
            shape=Text(choices=tuple(CATEGORIES)),
            doc="What a lint rule is about; decides its family",
        ),
        "basis": Field(shape=Text(choices=BASES), doc="How the claim of a lint rule is known"),
        "source": Field(
            shape=Text(longest=500), doc="Versions, files and lines, or the experiment behind it"
        ),
        "breaks_from": Field(
            shape=Table(of=Text(longest=20), keys=PACKAGES),
            doc="Package and first version that refuses what the gate finds",
        ),
        "at": Field(
            shape=Items(of=Text(longest=60), most=6),
            doc="Facts whose place the finding is shown at, the best first",
        ),
        "says": Field(
            shape=Text(longest=400),
            doc="The verdict, with {fact.key} places and [clauses]",
        ),
        "when": Field(shape=_CONDITION, doc="The gate: false rules it out", required=True),
        "evidence": Field(shape=Items(of=_EVIDENCE, most=24), doc="What speaks for and against"),
        "explains": Field(shape=_FORMULA, doc="Bytes of the overshoot that it accounts for"),
        "fixes": Field(shape=Items(of=_FIX, most=12), doc="Changes that cure"),
        "why": Field(shape=Text(longest=3000), doc="The mechanism, with numbers", required=True),
        "known_problems": Field(
            shape=Text(longest=2000), doc="Where the rule can be wrong", required=True
        ),
        "references": Field(
            shape=Items(of=Text(longest=300), least=1, most=12), doc="Links", required=True
        ),
        "confirm": Field(shape=Table(of=Plain()), doc="The experiment that proves the cause"),
        "tests": Field(
            shape=Items(of=_TEST, least=1, most=60), doc="Inline tests of the rule", required=True
        ),
    }
)


def check_shape(node: yaml.Node, *, path: str) -> tuple[Problem, ...]:
    """Return everything that is wrong with the shape of a rule file."""
    return tuple(RULE.check(node, path))


def json_schema() -> dict[str, object]:
    """Return the JSON Schema (draft-07) of a rule file."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://oomdoctor.invalid/rule.schema.json",
        "title": "oomdoctor rule",
        **RULE.json_schema(),
        "definitions": {
            f"condition{depth}": _condition_schema(depth) for depth in range(1, MAX_DEPTH + 2)
        },
    }


def _condition_schema(depth: int) -> dict[str, object]:
    leaf: dict[str, object] = {"type": "string", "minLength": 1, "maxLength": MAX_CHARS}
    if depth > MAX_DEPTH:
        return leaf
    below = {"$ref": f"#/definitions/condition{depth + 1}"}
    parts = {"type": "array", "items": below, "minItems": 1}
    return {
        "anyOf": [
            leaf,
            *(
                {
                    "type": "object",
                    "properties": {name: below if name == "not" else parts},
                    "required": [name],
                    "additionalProperties": False,
                }
                for name in SKELETON
            ),
        ]
    }
