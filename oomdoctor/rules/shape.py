"""What a compiled rule is: conditions, evidence lines, fixes, and the words around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from oomdoctor.record import dataclass, field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oomdoctor.model.enums import Kind, Maturity, Safety, Severity

Tree: TypeAlias = "list[Tree | str | int | float | bool]"
"""A compiled expression as nested lists, head first, such as ["<", ["fact", "oom.free"], 3]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A typed one-line expression: its source text, compiled tree, kind, and the facts it reads."""

    source: str
    tree: Tree
    kind: Kind
    reads: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A node of the all/any/not skeleton; a leaf (op "leaf") holds a boolean expression.

    `heavy` says that a pattern is searched somewhere below, so that cheap parts go first.
    """

    op: str
    leaf: Expression | None = None
    parts: tuple[Condition, ...] = ()
    heavy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """How often a condition is seen when the cause holds and when it does not (0..1 each)."""

    condition: Condition
    in_cause: float
    otherwise: float
    label: str
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingFormula:
    """Expressions of kind bytes for what a fix saves."""

    low: Expression
    likely: Expression
    high: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A change that cures: who spells it how, what it saves, costs and risks.

    `needs` false leaves it out; `in_force` true suppresses it as already done. `patch` maps a
    dialect name (hf_trainer, trl, axolotl, llamafactory, deepspeed, accelerate, env, ...) to its
    own keys and values; `advice` is one imperative sentence for where no patch exists.
    """

    id: str
    title: str
    safety: Safety
    needs: Condition | None = None
    in_force: Condition | None = None
    time_factor: float = 1.0
    quality: str = "none"
    saves: SavingFormula | None = None
    patch: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    advice: str | None = None
    cautions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """An entry of the vocabulary: what ran out, what it means, what it is near to.

    `training` marks a cause that a job which trains nothing cannot have.
    """

    id: str
    resource: str
    definition: str
    tells_apart: str
    near: tuple[str, ...] = ()
    training: bool = False
    prior: float = 0.001
    prior_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule file, compiled. Rules without a cause are side findings about the config.

    `says` is the verdict sentence, with {fact.key} places that are filled with printed values.
    Lint rules also have a `category`, a `basis` (how the claim is known) with its `source`,
    `breaks_from` (package: first version that refuses what the gate finds) and `at` (facts whose
    place the finding is shown at, the best first).
    """

    code: str
    name: str
    title: str
    severity: Severity
    maturity: Maturity
    since: str
    when: Condition
    cause: str | None = None
    related: tuple[str, ...] = ()
    says: str | None = None
    evidence: tuple[Evidence, ...] = ()
    explains: Expression | None = None
    fixes: Sequence[Fix] = ()
    why: str = ""
    known_problems: str = ""
    references: tuple[str, ...] = ()
    confirm: Mapping[str, object] = field(default_factory=dict)
    path: str | None = None
    category: str | None = None
    basis: str | None = None
    source: str | None = None
    breaks_from: Mapping[str, str] = field(default_factory=dict)
    at: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """All rules in force, the vocabulary of causes, and the rules that could not be loaded."""

    rules: tuple[Rule, ...]
    causes: Mapping[str, Cause]
    faults: tuple[tuple[str, str], ...] = ()
