"""An adapter_config.json of PEFT.

{"peft_type": "LORA", "base_model_name_or_path": "gpt2", "r": 16, "lora_alpha": 32,
 "target_modules": ["c_attn"], "modules_to_save": ["lm_head"]}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import meanings, scalars
from oomdoctor.configs.claims import Claim, Table, count, flag, ratio, text, word
from oomdoctor.configs.mapping import Dialect, open_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Plain, Settings

TASKS = {
    "causal_lm": "sft",
    "seq_cls": "classification",
    "seq_2_seq_lm": "seq2seq",
    "token_cls": "classification",
}


def _type(value: Plain) -> Iterator[Claim]:
    if scalars.as_text(value):
        yield Claim("lora.on", value=True)


KEYS: Table = {
    "peft_type": _type,
    "base_model_name_or_path": meanings.model_name,
    "r": count("lora.rank"),
    "lora_alpha": ratio("lora.alpha"),
    "target_modules": text("lora.targets"),
    "modules_to_save": text("lora.modules_to_save"),
    "use_dora": flag("lora.dora"),
    "task_type": word("job.task", TASKS),
}


def matches(settings: Settings) -> bool:
    """Say whether PEFT wrote it."""
    return (
        "peft_type" in settings.top
        and settings.names("base_model_name_or_path", "r", "target_modules") >= 1
    )


DIALECT = Dialect("adapter_config", None, KEYS, matches, open_end, common=False)
