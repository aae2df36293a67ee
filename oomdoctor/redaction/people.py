"""Shapes that hold the name of a person or an account: home paths, prompts, process tables.

/home/lena/sft/train.py     lena@gpu-box-7:~$     USER=lena     /dev/nvidia0: lena 4711 F python
"""

from __future__ import annotations

import re

from oomdoctor.redaction.ordinary import is_ordinary
from oomdoctor.redaction.pattern import HOSTNAME, IS, NAME, QUOTES, Pattern

_SEGMENT = (
    r"(?P<it>(?:[^/\\\s:;,\"'<>|()\[\]{}=*?$%&#@`]"
    r"|\\u[0-9a-fA-F]{4}|%[0-9A-Fa-f]{2}){1,120}(?<![.]))"
)
_ENVIRONMENT = (
    "LOGNAME|USERNAME|SUDO_USER|SLURM_JOB_USER|JUPYTERHUB_USER|NB_USER|GITHUB_A"
    "CTOR|GITLAB_USER_LOGIN"
    "|RUNNER_USER|WANDB_USERNAME|KAGGLE_USERNAME|USER|PGUSER|DB_USER|MYSQL_USER|POSTGRES_USER"
    "|REMOTE_USER|GIT_AUTHOR_NAME|GIT_COMMITTER_NAME|PBS_O_LOGNAME|LSB_SUB_USER|MAIL_USER"
    "|MLFLOW_TRACKING_USERNAME|DOCKER_USER|DOCKER_USERNAME"
)
_LS = r"^(?:[ \t]*\d+[ \t]+)?[-dlbcps][-rwxsStT]{9}[.+@]?[ \t]+\d+[ \t]+"
_PERSON = r"(?P<it>[^\W\d_][\w.'-]{0,40}(?:[ ][^\W\d_][\w.'-]{0,40}){0,3})"


def _is_word(found: re.Match[str]) -> bool:
    return not is_ordinary(found["it"])


def _is_scratch(found: re.Match[str]) -> bool:
    name = found["it"]
    return not is_ordinary(name) and not re.search(r"[._-]?\d+[bB]?$|^[A-Z]", name)


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "USER",
        r"[A-Za-z]:[\\/]{1,4}(?i:Users)[\\/]{1,4}"
        r"(?P<it>[^\\/:*?\"<>|\n\s](?:[^\\/:*?\"<>|\n]{0,60}[^\\/:*?\"<>|\n\s])?)(?=[\\/])",
        ("users",),
    ),
    Pattern(
        "USER",
        r"[A-Za-z]:[\\/]{1,4}(?i:Users)[\\/]{1,4}(?P<it>[^\\/:*?\"'<>|\s]{1,60})",
        ("users",),
    ),
    Pattern("USER", rf"/(?:home\d{{0,2}}|homes|[Uu]sers)/{_SEGMENT}", ("/home", "/users/")),
    Pattern("USER", rf"\\/(?:home\d{{0,2}}|homes|[Uu]sers)\\/{_SEGMENT}", ("\\/",)),
    Pattern("USER", r"(?i)(?:%2Fhome%2F|%2FUsers%2F)(?P<it>[\w.-]{1,64})", ("%2f",)),
    Pattern(
        "USER",
        rf"(?<![\w.-])/(?:scratch\d?|fsx|lustre|(?:var/)?(?:spool/)?mail|u)/{_SEGMENT}",
        ("/scratch", "/fsx/", "/lustre/", "/mail/", "/u/"),
        accept=_is_scratch,
    ),
    Pattern("USER", r"(?<![\w~])~(?P<it>[a-z][\w-]{1,31})/", ("~",), accept=_is_word),
    Pattern("USER", r"(?i)-(?:home|users)-(?P<it>[a-z][\w.]{1,31})-", ("-home-", "-users-")),
    Pattern(
        "USER",
        rf"(?<![A-Za-z0-9])(?:{_ENVIRONMENT}){IS}{_SEGMENT}",
        ("user", "logname", "github_actor", "git_", "login"),
    ),
    Pattern(
        "USER",
        rf"(?i)^[^\S\n]*[-{{]?[ \t]*{QUOTES}(?:user|user_?name|owner|login|author"
        r"|user_?id|created_?by"
        rf"|run_?as_?user|logged_in_as|maintainer|uname){IS}"
        rf"(?:[A-Za-z][\w-]{{0,30}}\\{{1,2}})?(?P<it>[^\W\d_][\w.-]{{1,40}})"
        rf"{QUOTES}[ \t]*[,}}]?[ \t]*$",
        ("user", "owner", "login", "author", "created", "logged", "maintainer", "uname"),
        spreads=False,
        accept=_is_word,
    ),
    Pattern(
        "USER",
        rf"(?i)\b(?:user[ _-]?id|uid|user|username|account|whoami|login|owner){IS}"
        r"[A-Za-z][\w.-]{0,30}\\{1,2}(?P<it>[^\W\d_][\w.-]{1,40})",
        ("user", "uid", "account", "whoami", "login", "owner"),
    ),
    Pattern(
        "USER",
        r"(?<![\w\\.-])(?=[A-Z])[A-Z][A-Z0-9-]{2,14}\\(?![nrtbfux0\\])(?P<it>[a-"
        r"z][a-z.-]{2,30})(?![\w\\(])",
        ("\\",),
        accept=_is_word,
    ),
    Pattern(
        "USER",
        rf"(?i)\b(?:author|committer|signed-off-by):[ \t]{{1,4}}{_PERSON}(?=[ \t]*<)",
        ("author", "committer", "signed"),
    ),
    Pattern("USER", rf"\b(?:uid|gid|groups)=\d{{1,10}}\({NAME}\)", ("id=", "groups=")),
    Pattern("USER", rf"(?<=,)\d{{1,10}}\({NAME}\)", (",",), spreads=False, accept=_is_word),
    Pattern("USER", rf"\b(?:UserId|GroupId)={NAME}", ("userid=", "groupid=")),
    Pattern(
        "USER", r"\buser=(?P<it>[^\W\d_][\w.-]{1,40})(?=[\s,;\"')&])", ("user=",), accept=_is_word
    ),
    Pattern(
        "USER",
        rf"(?i)\b(?:for|by|from|as) (?:invalid |the )?user {NAME}",
        ("user",),
        accept=_is_word,
    ),
    Pattern("USER", rf"(?i)\b(?:Accepted|Failed) \w+ for {NAME} from ", (" for ",)),
    Pattern("USER", rf"\bsudo(?:\[\d+\])?: +{NAME} : ", ("sudo",)),
    Pattern("USER", rf"(?i)logged in as:? {NAME}", ("logged in",)),
    Pattern("USER", rf"(?i)hello, {NAME}! You've successfully", ("hello",)),
    # process tables: ps, top, fuser, nvidia-smi with users, gpustat, nvitop, squeue, ls -l
    Pattern("USER", rf"^{NAME}[ \t]+\d+[ \t]+\d+\.\d[ \t]+\d+\.\d[ \t]+\d+[ \t]+\d+[ \t]", ()),
    Pattern("USER", rf"^{NAME}[ \t]+\d+[ \t]+\d+[ \t]+\d+[ \t]+[\w:]+[ \t]+\S+[ \t]+\d+:\d\d", ()),
    Pattern(
        "USER",
        rf"^[ \t]*\d+[ \t]+{NAME}[ \t]+(?:\d+|rt|-\d+)[ \t]+-?\d+[ \t]+[\d.]+[mgtk]?[ \t]",
        (),
    ),
    Pattern("USER", rf"(?:^|:)[ \t]*{NAME}[ \t]+\d+[ \t]+[Fcefrm.]{{3,6}}[ \t]+\S", ()),
    Pattern("USER", rf"^[ \t|│]*{NAME}[ \t]+\d+[ \t]+(?:C\+G|[CG])[ \t]+\S", (), accept=_is_word),
    Pattern(
        "USER",
        rf"^[│║][^\n|]{{0,40}}?[ \t]\d+[ \t]+(?:C\+G|G\+C|[CG])[ \t]+{NAME}[ \t]+[\d.]+ ?[KMG]i?B",
        ("│", "║"),
    ),
    Pattern(
        "USER",
        rf"^[\w.+-]{{1,60}}[ \t]+\d+[ \t]+{NAME}[ \t]+\S+[ \t]+(?:CHR|REG|DIR)[ \t]",
        (" chr ", " reg ", " dir "),
    ),
    Pattern("USER", rf"{NAME}\(\d+M(?:i?B)?\)", ("m)", "mb)", "mib)"), accept=_is_word),
    Pattern("USER", rf"{NAME}:[\w.+-]{{1,40}}/\d+\(\d+M", ("m)", "m,")),
    Pattern(
        "USER", rf"{_LS}{NAME}[ \t]+[\w.-]+[ \t]+[\d.,]+[KMGT]?[ \t]", ("rw", "r--", "r-x", "--x")
    ),
    Pattern(
        "USER",
        rf"{_LS}[\w.-]+[ \t]+{NAME}[ \t]+[\d.,]+[KMGT]?[ \t]",
        ("rw", "r--", "r-x", "--x"),
        accept=_is_word,
    ),
    Pattern(
        "USER",
        rf"^[ \t]*\d+(?:_\d+)?[ \t]+[\w.,-]+[ \t]+\S+[ \t]+{NAME}[ \t]+(?:R|PD|CG"
        r"|CA|CD|F|OOM|TO|NF)[ \t]",
        (),
    ),
    Pattern(
        "ACCOUNT",
        rf"^[ \t]*\d+(?:_\d+)?[ \t]+{NAME}[ \t]+\S+[ \t]+[\w.-]+[ \t]+(?:R|PD|CG|"
        r"CA|CD|F|OOM|TO|NF)[ \t]",
        (),
        spreads=False,
        accept=_is_word,
    ),
    # name@host: a prompt, a command, a mail address, the builder of a kernel
    Pattern(
        "EMAIL",
        r"(?i)(?:(?<![\w.+%\\-])|(?<=\\[nrt]))(?!git@|git%40)(?P<it>[a-z0-9_](?:"
        r"[\w.+-]{0,62}[\w+-])?(?:@|%40)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
        r"\.){1,6}(?:[a-z]{2,4}|museum|online|email|group|cloud|space|academy|he"
        r"alth|science|digital))(?![\w@-]|\.[a-z0-9]|:[~/])",
        ("@", "%40"),
    ),
    Pattern(
        "USER", rf"{NAME}@(?={HOSTNAME}(?::[~/\w]|[ \]][^\n]{{0,120}}?[$#%>](?:[ ]|$)))", ("@",)
    ),
    Pattern("USER", rf"\({NAME}@(?={HOSTNAME}\))", ("@",)),
    Pattern(
        "USER",
        rf"\b(?:ssh|scp|rsync|sftp|mosh|autossh)\b[^\n]{{0,300}}?[ \t]{NAME}@",
        ("ssh", "scp", "rsync", "sftp", "mosh"),
    ),
    Pattern(
        "USER", rf"{NAME}@(?=[A-Za-z][\w.]{{0,60}}[\d-])(?!\w{{0,60}}\()", ("@",), accept=_is_word
    ),
    Pattern("USER", r"://(?P<it>[^\s/:@\"'<>\\]{1,64})(?=(?::[^\s/@\"'<>]{1,400})?@)", ("@",)),
    Pattern("USER", rf"(?i)\b(?:User Id|Uid|User){IS}(?P<it>[^\W\d_][\w.-]{{1,40}})(?=;)", (";",)),
    Pattern("USER", rf"(?i)^[ \t]*User[ \t]+{NAME}[ \t]*$", ("user",), accept=_is_word),
)
