"""Shapes that hold an organisation: accounts, partitions, namespaces, buckets, projects.

SLURM_JOB_ACCOUNT=acme-nlp     s3://acme-models/run     wandb.ai/acme/sft/runs/3k2j     arn:aws:...
"""

from __future__ import annotations

import re

from oomdoctor.redaction.ordinary import is_ordinary
from oomdoctor.redaction.pattern import IS, NAME, Pattern

_WORD = r"(?P<it>[A-Za-z0-9][\w.-]{1,80}(?<![.-]))"


def _is_word(found: re.Match[str]) -> bool:
    return not is_ordinary(found["it"])


def _is_namespace(found: re.Match[str]) -> bool:
    return _is_word(found) and not found["it"].startswith(("kube-", "istio-"))


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "ACCOUNT",
        rf"\bSLURM_(?:JOB_)?(?:ACCOUNT|PARTITION|QOS|CLUSTER_NAME|RESERVATION|WCKEY){IS}{_WORD}",
        ("slurm_",),
        accept=_is_word,
    ),
    Pattern(
        "ACCOUNT",
        rf"\b(?:Account|Partition|QOS|Reservation|WCKey|MCS_label)={_WORD}",
        ("account=", "partition=", "qos=", "reservation=", "wckey="),
        accept=_is_word,
    ),
    Pattern(
        "ACCOUNT",
        rf"(?<![\w-])--(?:account|partition|qos|reservation|clusters)[ =]{_WORD}",
        ("--",),
        accept=_is_word,
    ),
    Pattern(
        "ACCOUNT",
        rf"^[ \t]*#(?:SBATCH|PBS|BSUB|\$)[ \t]+-(?:A|p|P|q|G)[ \t]+{_WORD}",
        ("#sbatch", "#pbs", "#bsub", "#$"),
        accept=_is_word,
    ),
    Pattern(
        "ACCOUNT", r"\barn:aws[\w-]{0,10}:[\w-]{0,30}:[\w-]{0,20}:(?P<it>\d{12}):", ("arn:aws",)
    ),
    Pattern("ACCOUNT", r"(?<![\w.])(?P<it>\d{12})\.dkr\.ecr\.", (".dkr.ecr.",)),
    Pattern("ACCOUNT", rf"(?i)\b(?:aws_)?account_?id{IS}(?P<it>\d{{12}})(?!\d)", ("account",)),
    Pattern(
        "ACCOUNT",
        r"(?i)\b(?:GOOGLE_CLOUD_PROJECT|GCP_PROJECT|CLOUDSDK_CORE_PROJECT|AZURE_"
        r"SUBSCRIPTION_ID|AZURE_TENANT_ID|AZURE_CLIENT_ID|gcp_project|subscripti"
        rf"on_?id|tenant_?id){IS}{_WORD}",
        ("project", "azure", "subscription", "tenant"),
    ),
    Pattern("ACCOUNT", r"(?i)/subscriptions/(?P<it>[0-9a-f-]{36})", ("/subscriptions/",)),
    Pattern(
        "ACCOUNT",
        r"\b(?:iam::\d{12}|iam::\w+):(?:user|role)/(?P<it>[\w+=,.@/-]{1,128})",
        ("iam::",),
    ),
    Pattern(
        "NAMESPACE",
        rf"(?i)\b(?:k8s_|pod_|kube_|my_pod_)?namespace{IS}{_WORD}",
        ("namespace",),
        accept=_is_namespace,
    ),
    Pattern(
        "NAMESPACE",
        rf"\bkubectl\b[^\n]{{0,200}}?[ \t](?:-n|--namespace)[ =]{_WORD}",
        ("kubectl",),
        accept=_is_namespace,
    ),
    Pattern(
        "BUCKET",
        r"(?i)\b(?:s3[an]?|gs|gcs|az|hdfs|oss|cos|obs|tos|r2|swift|dbfs|adl)://(?"
        r"P<it>[^\s/\"'<>:@?\\)]{1,120})",
        ("://",),
    ),
    Pattern("BUCKET", r"(?i)\b(?:abfss?|wasbs?)://(?P<it>[^\s/\"'<>:?]{1,120})", ("abfs", "wasb")),
    Pattern(
        "BUCKET",
        r"(?<![\w.-])(?P<it>[\w.-]{3,63})\.(?:s3[.-][\w.-]{0,40}amazonaws\.com|b"
        r"lob\.core\.windows\.net|dfs\.core\.windows\.net|storage\.googleapis\.c"
        r"om|oss-[\w-]{1,30}\.aliyuncs\.com|r2\.cloudflarestorage\.com)",
        (".s3", ".blob.core", ".dfs.core", ".storage.googleapis", ".aliyuncs", ".r2."),
    ),
    Pattern(
        "BUCKET",
        r"(?:s3[\w.-]{0,30}\.amazonaws\.com|storage\.(?:googleapis|cloud\.google"
        r")\.com)/(?P<it>[a-z0-9][\w.-]{2,62})",
        ("amazonaws.com/", "googleapis.com/", "cloud.google.com/"),
    ),
    Pattern(
        "BUCKET",
        r"(?i)\b(?:s3_|gcs_|gs_|aws_|output_|data_|checkpoint_|artifact_)?bucket"
        rf"(?:_?name)?{IS}(?P<it>[a-z][a-z0-9.-]{{2,62}})(?=[\s\"',}}\\]|$)",
        ("bucket",),
        spreads=False,
        accept=lambda found: bool(re.search(r"[-.\d]", found["it"])),
    ),
    Pattern(
        "PROJECT",
        r"(?:wandb\.ai|api\.wandb\.ai/links|comet\.com|comet\.ml|app\.neptune\.a"
        r"i|neptune\.ai|app\.clear\.ml|dagshub\.com)/(?P<it>[\w.-]{2,80}(?:/[\w."
        r"-]{1,120}){0,6})",
        ("wandb.ai/", "comet.", "neptune.ai/", "clear.ml/", "dagshub.com/"),
        spreads=False,
        accept=lambda found: (
            not found["it"].startswith(
                ("site", "docs", "authorize", "guides", "quickstart", "settings")
            )
        ),
    ),
    Pattern(
        "PROJECT",
        rf"(?i)\bWANDB_(?:ENTITY|PROJECT|NAME|RUN_GROUP|RUN_ID|TEAM){IS}{_WORD}",
        ("wandb_",),
        accept=_is_word,
    ),
    Pattern(
        "PROJECT",
        r"(?i)\b(?:wandb_entity|wandb_project|entity|NEPTUNE_PROJECT|COMET_WORKS"
        rf"PACE|COMET_PROJECT_NAME|MLFLOW_EXPERIMENT_NAME|workspace_name){IS}(?P<"
        rf"it>[A-Za-z0-9][\w./-]{{1,80}})(?=[\s\"',}}\\;]|$)",
        ("entity", "wandb", "neptune", "comet", "mlflow", "workspace"),
        spreads=False,
        accept=_is_word,
    ),
    Pattern(
        "PROJECT",
        r"\bgit@[\w.-]{1,100}[:/](?P<it>[\w.~-]{1,100}(?:/[\w.~-]{1,100}){1,4})",
        ("git@",),
        spreads=False,
    ),
    Pattern(
        "PROJECT",
        r"(?:\borigin[ \t]+|\bupstream[ \t]+|\bremote[ \t]+|\burl[ \t]*=[ \t]*|G"
        r"IT_URL=|CI_REPOSITORY_URL=|Cloning into )(?:https?|ssh|git)://[^\s/]{1"
        r",200}/(?P<it>[\w.~-]{1,100}(?:/[\w.~-]{1,100}){1,4})",
        ("://",),
        spreads=False,
    ),
    Pattern(
        "PROJECT",
        rf"\b(?:GITHUB_REPOSITORY|CI_PROJECT_PATH){IS}(?P<it>[\w./-]{{2,200}})",
        ("github_repository", "ci_project_path"),
        spreads=False,
    ),
    Pattern(
        "PHONE",
        r"(?<![\w.+-])(?P<it>\+\d{1,3}[ .-](?:\(0?\d{1,5}\)[ .-]?)?\d{2,5}(?:[ ."
        r"-]\d{2,5}){1,4})(?![\w.%])",
        ("+",),
    ),
    Pattern(
        "PHONE",
        rf"(?i)\b(?:phone|mobile|tel(?:ephone)?|fax){IS}(?P<it>\+?[\d(][\d ()./-]{{5,22}}\d)",
        ("phone", "mobile", "tel", "fax"),
    ),
    Pattern("USER", rf"(?i)\b(?:mail-user|mail_user)[ =]{NAME}", ("mail",)),
)
