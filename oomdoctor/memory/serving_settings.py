"""Settings of an engine that have no fact of their own, by the names of its flags and arguments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomdoctor.memory.jobs_book import Said

GIB = 1 << 30
_OFF = ("0", "off", "false", "disabled", "no")
_OFFLOADS = (("sequential", "enable_sequential_cpu_offload"), ("model", "enable_model_cpu_offload"))
_GGML = {"0": "f32", "1": "f16", "2": "q4_0", "8": "q8_0"}  # ggml_type
_TILED = ("enable_tiling", "enable_vae_tiling")


class Settings:
    """Every setting in force by the last part of its name, and the calls of a script."""

    def __init__(self, said: Said) -> None:
        """Take the listing of a book apart."""
        self.text = said.glance("job.text")
        self._calls = said.glance("job.calls") + "\n" + self.text
        self._values: dict[str, str] = {}
        for line in said.glance("job.settings").splitlines():
            key, equals, value = line.partition(" = ")
            if equals:
                self._values[key.rpartition(".")[2].lower().replace("-", "_")] = value.strip()

    def word(self, *names: str) -> str | None:
        """Return what one of these names is set to."""
        return next((self._values[name] for name in names if name in self._values), None)

    def number(self, *names: str) -> float | None:
        """Return a number that one of these names is set to."""
        try:
            return float(self.word(*names) or "")
        except ValueError:
            return None

    def count(self, *names: str) -> int | None:
        """Return a whole number that one of these names is set to."""
        found = self.number(*names)
        return None if found is None else int(found)

    def gib(self, *names: str) -> int:
        """Return bytes of a number of GiB, 0 where there is none."""
        return int((self.number(*names) or 0.0) * GIB)

    def is_off(self, *names: str) -> bool:
        """Say whether one of these names is switched off."""
        return (self.word(*names) or "").lower() in _OFF

    def layers(self) -> int | None:
        """Return the layers that llama.cpp puts on cards, -1 for all."""
        return self.count("ngl", "n_gpu_layers", "gpu_layers", "num_gpu")

    def keys_type(self) -> str | None:
        """Return the number format of keys in llama.cpp's cache."""
        return self._type("ctk", "cache_type_k", "type_k")

    def values_type(self) -> str | None:
        """Return the number format of values where it is stated beside that of keys."""
        return self._type("ctv", "cache_type_v", "type_v")

    def _type(self, *names: str) -> str | None:
        found = self.word(*names)
        return None if found is None else _GGML.get(found, found.lower())

    def pixels(self) -> int | None:
        """Return the pixels of an image."""
        height, width = self.count("height"), self.count("width")
        return height * width if height and width else None

    def offload(self) -> str | None:
        """Return what a script lets a pipeline keep in main memory."""
        return next((kind for kind, call in _OFFLOADS if call in self._calls), None)

    def tiles(self) -> bool:
        """Say whether a script decodes in tiles."""
        return bool(re.search("|".join(_TILED), self._calls))
