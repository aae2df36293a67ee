"""The config object of a model, from what its config.json holds.

Nothing is fetched and no code of a repository runs: a model whose classes transformers lacks ends
in an error that names the file with its code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from oomdoctor.worker.errors import NeedsFilesError, UnsupportedError
from oomdoctor.worker.observer import Silent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.model.job import Job, ModelSpec
    from oomdoctor.worker.observer import Observer

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
# attention kernels as transformers names them; a flash-attention package is needed for its own
# kernels alone: sdpa without a mask allocates what they do
_ATTENTION = {"eager": "eager", "sdpa": "sdpa", "flash": "sdpa", "flex": "sdpa"}
_LIKE_FLASH = {"flash": "FlashAttention's own package", "flex": "compiled flex attention"}
_NOT_OURS = frozenset(
    {
        *("quantization_config", "auto_map", "architectures", "transformers_version"),
        *("torch_dtype", "dtype", "_name_or_path", "_attn_implementation"),
    }
)


def dtype_of(name: str) -> torch.dtype:
    """Return torch's dtype of a job's name for it."""
    try:
        return DTYPES[name]
    except KeyError:
        raise UnsupportedError(f"weights of dtype {name} cannot be traced") from None


def config_of(job: Job, observer: Observer) -> Any:
    """Return the config that transformers would read, with the job's attention and caching."""
    config = _plain_config(job.model, observer)
    inner = _text_config(config)
    for part in {id(config): config, id(inner): inner}.values():
        part.use_cache = not job.trains
    if getattr(config, "is_encoder_decoder", False):
        for name in ("pad_token_id", "decoder_start_token_id"):  # what an answer begins with
            if getattr(config, name, None) is None:
                setattr(config, name, 0)
    config._attn_implementation = _attention(job, observer)
    if job.labels is not None:
        config.num_labels = job.labels
    return config


def whole_config(model: ModelSpec) -> dict[str, Any]:
    """Return what a config.json says with what its class has by default."""
    whole: dict[str, Any] = _plain_config(model, Silent()).to_dict()
    return whole


def _plain_config(model: ModelSpec, observer: Observer) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind = model.config.get("model_type")
    files = _remote_files(model.config)
    if kind not in CONFIG_MAPPING:
        if files:
            raise NeedsFilesError(
                f"{model.name} is built by code of its own repository, {', '.join(files)}, "
                f"which is not part of transformers",
                hint="estimate it with --engine formula",
            )
        raise UnsupportedError(
            f"{model.name}: transformers knows no model of the type {kind!r}",
            hint="its config.json has to name a model_type that the installed transformers has",
        )
    if files:
        observer.assume(f"transformers' own code of {kind} stands for {', '.join(files)}")
    values = {key: value for key, value in model.config.items() if key not in _NOT_OURS}
    values.pop("model_type", None)
    try:
        return CONFIG_MAPPING[kind](**values)
    except Exception as error:
        raise UnsupportedError(f"{model.name}: its config cannot be read: {error}") from error


def _remote_files(config: Mapping[str, object]) -> list[str]:
    """Return the files that hold a model's code, as its `auto_map` names them."""
    places = config.get("auto_map")
    if not isinstance(places, dict):
        return []
    classes = (one for value in places.values() for one in _flat(value))
    names = (str(name).rpartition("--")[2].rpartition(".")[0] for name in classes)
    return sorted({f"{name}.py" for name in names if name})


def _flat(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else [value] if value else []


def _text_config(config: Any) -> Any:
    get = getattr(config, "get_text_config", None)
    return config if get is None else get()


def _attention(job: Job, observer: Observer) -> str:
    if job.attention in _LIKE_FLASH:
        observer.assume(f"{_LIKE_FLASH[job.attention]} is traced as torch's flash kernel")
    try:
        return _ATTENTION[job.attention]
    except KeyError:
        raise UnsupportedError(f"attention {job.attention!r} cannot be traced") from None
