"""Lets sharded trainings save their shards instead of gathering the whole state on one rank."""

from __future__ import annotations

import functools
import os
from typing import Any


def install(agent: Any, arguments: dict[str, Any]) -> None:
    """Set what accelerate reads, and wait for FSDP and DeepSpeed."""
    del arguments
    os.environ["FSDP_STATE_DICT_TYPE"] = "SHARDED_STATE_DICT"
    agent.when_imported(
        "torch.distributed.fsdp.fully_sharded_data_parallel", functools.partial(_shard, agent)
    )
    agent.when_imported("deepspeed.runtime.engine", functools.partial(_keep_apart, agent))


def _shard(agent: Any, module: Any) -> None:
    kinds = module.StateDictType
    original = module.FullyShardedDataParallel.set_state_dict_type

    @functools.wraps(original)
    def set_state_dict_type(model: Any, state_dict_type: Any, *given: Any, **named: Any) -> Any:
        if state_dict_type == kinds.FULL_STATE_DICT:
            agent.intervened("save-without-gather")
            state_dict_type, given, named = kinds.SHARDED_STATE_DICT, (), {}
        return original(model, state_dict_type, *given, **named)

    module.FullyShardedDataParallel.set_state_dict_type = staticmethod(set_state_dict_type)


def _keep_apart(agent: Any, module: Any) -> None:
    def never(self: Any) -> bool:
        del self
        agent.intervened("save-without-gather")
        return False

    module.DeepSpeedEngine.zero_gather_16bit_weights_on_model_save = never
