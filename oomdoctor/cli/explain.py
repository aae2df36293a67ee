"""`oomdoctor explain`: what a code, a cause or a fact means."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, cast

import click

from oomdoctor.cli.exit_codes import ExitCode
from oomdoctor.cli.lazy import Example, HelpWithExamples
from oomdoctor.cli.options import complete_name, output_options, rules_option
from oomdoctor.cli.output import theme_for, write_result

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oomdoctor.render.layout import Line
    from oomdoctor.render.theme import Theme
    from oomdoctor.rules.shape import Condition, Rule, RuleSet


class Asked(TypedDict):
    """What the command line asks for."""

    name: str
    rules: tuple[str, ...]
    output: str | None
    force: bool
    color: str
    width: int | None


class Explain(HelpWithExamples):
    """The command with its examples."""

    examples = (
        Example("oomdoctor explain ACT2004", "a rule, by its code or its name"),
        Example("oomdoctor explain logits-vocab-fp32", "a cause"),
        Example("oomdoctor explain oom.requested", "a fact"),
    )


@click.command("explain", cls=Explain)
@click.argument("name", metavar="RULE|CAUSE|FACT", shell_complete=complete_name)
@rules_option
@output_options
def command(**values: object) -> int:
    """Explain a rule by its code or name, a cause by its name, or a fact by its key."""
    asked = cast("Asked", values)
    from oomdoctor.render.text import paint

    to_file = asked["output"] not in (None, "-")
    theme = theme_for(color=asked["color"], width=asked["width"], to_file=to_file)
    page = paint(_card(asked["name"], asked["rules"], theme), theme)
    write_result(page, path=asked["output"], force=asked["force"])
    return int(ExitCode.DONE)


def _card(name: str, directories: tuple[str, ...], theme: Theme) -> list[Line]:
    from oomdoctor.cli.settings import rule_directories
    from oomdoctor.facts.registry import specs
    from oomdoctor.render.cards import cause_card, fact_card, rule_card
    from oomdoctor.rules.loader import ALL, load_rules

    ruleset = load_rules((*rule_directories(), *directories), preview=True, bundles=ALL)
    cause = ruleset.causes.get(name.lower())
    rule = next((one for one in ruleset.rules if name.upper() == one.code), None)
    if rule is None and cause is None:
        rule = next((one for one in ruleset.rules if name.lower() == one.name), None)
    if rule is not None:
        return rule_card(rule, theme)
    if cause is not None:
        speaking = [one for one in ruleset.rules if one.cause == cause.id]
        return cause_card(cause, speaking, theme)
    spec = specs().get(name)
    if spec is not None:
        return fact_card(spec, [one for one in ruleset.rules if name in reads(one)], theme)
    raise _unknown(name, ruleset, specs())


def reads(rule: Rule) -> frozenset[str]:
    """Return the facts that a rule's gate and evidence read."""
    conditions = [rule.when, *(line.condition for line in rule.evidence)]
    return frozenset().union(*(_leaves(condition) for condition in conditions))


def _leaves(condition: Condition) -> frozenset[str]:
    own = condition.leaf.reads if condition.leaf is not None else frozenset()
    return own.union(*(_leaves(part) for part in condition.parts))


def _unknown(name: str, ruleset: RuleSet, keys: Iterable[str]) -> Exception:
    from difflib import get_close_matches

    from oomdoctor.errors import UsageError

    codes = {rule.code.lower(): rule.code for rule in ruleset.rules}
    codes |= {rule.name: rule.name for rule in ruleset.rules}
    known = {**codes, **{cause: cause for cause in ruleset.causes}, **{key: key for key in keys}}
    near = [known[one] for one in get_close_matches(name.lower(), known, n=3, cutoff=0.5)]
    hint = (
        f"did you mean {', '.join(near)}?"
        if near
        else "`oomdoctor rules list` shows codes and causes, `oomdoctor facts` shows facts"
    )
    return UsageError(f"no rule, cause or fact is called {name!r}", hint=hint)
