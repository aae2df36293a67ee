"""Look up a card by the name that a tool or a person gives it.

    NVIDIA GeForce RTX 3090            name of nvidia-smi --query-gpu
    NVIDIA GeForce RTX 4090 ...        cut by the nvidia-smi table
    A100-SXM4-80GB, A100-80GB          older drivers, people
    H100 80GB HBM3 MIG 2g.20gb         a MIG slice

A name may fit several cards; then only what all of them share is known.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from oomdoctor.facts.tables import table
from oomdoctor.record import NamedTuple

MIB = 1 << 20
GIB = 1 << 30
SPREAD = 1.10
ROUNDING = 0.03
# What a card reports to PyTorch where only its nominal size, or that of nvidia-smi, is known: the
# driver keeps some. Seen: 0.979 (A10G) to 0.9957 (H200) of what nvidia-smi prints.
OF_SMI = 0.979
DRIVERS = 0.03  # totals of one card differ by so much between drivers
_LONGEST_NAME = 200
_MAKERS = frozenset(
    (
        "nvidia",
        "geforce",
        "tesla",
        "amd",
        "instinct",
        "radeon",
        "apple",
        "gpu",
        "graphics",
        "generation",
        "edition",
        "corporation",
    )
)


class Gpu(NamedTuple):
    """A card of the table; memory figures are alternatives, newest driver first."""

    name: str
    architecture: str
    compute_capability: str | None
    nominal_gb: tuple[int, ...]
    smi_mib: tuple[int, ...]
    torch_mib: tuple[int, ...]
    bf16: bool
    flash_attn_2: bool
    tokens: frozenset[str]
    aliases: tuple[str, ...] = ()
    called: frozenset[frozenset[str]] = frozenset()

    def totals(self) -> tuple[int, ...]:
        """Return every total in bytes that a tool may print for this card."""
        printed = tuple(size * MIB for size in (*self.torch_mib, *self.smi_mib))
        nominal = tuple(size * GIB for size in self.nominal_gb)
        known = [s for s in nominal if not any(abs(s - p) < 0.08 * s for p in printed)]
        return (*printed, *known)

    def reported_bytes(self) -> int:
        """Return what it reports to PyTorch: the least of what its drivers were seen to say."""
        if self.torch_mib:
            newest = self.torch_mib[0]
            near = (one for one in self.torch_mib if abs(one - newest) <= DRIVERS * newest)
            return MIB * min(near)
        if self.smi_mib:
            return int(MIB * self.smi_mib[0] * OF_SMI)
        return int(GIB * (self.nominal_gb or (0,))[0] * OF_SMI)


class Total(NamedTuple):
    """A total that a name fixes: bytes and the half width that drivers and ECC leave open."""

    bytes: int
    slack_bytes: int


@cache
def cards() -> tuple[Gpu, ...]:
    """Return the table; read once, when first asked for."""
    return tuple(_card(row) for row in table("gpus"))


def _card(row: dict[str, object]) -> Gpu:
    name = str(row["name"])
    capability = row.get("compute_capability")
    aliases = tuple(map(str, _items(row.get("aliases"))))
    return Gpu(
        name=name,
        architecture=str(row["architecture"]),
        compute_capability=None if capability is None else str(capability),
        nominal_gb=_ints(row.get("nominal_gb")),
        smi_mib=_ints(row.get("smi_mib")),
        torch_mib=_ints(row.get("torch_mib")),
        bf16=row.get("bf16") is True,
        flash_attn_2=row.get("flash_attn_2") is True,
        tokens=frozenset(_tokens(name)),
        aliases=aliases,
        called=frozenset(frozenset(_tokens(alias)) for alias in aliases),
    )


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _ints(value: object) -> tuple[int, ...]:
    return tuple(int(item) for item in _items(value) if isinstance(item, (int, float)))


def lookup(name: str) -> tuple[Gpu, ...]:
    """Return all cards that `name` may mean, the best match alone where there is one."""
    bare, _ = split_mig(name[:_LONGEST_NAME])
    bare = _without_count(bare)
    cut = bare.rstrip()
    if cut.endswith(("...", "…")):
        return _by_prefix(cut.rstrip(".… "))
    wanted = frozenset(_tokens(bare))
    sizes = frozenset(token for token in wanted if _memory_gb(token) is not None)
    model = wanted - sizes
    if "titan" not in model and not any(token.isdecimal() for token in model):
        return ()
    exact = tuple(card for card in cards() if card.tokens == wanted or wanted in card.called)
    if exact:
        return exact
    near = tuple(card for card in cards() if model <= card.tokens and _sizes_fit(card, sizes))
    same = tuple(card for card in near if _model_tokens(card) == model)
    desktop = tuple(card for card in near if "laptop" in model or "laptop" not in card.tokens)
    return same or desktop or near


def _model_tokens(card: Gpu) -> frozenset[str]:
    return frozenset(token for token in card.tokens if _memory_gb(token) is None)


def _sizes_fit(card: Gpu, sizes: frozenset[str]) -> bool:
    """Say whether the memory in a name (`80GB`) is one that the card comes with."""
    stated = [_memory_gb(token) for token in sizes]
    return all(size in card.nominal_gb for size in stated)


def _by_prefix(start: str) -> tuple[Gpu, ...]:
    """Return the cards whose printed name begins as the cut one does."""
    low = " ".join(start.lower().split())
    starts = (low, f"nvidia {low}", f"nvidia geforce {low}")
    return tuple(card for card in cards() if card.name.lower().startswith(starts))


def _tokens(name: str) -> list[str]:
    """Split a name into words and numbers: `A100-SXM4-80GB` is a, 100, sxm, 4, 80gb."""
    plain = name.lower().split("(uuid")[0]
    words = "".join(c if c.isalnum() else " " for c in plain).split()
    parts: list[str] = []
    for word in words:
        parts.extend([word] if _memory_gb(word) is not None else _pieces(word))
    joined: list[str] = []
    for part in parts:
        if part in ("gb", "gib") and joined and joined[-1].isdecimal():
            joined[-1] += "gb"
        elif part not in _MAKERS:
            joined.append(part)
    return joined


def _pieces(word: str) -> list[str]:
    """Split a word where letters meet digits."""
    pieces = [word[:1]]
    for before, after in pairwise(word):
        if before.isdecimal() == after.isdecimal():
            pieces[-1] += after
        else:
            pieces.append(after)
    return pieces


def _memory_gb(token: str) -> int | None:
    """Return 80 for `80gb` or `80gib`, None for any other token."""
    number = token.removesuffix("gib").removesuffix("gb")
    return int(number) if number != token and number.isdecimal() else None


def _without_count(name: str) -> str:
    """Drop the count in front of a name: `4x A100`, `8 x H100`."""
    head, mark, rest = name.strip().partition("x" if "x" in name else "\u00d7")
    return rest if mark and head.strip().isdecimal() else name


def split_mig(name: str) -> tuple[str, int | None]:
    """Return the card's name and the GB of the slice: `A100 ... MIG 2g.20gb` gives 20."""
    low = name[:_LONGEST_NAME].lower()
    at = low.find("mig ")
    if at < 0:
        return name, None
    profile = low[at + 4 :].split()[0] if low[at + 4 :].split() else ""
    size = profile.partition(".")[2].split("+")[0].removesuffix("gb")
    return name[:at].rstrip(" -"), int(size) if size.isdecimal() and len(size) < 5 else None


def fixed_total(found: tuple[Gpu, ...]) -> Total | None:
    """Return the memory that the candidates agree on, None where variants share the name."""
    totals = [total for card in found for total in card.totals()]
    if not totals or max(totals) > SPREAD * min(totals):
        return None
    middle = totals[0]
    reach = max(max(totals) - middle, middle - min(totals), int(ROUNDING * middle))
    return Total(middle, reach)


def fits_capacity(found: tuple[Gpu, ...], capacity_bytes: int, *, slack_bytes: float = 0) -> bool:
    """Say whether a printed capacity is one that some candidate comes with (3 % for drivers)."""
    return any(
        abs(total - capacity_bytes) <= ROUNDING * total + slack_bytes
        for card in found
        for total in card.totals()
    )
