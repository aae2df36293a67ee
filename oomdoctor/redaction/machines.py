"""Shapes that hold a machine: host names, addresses, cards' identities, machine ids.

gpu-box-7:4711:4820 [0] NCCL WARN     MASTER_ADDR=dgx-03     10.12.0.7     GPU-5d5ba0d6-...
"""

from __future__ import annotations

import re

from oomdoctor.redaction.addresses import is_ipv4, is_ipv6
from oomdoctor.redaction.ordinary import is_ordinary
from oomdoctor.redaction.pattern import HOSTNAME, IS, QUOTES, Pattern

_IT = rf"(?P<it>{HOSTNAME})"
_DATE = (
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?|\d{4}-\d\d-\d\dT\d\d:\d"
    r"\d:\d\d[\d.,:+Z-]{0,20})"
)
_VARIABLES = (
    "HOSTNAME|SLURMD_NODENAME|SLURM_SUBMIT_HOST|SLURM_LAUNCH_NODE_IPADDR|SLURM_TOPOLOGY_ADDR"
    "|MASTER_ADDR|MASTER_HOST|MAIN_PROCESS_IP|NODE_NAME|NODENAME|COMPUTERNAME|USERDOMAIN|HOST"
    "|LOGONSERVER|RAY_HEAD_IP|HEAD_NODE|HEAD_NODE_IP|PBS_O_HOST|LSB_HOSTS|BatchHost"
)
_KEYS = (
    "rdzv[_-]endpoint|master[_-]addr|main_process_ip|hostname|host[_-]name|node[_-]?name|node_ip"
    "|host|node|Hostname|HostName|NodeName|Node|Host|head_node|submit_host|server_?name|bastion"
)
_LISTS = (
    "SLURM_JOB_NODELIST|SLURM_NODELIST|SLURM_STEP_NODELIST|NodeList|ReqNodeList|nodelist|hostlist"
)
_NODE = r"[A-Za-z][\w.-]{0,60}(?:\[[\d,-]{1,400}\][\w.-]{0,30})?"
_NODES = rf"(?P<it>{_NODE}(?:,{_NODE}){{0,400}})"


def _is_word(found: re.Match[str]) -> bool:
    return not is_ordinary(found["it"])


def _is_host(found: re.Match[str]) -> bool:
    """Say whether a word in the place of a host is no level and no file."""
    name = found["it"]
    return not is_ordinary(name) and not re.search(
        r"\.(?:py|cpp|cc|cu|c|h|rs|go|log|sh|yaml|json|so)$", name
    )


def _is_domain(found: re.Match[str]) -> bool:
    return _is_host(found) and bool(re.search(r"[\d-]", found["it"]))


_NO_HOST_SCHEMES = (
    "s3 s3a s3n gs gcs fs az file docker containerd cri-o abfss abfs wasbs wasb azureml oss cos obs"
    " tos env hf models runs dbfs hdfs git+file unix npipe mlflow-artifacts data http+unix"
)


def _is_url_host(found: re.Match[str]) -> bool:
    before = found.string[max(0, found.start() - 24) : found.start()]
    scheme = re.search(r"[A-Za-z][\w+.-]*$", before)
    name = found["it"].lower()
    if name in ("http", "https", "ftp", "tcp", "ssh", "www", "host", "hostname", "localhost"):
        return False
    return scheme is None or scheme[0].lower() not in _NO_HOST_SCHEMES.split()


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "MAC",
        r"(?<![\w:-])(?P<it>(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{"
        r"2}-){5}[0-9A-Fa-f]{2})(?![\w:-])",
        (),
    ),
    Pattern(
        "ADDRESS",
        r"(?<![\d.])(?P<it>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?![\d]|\.\d)",
        (),
        accept=is_ipv4,
    ),
    Pattern(
        "HOST",
        r"(?<![\w-])(?P<it>ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?:\.[\w-]{1,63}){0,8})",
        ("ip-",),
    ),
    Pattern(
        "ADDRESS",
        r"(?<![\w.])(?<!::)(?P<it>(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?:%\w{1,1"
        r"6})?)(?![\w:.]*[g-zG-Z_])(?![0-9A-Fa-f:])",
        ("::",),
        accept=is_ipv6,
    ),
    Pattern(
        "ADDRESS",
        r"(?<![\w.])(?P<it>(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4})(?![\w:])",
        (),
        accept=is_ipv6,
    ),
    Pattern(
        "GPU",
        r"(?<![\w-])(?P<it>(?:GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{1,12}){0,4})",
        ("gpu-", "mig-"),
    ),
    Pattern(
        "GPU",
        r"(?i)\b(?:GPU )?UUID[ \t]*:[ \t]*(?:GPU-|MIG-)?(?P<it>[0-9a-f]{8}-[0-9a"
        r"-f]{4}-[0-9a-f-]{6,30})",
        ("uuid",),
    ),
    Pattern(
        "SERIAL",
        r"(?i)\b(?:serial(?:[ _-]?(?:number|no))?|board[ _]?part[ _]?number|asse"
        rf"t[ _]?tag|service[ _]?tag){IS}(?P<it>[A-Z0-9][A-Z0-9/-]{{5,40}})",
        ("serial", "tag", "part"),
        accept=lambda found: any(map(str.isdecimal, found["it"])),
    ),
    Pattern(
        "MACHINE",
        rf"(?i)\b(?:machine|boot|system|host|product|instance)[ _-]?(?:uu)?id{IS}"
        rf"(?P<it>[0-9a-f-]{{17,40}}|i-[0-9a-f]{{8,17}})",
        ("id",),
    ),
    Pattern("MACHINE", r"(?<![\w-])(?P<it>i-[0-9a-f]{17})(?!\w)", ("i-",)),
    Pattern(
        "HOST", rf"^(?:[^\n]{{0,60}}[ \t\]|:])?{_IT}:\d{{1,8}}:\d{{1,8}} \[\d{{1,3}}\] ", ("] ",)
    ),
    Pattern("HOST", rf"^{_DATE} {_IT} [\w./-]{{1,60}}(?:\[\d+\])?: ", (":",), accept=_is_host),
    Pattern(
        "HOST",
        rf"(?<![A-Za-z0-9])(?:SLURM_[A-Z_]{{0,20}}ADDR|{_VARIABLES}){IS}{_IT}(?![\w(\[])",
        ("host", "node", "addr", "name", "userdomain", "process_ip", "head", "server"),
        accept=_is_host,
    ),
    Pattern(
        "HOST",
        rf"(?<![A-Za-z0-9_.])(?:{_KEYS}){IS}{_IT}(?=[\"'\\/,;:}}\]]|[ \t]*$)",
        ("host", "node", "addr", "name", "server", "rdzv", "bastion", "process_ip", "head"),
        accept=_is_host,
    ),
    Pattern(
        "HOST",
        r"(?i)--(?:master[_-]addr|rdzv[_-]endpoint|main_process_ip|dist-init-add"
        rf"r|host|hostname|head-node|server|address|node-ip-address)[ \t=]{{1,3}}"
        rf"{_IT}",
        ("--",),
        accept=_is_host,
    ),
    Pattern(
        "HOST",
        rf"^[ \t]*(?:Host|HostName|ProxyJump)[ \t]{{1,4}}{_IT}[ \t]*$",
        ("host", "proxyjump"),
        accept=_is_host,
    ),
    Pattern("HOST", rf"(?<![A-Za-z0-9])(?:{_LISTS}){IS}{_NODES}", ("nodelist", "hostlist")),
    Pattern(
        "HOST",
        rf"(?<![\w-])(?:--nodelist=|--exclude=|-w |-x |--host[ =]|-H ){_NODES}(?=[\s,:]|$)",
        ("-",),
        accept=_is_domain,
    ),
    Pattern(
        "HOST",
        r"(?<![\w.\[-])(?P<it>[A-Za-z][A-Za-z\d-]{1,40}\[\d{1,5}-\d{1,5}(?:,\d{1"
        r",5}(?:-\d{1,5})?){0,40}\])(?![\w.])",
        ("[",),
        accept=lambda found: not is_ordinary(found["it"].split("[")[0].rstrip("-")),
    ),
    Pattern("HOST", rf"\bON {_IT} CANCELLED AT", ("cancelled at",)),
    Pattern(
        "HOST",
        rf"\b(?:srun|slurmstepd|salloc)(?:-\S{{1,20}})?: error: {_IT}: ",
        ("error: ",),
        accept=_is_host,
    ),
    Pattern("HOST", rf"\b(?:slurmstepd|srun)-{_IT}: ", ("slurmstepd-", "srun-")),
    Pattern("HOST", rf"^{_IT}[ \t]{{1,20}}slots=\d", ("slots=",)),
    Pattern("HOST", rf"\bLinux {_IT} \d+\.\d+\.\d+", ("linux ",), accept=_is_host),
    Pattern(
        "HOST",
        rf"^{_IT}[ \t]+(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d",
        ("mon ", "tue ", "wed ", "thu ", "fri ", "sat ", "sun "),
    ),
    Pattern("HOST", rf"\[{_IT}\]:\d{{2,5}}(?!\d)", ("]:",), accept=_is_host),
    Pattern(
        "HOST",
        rf"(?:connect(?:ing|ed|ion)?|socket|timed out|store|listen)[^\n]{{0,120}}?"
        rf"\({_IT}, ?\d{{2,5}}\)",
        ("connect", "socket", "store", "listen"),
        accept=_is_host,
    ),
    Pattern(
        "HOST",
        r"(?:connect(?:ing|ed)? to|reach|resolve(?: host)?|listening on|peer|rem"
        r"ote|from host|on (?:host|node|machine|worker)|running on|Host|Could no"
        rf"t resolve hostname):? {QUOTES}{_IT}(?=[\s:,;'\")|]|$)",
        (
            "connect",
            "reach",
            "resolve",
            "listen",
            "peer",
            "remote",
            "host",
            "node",
            "machine",
            "worker",
            "running",
        ),
        accept=_is_domain,
    ),
    Pattern("HOST", rf"\bwhile connecting to {_IT}", ("connecting to",)),
    Pattern(
        "HOST",
        rf"(?:@|%40)(?<=[\w*])?(?<=\w@){_IT}(?=:[~/\w]|[ \]][^\n]{{0,120}}?[$#%>](?:[ ]|$)|\))",
        ("@",),
        accept=_is_host,
    ),
    Pattern(
        "HOST",
        rf"\b(?:ssh|scp|rsync|sftp|mosh|autossh)\b[^\n]{{0,300}}?[ \t][\w.-]{{1,64}}@{_IT}",
        ("ssh", "scp", "rsync", "sftp", "mosh"),
    ),
    Pattern(
        "HOST",
        rf"(?<=\w@)(?P<it>(?=[A-Za-z][\w.]{{0,60}}[\d-]){HOSTNAME})(?![\w(])",
        ("@",),
        accept=_is_host,
    ),
    Pattern(
        "HOST",
        rf"://(?:[^\s/@\"'<>]{{1,500}}@)?{_IT}(?=[:/?#\s\"'\\)\],>;.]|$)",
        ("://",),
        accept=_is_url_host,
    ),
    Pattern(
        "HOST",
        r"(?<![\w.@/-])(?P<it>[A-Za-z][\w-]{0,62}(?:\.[\w-]{1,63}){0,6}\.(?"
        r":internal|lan|corp|intra|intranet|localdomain|local|cluster))(?![\w(.-"
        r"])",
        (".internal", ".lan", ".corp", ".intra", ".local", ".cluster"),
        accept=_is_domain,
    ),
    Pattern(
        "HOST",
        r"(?<![\w\\])\\{2,4}(?P<it>[A-Za-z][\w.-]{2,62})\\{1,2}[\w$.-]{2,}",
        ("\\\\",),
        accept=_is_domain,
    ),
)
