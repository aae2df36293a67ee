"""Tells IP addresses from versions, times and names with two colons."""

from __future__ import annotations

import re

from oomdoctor.redaction.ordinary import LOOPBACK
from oomdoctor.redaction.pattern import compiled

_SAID = (
    r"(?i)(?:(?<![a-z])(?:ip|addr\w*|host\w*|node\w*|server|client|peer|from|to|at|via|on|gateway"
    r"|dns|inet|remote|local|listen\w*|connect\w*|endpoint|ping|ssh|eth\d|bind\w*|rdzv\w*|master\w*"
    r"|\w*_addr|\w*_ip|port)|//|@)[\s\"'=:({\[/-]{0,6}$"
)
_VERSION = (
    r"(?i)(?:[=<>~!]=|\bv|version\w*|\bver\.?|release\w*|driver\w*|torch\w*|cud"
    r"\w+|nccl\w*|python\w*"
    r"|nvidia[\w-]*|nv\w*|lib[\w.+-]*|tensor\w*|rocm\w*|hip\w*|triton\w*|transformers|kernel"
    r"|firmware|vbios|bios|gcc|openssl|so\.|[A-Za-z]\w{0,60}-)[\s\"':=(v-]{0,6}$"
)
_PACKAGE_LINE = r"^[ \t]*[A-Za-z][\w.-]*(?:[ \t]{2,}|==|@|: ?\"?)$"


def is_ipv4(found: re.Match[str]) -> bool:
    """Say whether four numbers are an address of a machine, and no version or loopback."""
    text = found["it"]
    octets = [int(part) for part in text.split(".")]
    padded = any(len(part) > 1 and part[0] == "0" for part in text.split("."))
    if max(octets) > 255 or text in LOOPBACK or octets[0] in (0, 127) or padded:
        return False
    line_start = found.string.rfind("\n", 0, found.start()) + 1
    before = found.string[max(line_start, found.start() - 40) : found.start()]
    after = found.string[found.end() : found.end() + 8]
    said = compiled(_SAID).search(before) is not None
    if compiled(_VERSION).search(before) and not said:
        return False
    if said or re.match(r":\d{2,5}(?!\d)|/\d{1,2}\b", after) or _is_private(octets):
        return True
    whole = found.string[line_start : found.start()]
    if compiled(_PACKAGE_LINE).match(whole) and re.match(r"[\"',]?(?:[ \t]|$|\n)", after):
        return False
    return not re.match(r"[a-z+_]|-[a-z\d]", after) and (octets[0] >= 10 or max(octets) >= 40)


def _is_private(octets: list[int]) -> bool:
    first, second = octets[:2]
    return (
        first == 10
        or (first == 172 and 16 <= second <= 31)
        or (first == 192 and second == 168)
        or (first == 169 and second == 254)
        or (first == 100 and 64 <= second <= 127)
    )


def is_ipv6(found: re.Match[str]) -> bool:
    """Say whether groups between colons are an address, and no time and no name in C++."""
    text = found["it"].partition("%")[0]
    groups = [group for group in text.split(":") if group]
    if text in LOOPBACK or text.count("::") > 1 or ":::" in text or not groups:
        return False
    if "::" not in text and len(text.split(":")) != 8:
        return False
    if "::" in text and (len(groups) > 7 or text.startswith(":") != text.startswith("::")):
        return False
    if not text.endswith("::") and text.endswith(":"):
        return False
    telling = any(len(group) >= 3 for group in groups)
    return telling and any(map(str.isdecimal, text))
