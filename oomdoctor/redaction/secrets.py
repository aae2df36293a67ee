"""Shapes of secrets: keys with a known beginning, values of telling keys, headers, URLs.

HF_TOKEN=hf_...        "api_key": "..."        Authorization: Bearer ...        ?sig=...
postgres://lena:...@db/runs                    --password ...                   eyJ....eyJ....
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oomdoctor.redaction.pattern import IS, QUOTES, Pattern, compiled

if TYPE_CHECKING:
    from collections.abc import Iterator

# literal beginning -> what may follow
_BEGINNINGS = {
    "hf_": r"[A-Za-z0-9]{10,}",
    "api_org_": r"[A-Za-z0-9]{10,}",
    "sk-": r"[A-Za-z0-9_-]{16,}",
    "sk_live_": r"\w{8,}",
    "sk_test_": r"\w{8,}",
    "rk_live_": r"\w{8,}",
    "ghp_": r"[A-Za-z0-9]{16,}",
    "gho_": r"[A-Za-z0-9]{16,}",
    "ghu_": r"[A-Za-z0-9]{16,}",
    "ghs_": r"[A-Za-z0-9]{16,}",
    "ghr_": r"[A-Za-z0-9]{16,}",
    "github_pat_": r"\w{16,}",
    "glpat-": r"[\w.-]{12,}",
    "gldt-": r"[\w.-]{12,}",
    "glrt-": r"[\w.-]{12,}",
    "glcbt-": r"[\w.-]{12,}",
    "AKIA": r"[A-Z0-9]{12,}",
    "ASIA": r"[A-Z0-9]{12,}",
    "AROA": r"[A-Z0-9]{12,}",
    "LTAI": r"[A-Za-z0-9]{12,}",
    "AIza": r"[\w-]{30,}",
    "ya29.": r"[\w-]{12,}",
    "GOCSPX-": r"[\w-]{12,}",
    "xapp-": r"[\w-]{10,}",
    "xoxa-": r"[\w-]{8,}",
    "xoxb-": r"[\w-]{8,}",
    "xoxe-": r"[\w-]{8,}",
    "xoxp-": r"[\w-]{8,}",
    "xoxr-": r"[\w-]{8,}",
    "xoxs-": r"[\w-]{8,}",
    "nvapi-": r"[\w-]{12,}",
    "npm_": r"[A-Za-z0-9]{20,}",
    "pypi-": r"[\w-]{16,}",
    "dckr_pat_": r"[\w-]{12,}",
    "dckr_oat_": r"[\w-]{12,}",
    "dop_v1_": r"\w{16,}",
    "SG.": r"[\w-]{10,}\.[\w-]{10,}",
    "gsk_": r"\w{16,}",
    "r8_": r"[A-Za-z0-9]{20,}",
    "rpa_": r"[A-Za-z0-9]{20,}",
    "pplx-": r"\w{16,}",
    "xai-": r"\w{20,}",
    "tvly-": r"[\w-]{16,}",
    "lsv2_": r"\w{16,}",
    "wandb_v1_": r"\w{16,}",
    "KGAT_": r"\w{16,}",
    "AGE-SECRET-KEY-1": r"[A-Z0-9]{16,}",
    "hvs.": r"[\w-]{16,}",
    "dapi": r"[0-9a-f]{32}",
    "eyJ": r"[\w=+/-]{14,}(?:\.[\w=+/-]*){0,4}",
    "AAAAB3NzaC1": r"[A-Za-z0-9+/=]{12,}",
    "AAAAC3NzaC1": r"[A-Za-z0-9+/=]{12,}",
    "AAAAE2VjZHNh": r"[A-Za-z0-9+/=]{12,}",
    "SHA256:": r"[A-Za-z0-9+/]{43}=?",
    "hooks.slack.com/": r"[\w/-]{8,}",
    "discord.com/api/webhooks/": r"[\w/-]{8,}",
}
BEGINNINGS = tuple(_BEGINNINGS)

_TELLING = (
    r"(?:pass(?:word|wd|phrase|wort)|(?<=[_A-Za-z])pwd|secret|credential|api[_-]?key"
    r"|(?:access|private|account|auth|signing|encryption|session|license|deploy|master|shared"
    r"|security|subscription|ssh)[_-]?key|auth[_-]?token|access[_-]?token|refresh[_-]?token"
    r"|bearer[_-]?token|webhook|(?<![A-Za-z0-9])pw(?=[\"'\\ ]{0,3}[:=]))"
)
_NO_SECRET = re.compile(
    r"(?i)(?:true|false|none|null|nil|yes|no|on|off|undefined|optional|required|str|string|bool"
    r"|int|\.{2,}|[*x•]{3,}|<[^>]*>?|\$.*|\{\{?.*|%\w+%|\[.*|\(.*|(?:self|args|cfg|config|os|opts?"
    r"|settings|env|kwargs|params)\b.*|get_?\w*|[-+]?\d{1,5}|/.*|~/.*|(?:\w*_)?(?:token|password"
    r"|passwd|secret|api_?key|key)|redacted|hidden|not set|unset|empty)"
)
_NO_TOKEN = re.compile(
    r"(?i)(?:pad|eos|bos|unk|mask|sep|cls|image|audio|video|stop|next|per|num|new|special|start|end"
    r"|begin|max|min|first|last|extra|fim|tool|prompt|role|stat|prefix|suffix|middle)[_ -]?$"
)
_NAMED_HASH = re.compile(
    r"(?i)(?:commit|revision|rev|sha\w*|git\w*|snapshots|blobs|hash|head|version|checkpoint|build"
    r"|digest|refs|tree|source|id|g|@|/)[\"'\s:=/@-]{0,6}$"
)


def _is_value(found: re.Match[str]) -> bool:
    """Say whether the value of a telling key is one, and no name of where it is kept."""
    value = found["it"].strip()
    following = found.string[found.end("it") : found.end("it") + 1]
    if len(value) < 3 or _NO_SECRET.fullmatch(value):
        return False
    return not (following in ("(", "[") and value.replace(".", "").isidentifier())


def _is_token(found: re.Match[str]) -> bool:
    before = found.string[max(0, found.start() - 12) : found.start()]
    value = found["it"]
    if _NO_TOKEN.search(before) or not _is_value(found):
        return False
    return len(value) >= 8 and not value.isdecimal() and any(map(str.isdecimal, value))


def _is_bare_key(found: re.Match[str]) -> bool:
    before = found.string[max(0, found.start() - 16) : found.start()]
    joined = before[-1:].isalnum() and not re.search(r"\\[nrtbf]$|%[0-9A-Fa-f]{2}$", before)
    return not joined and not _NAMED_HASH.search(before) and not found["it"].isdecimal()


def _is_block(found: re.Match[str]) -> bool:
    """Say whether the key of a block of YAML tells that a secret follows."""
    before = found.string[max(0, found.start() - 60) : found.start()]
    key = before[before.rfind("\n") + 1 :]
    return compiled(rf"(?i){_TELLING}|token$").search(key) is not None and _is_value(found)


def _is_password(found: re.Match[str]) -> bool:
    """Say whether what stands before an `@` in a URL is a password, and no port with a path."""
    return re.match(r"\d{1,5}/", found["it"]) is None


def _is_b64(found: re.Match[str]) -> bool:
    value = found["it"]
    return not value.isalpha() or (len(value) >= 12 and not value.islower())


def _values() -> Iterator[Pattern]:
    gates = ("pass", "pwd", "pw", "secret", "key", "token", "credential", "webhook")
    after = rf"[\w-]{{0,24}}{QUOTES}[ \t]{{0,8}}(?::|=>?|:=)[ \t]{{0,8}}(?:!!?\w+ )?"
    key = rf"(?i){_TELLING}{after}"
    for quote, inside in (('"', r'(?:[^"\\\n]|\\.)'), ("'", r"[^'\n]")):
        yield Pattern(
            "SECRET",
            rf"{key}[bru]?{quote}(?P<it>{inside}{{1,4096}}){quote}",
            gates,
            accept=_is_value,
        )
    yield Pattern(
        "SECRET", rf"{key}\\+[\"'](?P<it>[^\"'\\\n]{{1,4096}})\\+[\"']", gates, accept=_is_value
    )
    bare = r"(?P<it>[^\s\"'\\,;&(){}\[\]<>|][^\s\"'\\;&<>{}()\[\]]{0,4096}(?<!,))"
    yield Pattern("SECRET", rf"{key}{bare}", gates, accept=_is_value)
    block = r":[ \t]{0,8}[|>][-+\d]{0,2}[ \t]{0,8}\n[ \t]{1,40}(?P<it>[^\s-][^\n]{0,4096})"
    yield Pattern("SECRET", rf"(?<=[a-zA-Z]){block}", accept=_is_block)
    flag = (
        rf"(?i)--?[\w-]{{0,24}}{_TELLING}[\w-]{{0,12}}[ \t]{{1,4}}[\"']?(?P<it>[^\s"
        rf"\"'-][^\s\"']{{2,4096}})"
    )
    yield Pattern("SECRET", flag, gates, accept=_is_value)
    yield Pattern(
        "SECRET",
        r"(?i)--[\w-]{0,24}token[ \t]{1,4}[\"']?(?P<it>[^\s\"'-][^\s\"']{2,4096})",
        ("token",),
        accept=_is_token,
    )
    yield Pattern(
        "SECRET",
        rf"[A-Z0-9]_(?:TOKEN|KEY|PASS|AUTH|PAT|DSN|COOKIE){IS}(?P<it>[^\s\"'\\,;]{{6,4096}})",
        ("_token", "_key", "_pass", "_auth", "_pat", "_dsn", "_cookie"),
        accept=_is_value,
    )
    yield Pattern(
        "SECRET",
        rf"(?i)token{IS}(?P<it>[^\s\"'\\,;&(){{}}\[\]<>|]{{8,4096}})",
        ("token",),
        accept=_is_token,
    )


def _known_beginnings() -> Iterator[Pattern]:
    """Yield one pattern per beginning: the literal first, so that the search for it is quick."""
    for begin, rest in _BEGINNINGS.items():
        it = re.escape(begin)
        start = rf"(?:(?<![A-Za-z0-9]{it})|(?<=\\[nrtbf]{it})|(?<=%[0-9A-Fa-f][0-9A-Fa-f]{it}))"
        yield Pattern("SECRET", rf"(?P<it>{it}{start}{rest})", (begin.lower(),))


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "SECRET",
        r"(?i)\b(?:set-)?cookie[\"'\\]{0,2}[ \t]*[:=][ \t]*[\"'\\]{0,2}(?P<it>[^"
        r"\s\"'\\][^\n\"'\\]{3,8192})",
        ("cookie",),
        accept=lambda found: "=" in found["it"],
    ),
    Pattern(
        "SECRET",
        rf"(?i)authorization{IS}(?:[A-Za-z-]{{3,16}}[ \t]{{1,3}})?(?P<it>[^\s\"'\\,;]{{6,8192}})",
        ("authorization",),
        accept=_is_value,
    ),
    Pattern(
        "SECRET",
        r"(?i)\bbearer[ \t]{1,3}[\"']?(?P<it>[\w.~+/=-]{8,8192})",
        ("bearer",),
        accept=_is_b64,
    ),
    Pattern(
        "SECRET",
        r"\b[Bb]asic[ \t](?P<it>[A-Za-z0-9+/]{8,8192}={0,2})(?![\w ])",
        ("basic",),
        accept=_is_b64,
    ),
    Pattern(
        "SECRET",
        r"://[^\s/:@\"'<>]{0,100}:(?P<it>[^\s\"'@<>]{1,400}(?:@[^\s\"'@/<>]{1,10"
        r"0}(?=@))?)@(?=[\w.\[-])",
        ("@",),
        accept=_is_password,
    ),
    Pattern("SECRET", r"://(?P<it>[^\s/:@\"'<>]{16,400})@(?=[\w.\[-])", ("@",)),
    Pattern(
        "SECRET",
        r"(?i)[?&;](?:amp;)?(?:x-(?:amz|goog|ms|oss)-[\w-]{3,30}|sig|signature|t"
        r"oken|access_token|id_token|refresh_token|auth|auth_token|api_?key|key|"
        r"code|awsaccesskeyid|googleaccessid|policy|key-pair-id|password|passwd|"
        r"secret|client_secret|jwt|session|sas|hdnts|skoid|sktid|ossaccesskeyid)"
        r"=(?P<it>[^&\s\"'<>#\\]{4,8192})",
        ("=",),
    ),
    Pattern(
        "SECRET",
        r"(?i)\b(?:curl|wget|http)\b[^\n]{0,400}?[ \t](?:-u|--user|--proxy-user)"
        r"[ =][\"']?(?P<it>[^\s\"']{3,400})",
        ("curl", "wget", "http"),
        accept=lambda found: ":" in found["it"],
    ),
    Pattern(
        "SECRET",
        r"\blogin[ \t]{1,4}\S{1,100}[ \t]{1,4}password[ \t]{1,4}(?P<it>\S{1,400})",
        ("login",),
    ),
    Pattern(
        "SECRET", r"^[ \t]*password[ \t]{1,4}(?P<it>\S{3,400})$", ("password",), accept=_is_value
    ),
    Pattern(
        "SECRET",
        r"\b(?:sshpass|mysql|mysqldump)[ \t][^\n]{0,200}?-p[ ]?[\"']?(?P<it>[^\s\"']{3,200})",
        ("sshpass", "mysql"),
    ),
    Pattern(
        "SECRET",
        r"\b(?:wandb|huggingface-cli|hf(?:[ ]auth)?)[ \t]login[ \t](?:--relogin["
        r" \t])?(?P<it>[A-Za-z0-9_]{16,200})",
        ("login",),
    ),
    *_values(),
    Pattern(
        "SECRET",
        r"[\"'](?:auth|key|identitytoken)[\"']\s{0,4}:\s{0,4}[\"'](?P<it>[A-Za-z"
        r"0-9+/=_-]{16,8192})[\"']",
        ("auth", "key", "identitytoken"),
        accept=_is_b64,
    ),
    *_known_beginnings(),
    Pattern("SECRET", r"(?P<it>[0-9a-f]{40})(?![0-9A-Za-z])", (), accept=_is_bare_key),
)
