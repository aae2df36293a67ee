"""Lines of progress, parsed one at a time.

```
 10%|███       | 310/5200 [00:12<03:10,  1.33it/s]       tqdm, Trainer
Epoch 3:  12%|█▏        | 120/1000 [00:10<01:20]         Lightning: step within an epoch
{'loss': 0.61, 'learning_rate': 5e-05, 'epoch': 0.5}     Trainer's log
Epoch [1][50/7330]  lr: ...      Epoch: [0][ 10/5005]    OpenMMLab, ImageNet examples
 iteration      100/  500000 | consumed samples: ...     Megatron
step 164      iter: 300      [iter 50]      Step 3/1000
```
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from oomdoctor.record import NamedTuple

if TYPE_CHECKING:
    from oomdoctor.model.core import LogLine

_OTHER_BARS = (
    "loading",
    "download",
    "fetching",
    "map",
    "filter",
    "tokeniz",
    "running tokenizer",
    "generating",
    "saving",
    "capturing",
    "packing",
    "process",
    "adding requests",
    "preprocess",
    "creating",
    "extracting",
    "casting",
    "grouping",
    "caching",
    "scanning",
    "materializing",
    "resolving",
    "quantiz",
    "upload",
    "merging",
    "reading",
    "truncat",
    "applying",
    "writing",
    "flattening",
    "skipping",
    "compiling",
    "warm",
)
_EVAL_BARS = ("valid", "eval", "test", "predict", "sanity", "val ", "val:", "inference")


class Progress(NamedTuple):
    """One progress line: step, total and epoch as far as it shows them.

    `within_epoch` says that step and total count inside the epoch, `done` that a step it names is
    finished (a bar counts finished steps, `step 1` may be the one under way).
    """

    line: LogLine
    step: int | None = None
    total: int | None = None
    epoch: float | None = None
    share: float | None = None
    within_epoch: bool = False
    done: bool = False
    evaluates: bool = False


@lru_cache(maxsize=4096)
def parse_progress(line: LogLine) -> Progress | None:
    """Parse a line of progress, None where it is none; remembered, as failures share their past."""
    text = line.text[:2000]
    if "%|" in text:
        return _bar(line, text)
    if _digit().search(text) is None:
        return None
    lowered = text.lower()
    if "'epoch'" in text or '"epoch"' in text:
        return _logged(line, text)
    if not any(word in lowered for word in ("epoch", "step", "iter", "batch")):
        return None
    if any(word in lowered for word in _NO_PROGRESS):
        return None
    return _counted(line, text)


_NO_PROGRESS = (
    "total optimization",
    "total train",
    "total step",
    "total_step",
    "total batch",
    "accumulation",
    "warmup",
    "*****",
    " every ",
    "per epoch",
    "steps_per",
    "num_",
    "max_steps",
    "max steps",
    'file "',
    "args",
    " --",
    "namespace(",
    "batch size",
    "batch_size",
)


def _bar(line: LogLine, text: str) -> Progress | None:
    found = _bar_pattern().search(text)
    if found is None:
        return None
    label = found["label"].strip().lower()
    if any(label.startswith(word) for word in _OTHER_BARS):
        return None
    epoch = _epoch_of(found["label"])
    step, total = _number(found["step"]), _number(found["total"])
    share = int(found["percent"]) / 100 if step is None else None
    evaluates = any(word in label for word in _EVAL_BARS)
    if epoch and _from_one().search(found["label"]):
        epoch -= 1
    updates = _updates().search(text) if "num_updates=" in text else None
    if updates is not None:
        return Progress(line, int(updates[1]), None, epoch, done=True, evaluates=evaluates)
    within = epoch is not None
    return Progress(line, step, total, epoch, share, within, done=True, evaluates=evaluates)


def _logged(line: LogLine, text: str) -> Progress | None:
    epoch = _dict_epoch().search(text)
    step = _dict_step().search(text)
    if epoch is None:
        return None
    return Progress(
        line, int(step[1]) if step is not None else None, epoch=float(epoch[1]), done=True
    )


def _counted(line: LogLine, text: str) -> Progress | None:
    """Parse `Epoch 3/10`, `Epoch [1][50/7330]`, `step 164`, `iteration 100/ 5000`."""
    epoch = _epoch_of(text)
    inner = _epoch_then_step().search(text)
    lowered = text[:80].lower().lstrip()
    evaluates = lowered.startswith(_EVAL_BARS)
    if inner is not None:
        step, total = int(inner["step"]), int(inner["total"])
        zero_based = epoch is None or epoch == 0 or "]" not in text or ": [" in text
        shown = None if epoch is None else epoch - (0 if zero_based else 1)
        return Progress(line, step, total, shown, within_epoch=True, evaluates=evaluates)
    found = _step().search(text)
    if found is None:
        return None if epoch is None else Progress(line, epoch=epoch, evaluates=evaluates)
    planned = _number(found["total"])
    return Progress(line, int(found["step"].replace(",", "")), planned, epoch, evaluates=evaluates)


def _epoch_of(text: str) -> float | None:
    found = _epoch().search(text)
    return float(found[1]) if found is not None else None


def _number(text: str | None) -> int | None:
    """Read a bar's count: `310`, `1.2k` (tqdm's unit_scale), `?` is None."""
    if not text or text == "?":
        return None
    scale = {"k": 1000, "K": 1000, "M": 10**6, "G": 10**9}.get(text[-1], 1)
    digits = text.rstrip("kKMG").replace(",", "")
    try:
        return round(float(digits) * scale)
    except (ValueError, OverflowError):
        return None


@cache
def _digit() -> re.Pattern[str]:
    return re.compile(r"\d")


@cache
def _bar_pattern() -> re.Pattern[str]:
    return re.compile(
        r"(?P<label>[^|%]{0,200}?)(?<!\d)(?P<percent>\d{1,3})%\|[^|]{0,300}"
        r"(?:\| *(?P<step>\d[\d.,]*[kKMG]?)/(?P<total>\d[\d.,]*[kKMG]?|\?))?"
    )


@cache
def _dict_epoch() -> re.Pattern[str]:
    return re.compile(r"""["']epoch["']: ?["']?(\d+(?:\.\d+)?)""")


@cache
def _dict_step() -> re.Pattern[str]:
    return re.compile(r"""["'](?:global_)?step["']: ?["']?(\d+)\b""")


@cache
def _epoch() -> re.Pattern[str]:
    return re.compile(r"\b[Ee]poch(?:[ :=#(\[]|\s){0,6}(\d{1,6}(?:\.\d+)?)(?![\d%])(?: ?/ ?\d+)?")


@cache
def _from_one() -> re.Pattern[str]:
    """Match epochs that count from one: `epoch 001`, `Epoch 1/10`."""
    return re.compile(r"[Ee]poch\W{0,6}(?:0\d+|\d+ ?/ ?\d+)")


@cache
def _updates() -> re.Pattern[str]:
    """Match the optimizer steps that fairseq counts."""
    return re.compile(r"\bnum_updates=(\d{1,12})\b")


@cache
def _epoch_then_step() -> re.Pattern[str]:
    return re.compile(
        r"[Ee]poch\W{0,6}\d+(?:/\d+)?\]?,?\s{0,4}(?:[Ss]tep |[Ii]ter |[Bb]atch )?"
        r"[\[(]\s{0,8}(?P<step>\d{1,9})\s{0,4}/\s{0,8}(?P<total>\d{1,9})[\])]"
    )


@cache
def _step() -> re.Pattern[str]:
    return re.compile(
        r"(?<![\w\-])(?<![Bb]est[_ ])(?:global[_ ])?"
        r"(?:[Ss][Tt][Ee][Pp]|[Ii]ter(?:ation)?|ITER|[Bb]atch)"
        r"\W{0,4}?\s{0,8}(?P<step>\d[\d,]{0,12})(?![\w.%])"
        r"(?:\s{0,8}/\s{0,8}(?P<total>\d[\d,]{0,12}))?"
    )
