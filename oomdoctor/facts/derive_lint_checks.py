"""Derived facts for single checks of lint: groups of answers, evaluation without data, wheels."""

from __future__ import annotations

import re
from functools import cache

from oomdoctor.facts.derivation import Inputs, Outcome, derives
from oomdoctor.facts.derive_lint_precision import SETTINGS, version
from oomdoctor.model.enums import Origin

GROUP = 8  # TRL's default of num_generations, 0.15 to 1.16
GRPO = frozenset(("trl", "axolotl"))
EVALUATES = ("steps", "epoch")
MOST_ACCUMULATION = 4096
COUNTS_ACCUMULATION = (0, 17)  # TRL 0.15 and 0.16 take rows x ranks alone
# boards whose own builds carry them (torch 2.13 cuda/__init__.py DEVICE_REQUIREMENT)
EMBEDDED = frozenset(((5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)))
LATE_CUDA = (12, 8)  # wheels for 12.8 and later begin with sm_75 and reach sm_120
FIRST_BLACKWELL = (2, 7)  # first PyTorch whose wheels know compute capability 10.0


@derives(
    "rl.group",
    reads=("rl.generations", "job.task", "job.framework", "job.script", "job.calls", SETTINGS),
)
def group(facts: Inputs) -> Outcome | None:
    """Stated, or TRL's 8; RLOO has another default."""
    said = facts.maybe_int("rl.generations")
    if facts.text("job.task") != "grpo" or facts.text("job.framework") not in GRPO:
        return None
    if said is not None:
        return Outcome(said, "num_generations")
    words = "\n".join(map(facts.glance, ("job.script", "job.calls", SETTINGS))).lower()
    return None if "rloo" in words else Outcome(GROUP, "default of TRL's GRPO", guess=True)


@derives(
    "rl.generation_rows",
    reads=(
        *("rl.group", "rl.generation_batch", "rl.steps_per_generation", "dist.world_size"),
        *("train.micro_batch", "train.grad_accum", "env.trl"),
    ),
)
def generation_rows(facts: Inputs) -> Outcome:
    """Stated, or rows per device x ranks x steps per generation (else accumulation)."""
    said = facts.maybe_int("rl.generation_batch")
    if said is not None:
        return Outcome(said, "generation_batch_size")
    facts.whole("rl.group")
    steps = facts.maybe_int("rl.steps_per_generation")
    per_step = facts.whole("train.micro_batch") * facts.whole("dist.world_size")
    if steps is not None:
        return Outcome(per_step * steps, "rows x ranks x steps per generation")
    if _is_old(facts):
        return Outcome(per_step, "rows x ranks: TRL before 0.17")
    return Outcome(per_step * facts.whole("train.grad_accum"), "rows x ranks x accumulation")


def _is_old(facts: Inputs) -> bool:
    """Say whether a stated TRL leaves accumulation out; an assumed one decides nothing."""
    fact = facts.get("env.trl")
    if fact is None or fact.origin is Origin.ASSUMED:
        facts.used.pop("env.trl", None)
        return False
    return version(str(fact.value)) < COUNTS_ACCUMULATION


@derives("rl.groups_uneven", reads=("rl.group", "rl.generation_rows"))
def groups_uneven(facts: Inputs) -> Outcome:
    """A group of one has no advantage; otherwise the remainder decides."""
    size = facts.whole("rl.group")
    if size == 1:
        return Outcome(value=True, source="a group of one answer")
    return Outcome(facts.whole("rl.generation_rows") % size != 0, "answers modulo group")


@derives(
    "rl.eval_groups_uneven",
    reads=(
        *("rl.group", "rl.eval_generations", "eval.strategy", "eval.batch", "dist.world_size"),
        SETTINGS,
    ),
)
def eval_groups_uneven(facts: Inputs) -> Outcome | None:
    """The evaluation batch of all ranks must hold whole groups, too."""
    size, when = facts.whole("rl.group"), facts.maybe_text("eval.strategy")
    if when is None and not _pattern(r"\beval(?:uation)?_strategy\b").search(
        facts.glance(SETTINGS)
    ):
        return Outcome(value=False, source="no evaluation is asked for", guess=True)
    if facts.text("eval.strategy") not in EVALUATES:
        return Outcome(value=False, source="no evaluation")
    size = facts.maybe_int("rl.eval_generations") or size
    rows = facts.whole("eval.batch") * facts.whole("dist.world_size")
    return Outcome(rows % size != 0, "evaluation rows x ranks modulo group")


@derives(
    "rl.even_accum",
    reads=(
        *("rl.group", "rl.groups_uneven", "rl.generation_batch", "rl.steps_per_generation"),
        *("train.micro_batch", "train.grad_accum", "dist.world_size", "env.trl"),
    ),
)
def even_accum(facts: Inputs) -> Outcome | None:
    """The next accumulation that fills whole groups, where the accumulation decides at all."""
    size, rows = facts.whole("rl.group"), facts.whole("train.micro_batch")
    if facts.maybe_int("rl.generation_batch") or facts.maybe_int("rl.steps_per_generation"):
        return None
    if size < 2 or not facts.flag("rl.groups_uneven") or _is_old(facts):
        return None
    per_step, start = rows * facts.whole("dist.world_size"), facts.whole("train.grad_accum")
    for steps in range(start, min(start + size, MOST_ACCUMULATION)):
        if per_step * steps % size == 0:
            return Outcome(steps, "least accumulation that fills whole groups")
    return None


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source, re.MULTILINE)


@derives(
    "eval.without_data",
    reads=("job.framework", "eval.strategy", "code.evaluates", SETTINGS),
)
def without_data(facts: Inputs) -> Outcome | None:
    """As each framework checks it; silent where a script decides what is evaluated."""
    framework = facts.text("job.framework")
    settings = facts.glance(SETTINGS)
    if framework == "axolotl":
        return _axolotl(settings) if settings else None
    if framework == "llamafactory":
        return _llamafactory(settings) if "train-config" in facts.closed else None
    if framework not in ("transformers", "trl"):
        return None
    asked, handed = facts.text("eval.strategy"), facts.flag("code.evaluates")
    return Outcome(asked in EVALUATES and not handed, "what the trainer is given")


def _axolotl(settings: str) -> Outcome:
    """val_set_size 0 is refused beside eval_steps or eval_strategy, but with test_datasets."""
    none_held = _pattern(r"^val_set_size = 0(?:\.0*)?$").search(settings)
    asked = _pattern(r"^eval_(?:steps = (?!0$|null$|false$)|strategy = (?:steps|epoch)$)")
    off = _pattern(r"^eval_strategy = (?:no|false)$").search(settings)
    own = _pattern(r"^test_datasets\b").search(settings)
    found = bool(none_held and asked.search(settings) and not off and not own)
    return Outcome(found, "val_set_size 0 beside an evaluation schedule")


def _llamafactory(settings: str) -> Outcome:
    """A training run that evaluates or predicts needs eval_dataset or val_size."""
    trains = _pattern(r"^do_train = true$").search(settings)
    asked = _pattern(
        r"^(?:(?:eval|evaluation)_strategy = (?:steps|epoch)|(?:do_eval|do_predict) = true)$"
    ).search(settings)
    held = _pattern(r"^val_size = (?!0(?:\.0*)?$|null$)").search(settings)
    own = _pattern(r"^eval_dataset = (?!null$)|^eval_dataset\.").search(settings)
    found = bool(trains and asked and not held and not own)
    return Outcome(found, "neither eval_dataset nor val_size in a complete config")


@derives("logging.named", reads=(SETTINGS,))
def logging_named(facts: Inputs) -> Outcome | None:
    """A setting of this name stands somewhere, or a whole config has none."""
    if _pattern(r"\breport_to\b").search(facts.glance(SETTINGS)):
        return Outcome(value=True, source="report_to")
    closed = "train-config" in facts.closed
    return Outcome(value=False, source="a whole config") if closed else None


@derives("logging.null", reads=(SETTINGS,))
def logging_null(facts: Inputs) -> Outcome | None:
    """The word none is read as nothing, too: what is written tells the two apart."""
    fact = facts.get(SETTINGS)
    if fact is None:
        return None
    facts.used.clear()  # the place of the setting is found by the rule, not all settings
    nulls = _pattern(r"^(?:\w+\.)?report_to = null$")
    rows = zip(str(fact.value).split("\n"), fact.quotes, strict=False)
    written = [quote.text.strip("\"'") for row, quote in rows if nulls.search(row)]
    return Outcome(any(word != "none" for word in written), "what is written for report_to")


@derives("merge.one_load", reads=("job.calls",))
def one_load(facts: Inputs) -> Outcome | None:
    """A merge after one load of a model; a second load may be the base in 16 bit."""
    calls = facts.glance("job.calls").split("\n")
    if calls == [""]:
        return None
    merges = [
        number
        for number, call in enumerate(calls)
        if call.startswith("call ") and call.endswith(("merge_and_unload", "merge_adapter"))
    ]
    if not merges:
        return Outcome(value=False, source="nothing is merged")
    if any("Fast" in call for call in calls):  # Unsloth merges in a way of its own
        return None
    loads = _pattern(r"^call (?:\w+\.)*(?!PeftModel)\w*Model\w*\.from_pretrained$")
    found = sum(loads.match(call) is not None for call in calls[: merges[-1]])
    return Outcome(value=True, source="one model is loaded") if found == 1 else None


@derives("env.transformers_known", reads=("env.transformers",))
def transformers_known(facts: Inputs) -> Outcome | None:
    """Stated, locked or installed: not the newest version for want of another."""
    fact = facts.get("env.transformers")
    return None if fact is None else Outcome(fact.origin is not Origin.ASSUMED, "where it is from")


@derives(
    "env.arch_missing",
    reads=("gpu.compute_capability", "env.arch_list", "env.torch_cuda", "env.torch"),
)
def arch_missing(facts: Inputs) -> Outcome | None:
    """By the list of the build, by the CUDA of an official wheel, or by PyTorch's age."""
    capability = (*version(facts.text("gpu.compute_capability")), 0)[:2]
    if capability in EMBEDDED:
        return None
    listed = facts.maybe_text("env.arch_list")
    if listed is not None:
        return Outcome(not _runs(listed, capability), "list of the build's architectures")
    if version(facts.text("env.torch"))[:2] < FIRST_BLACKWELL:
        source = "wheels of PyTorch before 2.7 end with compute capability 9.0"
        return Outcome(value=True, source=source, guess=True) if capability >= (10, 0) else None
    cuda = version(facts.text("env.torch_cuda"))[:2]
    late = cuda >= LATE_CUDA
    missing = capability < (7, 5) if late else capability >= (10, 0)
    return Outcome(missing, f"wheels for CUDA {'from 12.8 on' if late else 'before 12.8'}")


def _runs(listed: str, capability: tuple[int, ...]) -> bool:
    """Machine code runs on later minors of its major, PTX (compute_XY) on everything later."""
    major, minor = capability
    for kind, digits in re.findall(r"\b(sm|compute)_(\d{2,3})", listed):
        code = (int(digits[:-1]), int(digits[-1]))
        if code <= (major, minor) and (kind == "compute" or code[0] == major):
            return True
    return False


STEPS = (
    group,
    generation_rows,
    groups_uneven,
    eval_groups_uneven,
    even_accum,
    without_data,
    logging_named,
    logging_null,
    one_load,
    transformers_known,
    arch_missing,
)
