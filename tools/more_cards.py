"""Cards that gpus.yaml has no row for: name, architecture, compute capability, memory in GB.

Sizes and capabilities are those of the makers' product pages (nvidia.com, amd.com) and of
https://developer.nvidia.com/cuda-gpus; nobody's own measurement of them was at hand, so a row has
no figure of a driver.
"""

from __future__ import annotations

from typing import Any

_MAXWELL, _PASCAL, _TURING = ("Maxwell", "5.2"), ("Pascal", "6.1"), ("Turing", "7.5")
_AMPERE, _ADA, _BLACKWELL = ("Ampere", "8.6"), ("Ada", "8.9"), ("Blackwell", "12.0")
_RDNA2, _RDNA3 = ("RDNA2", None), ("RDNA3", None)
_NO_TENSOR_CORES = ("GTX 16", "MX", "T400", "T600", "T1000")
_CARDS: tuple[tuple[str, tuple[str, str | None], tuple[int, ...]], ...] = (
    ("NVIDIA GeForce GTX 750 Ti", ("Maxwell", "5.0"), (2, 4)),
    ("NVIDIA GeForce GTX 960", _MAXWELL, (2, 4)),
    ("NVIDIA GeForce GTX 970", _MAXWELL, (4,)),
    ("NVIDIA GeForce GTX 980", _MAXWELL, (4,)),
    ("NVIDIA GeForce GTX 980 Ti", _MAXWELL, (6,)),
    ("NVIDIA GeForce GTX TITAN X", _MAXWELL, (12,)),
    ("Quadro M6000", _MAXWELL, (12, 24)),
    ("NVIDIA GeForce GTX 1050 Ti", _PASCAL, (4,)),
    ("NVIDIA GeForce GTX 1060 3GB", _PASCAL, (3,)),
    ("NVIDIA GeForce MX150", _PASCAL, (2, 4)),
    ("Quadro P1000", _PASCAL, (4,)),
    ("Quadro P2000", _PASCAL, (4, 5)),
    ("Quadro P2200", _PASCAL, (5,)),
    ("Quadro P4000", _PASCAL, (8,)),
    ("Quadro P5000", _PASCAL, (16,)),
    ("Quadro P6000", _PASCAL, (24,)),
    ("Quadro GP100", ("Pascal", "6.0"), (16,)),
    ("Quadro GV100", ("Volta", "7.0"), (32,)),
    ("NVIDIA GeForce GTX 1630", _TURING, (4,)),
    ("NVIDIA GeForce GTX 1650 SUPER", _TURING, (4,)),
    ("NVIDIA GeForce MX450", _TURING, (2,)),
    ("NVIDIA T400", _TURING, (2, 4)),
    ("NVIDIA T600", _TURING, (4,)),
    ("NVIDIA T1000", _TURING, (4, 8)),
    ("Quadro RTX 3000", _TURING, (6,)),
    ("Quadro RTX 4000", _TURING, (8,)),
    ("NVIDIA RTX A1000", _AMPERE, (4, 8)),
    ("NVIDIA RTX A2000", _AMPERE, (6, 12)),
    ("NVIDIA RTX A3000 Laptop GPU", _AMPERE, (6, 12)),
    ("NVIDIA RTX A5500", _AMPERE, (24,)),
    ("NVIDIA GeForce RTX 3050 Ti Laptop GPU", _AMPERE, (4,)),
    ("NVIDIA GeForce RTX 3070 Laptop GPU", _AMPERE, (8,)),
    ("NVIDIA GeForce RTX 3070 Ti Laptop GPU", _AMPERE, (8,)),
    ("NVIDIA GeForce RTX 3080 Laptop GPU", _AMPERE, (8, 16)),
    ("NVIDIA GeForce RTX 3080 Ti Laptop GPU", _AMPERE, (16,)),
    ("NVIDIA GeForce RTX 4050 Laptop GPU", _ADA, (6,)),
    ("NVIDIA GeForce RTX 4080 Laptop GPU", _ADA, (12,)),
    ("NVIDIA RTX 2000 Ada Generation", _ADA, (16,)),
    ("NVIDIA RTX 4500 Ada Generation", _ADA, (24,)),
    ("NVIDIA GeForce RTX 5050", _BLACKWELL, (8,)),
    ("NVIDIA GeForce RTX 5070 Laptop GPU", _BLACKWELL, (8,)),
    ("NVIDIA GeForce RTX 5070 Ti Laptop GPU", _BLACKWELL, (12,)),
    ("NVIDIA GeForce RTX 5080 Laptop GPU", _BLACKWELL, (16,)),
    ("NVIDIA GeForce RTX 5090 Laptop GPU", _BLACKWELL, (24,)),
    ("AMD Radeon RX 6600 XT", _RDNA2, (8,)),
    ("AMD Radeon RX 6700 XT", _RDNA2, (12,)),
    ("AMD Radeon RX 6800", _RDNA2, (16,)),
    ("AMD Radeon RX 6800 XT", _RDNA2, (16,)),
    ("AMD Radeon RX 6900 XT", _RDNA2, (16,)),
    ("AMD Radeon RX 7600", _RDNA3, (8,)),
    ("AMD Radeon RX 7700 XT", _RDNA3, (12,)),
    ("AMD Radeon RX 7800 XT", _RDNA3, (16,)),
    ("AMD Radeon RX 7900 GRE", _RDNA3, (16,)),
    ("AMD Radeon RX 7900 XT", _RDNA3, (20,)),
)


def more_cards() -> list[dict[str, Any]]:
    """Return one row of the table per card."""
    return [_row(name, *arch, sizes) for name, arch, sizes in _CARDS]


def _row(name: str, arch: str, capability: str | None, sizes: tuple[int, ...]) -> dict[str, Any]:
    of_amd = name.startswith("AMD")
    major, minor = (int(part) for part in (capability or "0.0").split("."))
    at_least = 10 * major + minor
    plain = at_least == 75 and any(word in name for word in _NO_TENSOR_CORES)
    row = {
        "name": name,
        "vendor": "amd" if of_amd else "nvidia",
        "architecture": arch,
        "compute_capability": capability,
        "nominal_gb": list(sizes),
        "bf16": arch == "RDNA3" if of_amd else at_least >= 80,
        "bnb_int8": at_least >= 75,
        "flash_attn_2": arch == "RDNA3" if of_amd else at_least >= 80,
        "flash_attn_3": False,
        "fp16_tensor_cores": at_least >= 70 and not plain,
        "fp8_tensor_cores": at_least >= 89,
    }
    return {key: value for key, value in row.items() if value is not None}
