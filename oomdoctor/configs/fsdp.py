"""A file of FSDP's options alone, as `--fsdp_config` takes it, JSON or YAML.

{"version": 2, "reshard_after_forward": true, "cpu_ram_efficient_loading": true,
 "transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]}
fsdp: full_shard auto_wrap
fsdp_config: {fsdp_offload_params: true}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import meanings, parallel
from oomdoctor.configs.claims import Claim, Convert, Table, both, flag, given, word
from oomdoctor.configs.mapping import Dialect
from oomdoctor.configs.vocabulary_run import STATE_DICT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from oomdoctor.configs.setting import Setting, Settings

HEADS = frozenset(("fsdp", "fsdp_config", "fsdp_version"))
PREFIX = "fsdp_"
OPTIONS = frozenset(
    (
        *("transformer_layer_cls_to_wrap", "min_num_params", "backward_prefetch", "version"),
        "backward_prefetch_policy",
        *("forward_prefetch", "limit_all_gathers", "use_orig_params", "sync_module_states"),
        *("cpu_ram_efficient_loading", "activation_checkpointing", "reshard_after_forward"),
        *("offload_params", "cpu_offload", "auto_wrap_policy", "state_dict_type", "xla"),
        *("sharding_strategy", "xla_fsdp_v2", "xla_fsdp_settings", "xla_fsdp_grad_ckpt"),
        *("ignored_modules", "mixed_precision_policy", "process_group_backend"),
    )
)
TELLING = OPTIONS - {"version", "cpu_offload", "activation_checkpointing"}


_CONVERTERS: tuple[tuple[str, Convert], ...] = (
    ("offload_params", parallel.offload("dist.param_offload")),
    ("cpu_offload", parallel.offload("dist.param_offload")),
    ("state_dict_type", word("dist.state_dict", STATE_DICT)),
    ("auto_wrap_policy", parallel.wrap_policy),
    ("transformer_layer_cls_to_wrap", given("dist.auto_wrap")),
    ("sharding_strategy", parallel.fsdp_options),
    ("backward_prefetch", parallel.prefetch),
    ("backward_prefetch_policy", parallel.prefetch),
    ("limit_all_gathers", flag("dist.limit_all_gathers")),
    ("activation_checkpointing", both(meanings.checkpointing, flag("dist.fsdp_checkpointing"))),
)
KEYS: Table = {
    "fsdp": parallel.fsdp_options,
    **{
        f"{head}{prefix}{name}": convert
        for head in ("", "fsdp_config.")
        for prefix in ("", PREFIX)
        for name, convert in _CONVERTERS
    },
}


def matches(settings: Settings) -> bool:
    """Say whether nothing but options of FSDP is there, one that is FSDP's own among them."""
    names = {name.removeprefix(PREFIX) for name in settings.top - HEADS}
    if not settings.top or names - OPTIONS:
        return False
    own = names & TELLING or any(name.startswith(PREFIX) for name in settings.top - HEADS)
    return bool(own) or any(row.key.startswith("fsdp_config.") for row in settings)


def closes(settings: Settings) -> tuple[str, ...]:
    """Close what FSDP is told: the file is all of it."""
    del settings
    return ("fsdp-config",)


def derived(settings: Settings) -> Iterator[tuple[Claim, Setting]]:
    """Read the version, which decides between the two implementations."""
    names = [f"{head}{prefix}version" for head in ("", "fsdp_config.") for prefix in ("", PREFIX)]
    version = settings.first(*names)
    if version is not None and version.value in (1, 2, "1", "2"):
        yield Claim("dist.kind", f"fsdp{version.value}"), version
    elif version is None:
        resharding = ("reshard_after_forward", "fsdp_reshard_after_forward")
        second = settings.first(*resharding, *(f"fsdp_config.{name}" for name in resharding))
        first = settings.first("sharding_strategy", "fsdp_sharding_strategy")
        if second is not None and first is None:
            yield Claim("dist.kind", "fsdp2", 0, "reshard_after_forward is of FSDP2"), second


DIALECT = Dialect("fsdp", None, KEYS, matches, closes, derived, common=False)
