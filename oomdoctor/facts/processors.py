"""How many streaming multiprocessors a card has: they decide how kernels split their work."""

from __future__ import annotations

# those in use, from NVIDIA's data sheets; sizes of some workspaces follow them
_PROCESSORS = {
    "V100": 80,
    "T4": 40,
    "TITAN RTX": 72,
    "RTX 2080 Ti": 68,
    "P100": 56,
    "A100": 108,
    "A30": 56,
    "A10G": 80,
    "A10": 72,
    "A40": 84,
    "RTX A6000": 84,
    "RTX A5000": 64,
    "RTX 3060": 28,
    "RTX 3070": 46,
    "RTX 3080": 68,
    "RTX 3090": 82,
    "RTX 3090 Ti": 84,
    "RTX 4060": 24,
    "RTX 4070": 46,
    "RTX 4080": 76,
    "RTX 4090": 128,
    "RTX 4090 Laptop": 76,
    "RTX 6000 Ada": 142,
    "L4": 58,
    "L40": 142,
    "L40S": 142,
    "H100 PCIe": 114,
    "H100 NVL": 132,
    "H100": 132,
    "H200": 132,
    "GH200": 132,
    "B200": 148,
    "GB200": 152,
    "RTX 5070": 48,
    "RTX 5080": 84,
    "RTX 5090": 170,
}
# of cards that are not named above, by compute capability: the largest card of it
_BY_CAPABILITY = {
    (7, 0): 80,
    (7, 5): 72,
    (8, 0): 108,
    (8, 6): 84,
    (8, 9): 142,
    (9, 0): 132,
    (10, 0): 148,
    (12, 0): 170,
}


def processors_of(name: str, capability: tuple[int, int]) -> int:
    """Return those of a card: by the longest name in its own, else by its capability."""
    words = name.lower().replace("-", " ").split()
    named = [known for known in _PROCESSORS if _stand_in_row(known.lower().split(), words)]
    if named:
        return _PROCESSORS[max(named, key=len)]
    near = [known for known in _BY_CAPABILITY if known <= capability]
    return _BY_CAPABILITY[max(near)] if near else min(_BY_CAPABILITY.values())


def _stand_in_row(wanted: list[str], words: list[str]) -> bool:
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1))
