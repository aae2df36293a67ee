"""Secrets of as many kinds as there are, planted over several files of one made-up run.

Bodies are made here, so that no text of the repository looks like somebody's key.
"""

from __future__ import annotations

import base64
import json
import random
import string

_RANDOM = random.Random(7)  # noqa: S311 - no secret is made, the same texts each time


def body(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    """Return a text that no dictionary has; it holds a digit."""
    return "".join(_RANDOM.choices(letters, k=length - 1)) + "7"


HEX = "0123456789abcdef"
USER, OTHER, WINDOWS, COMMITTER = "lenamuster", "jkowalska", "mbraun.ext", "Petra Vogelsang"
ACCENTED = "józefa"
HOST, PEER, DOMAIN, HEAD = (
    "vogelnest-17",
    "vogelnest-18",
    "cluster.kranich.internal",
    "kranichlogin",
)
ADDRESS, PUBLIC, SIX, MAC = (
    "10.42.17.203",
    "93.184.217.34",
    "fd12:3456:789a::17",
    "3c:ec:ef:12:9a:7b",
)
MAIL, PHONE = "petra.vogelsang@kranich-labor.de", "+49 30 901820 17"
HUB = "hf_" + body(34)
OPENAI, ANTHROPIC = "sk-proj-" + body(40), "sk-ant-api03-" + body(40)
GITHUB, GITLAB = "ghp_" + body(36), "glpat-" + body(20)
FINE = "github_pat_" + body(40)
AWS_ID, AWS_SECRET = "AKIA" + body(16, string.ascii_uppercase), body(40)
GOOGLE, GOOGLE_OAUTH = "AIza" + body(35), "ya29." + body(50)
AZURE = base64.b64encode(body(48).encode()).decode()
SLACK = "xoxb-" + body(12, string.digits) + "-" + body(24)
WANDB, COMET, KAGGLE = body(40, HEX), body(25), body(32, HEX)
NEPTUNE = base64.b64encode(json.dumps({"api_address": body(20)}).encode()).decode()
CLEARML, MLFLOW, NGC = body(20), "Kran!ch-" + body(8), "nvapi-" + body(60)
DOCKER = base64.b64encode(f"robot:{body(12)}".encode()).decode()
DOCKER_PAT = "dckr_pat_" + body(27)
JWT = f"eyJ{body(20)}.eyJ{body(30)}.{body(43)}"
BEARER, BASIC = body(32), base64.b64encode(f"svc:{body(10)}".encode()).decode()
COOKIE = body(32)
DATABASE, REDIS, FLAG, NETRC = body(14), body(12), "Geheim-" + body(6), body(16)
SIGNATURE, SAS, QUERY = body(64, HEX), body(43), body(24)
PEM = [body(64), body(64), body(21)]
YAML_PASSWORD, JSON_SECRET, BLOCK = "alles klar " + body(5), 'q"uo\\te' + body(8), body(30)
CARD = f"GPU-{body(8, HEX)}-{body(4, HEX)}-{body(4, HEX)}-{body(4, HEX)}-{body(12, HEX)}"
SLICE = f"MIG-{body(8, HEX)}-{body(4, HEX)}-{body(4, HEX)}-{body(4, HEX)}-{body(12, HEX)}"
SERIAL, MACHINE = "165" + body(10, string.digits), body(32, HEX)
ACCOUNT, PARTITION, NAMESPACE = "kranich-nlp", "kranichq", "team-vogelsang"
BUCKET, ENTITY, REMOTE = "kranich-checkpoints", "kranichteam/vogelsft", "kranichcorp/geheimprojekt"
CLOUD, SHARE = "471147114711", "kranich-fs01"

LOG = f"""\
{USER}@{HOST}:~/sft$ torchrun --master_addr {HEAD} train.py --wandb-api-key {WANDB} \
--db-password {FLAG}
[{HOST}]:29500 is the peer of {PEER}.{DOMAIN}
wandb: Currently logged in as: {OTHER}
wandb: View run at https://wandb.ai/{ENTITY}/runs/k3j2h1
{HOST}:4711:4820 [0] NCCL INFO NET/Socket : Using [0]ib0:{ADDRESS}<0> [1]eth0:{SIX}<0>
INFO GET https://hub.example/x?X-Amz-Signature={SIGNATURE}&X-Amz-Date=1 401
INFO PUT https://a.blob.core.windows.net/c/f?sv=2023&sig={SAS}%3D
INFO GET https://api.example/v1/models?api_key={QUERY} Authorization: Bearer {BEARER}
DEBUG headers: {{'Authorization': 'Basic {BASIC}', 'Cookie': 'session={COOKIE}'}}
INFO tracking at postgres://{OTHER}:{DATABASE}@{PUBLIC}:5432/runs and redis://:{REDIS}@cache:6379/0
INFO resumed s3://{BUCKET}/sft/step-100 token {JWT}
Traceback (most recent call last):
  File "/home/{USER}/sft/train.py", line 74, in <module>
    login("{HUB}", key="{OPENAI}")
  File "/home/{ACCENTED}/lib/hub.py", line 3, in login
    {{"msg": "failed\\n{ANTHROPIC}\\n{GITHUB}"}}
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 125, in forward
    return F.linear(input, self.weight, self.bias)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. \
GPU 0 has a total capacity of 23.64 GiB of which 1.56 GiB is free. \
Process 4711 has 22.07 GiB memory in use. \
Of the allocated memory 21.49 GiB is allocated by PyTorch, \
and 133.27 MiB is reserved by PyTorch but unallocated.
"""
KERNEL = f"""\
Nov  3 10:02:11 {PEER} kernel: [ 9123.1] eth0: link up, {MAC}
Nov  3 10:02:12 {PEER} sshd[811]: Accepted publickey for {OTHER} from {PUBLIC} port 50222
slurmstepd: error: *** JOB 4711 ON {PEER} CANCELLED AT 2026-11-03T10:02:13 ***
"""
ENVIRONMENT = f"""\
USER={USER}
HOSTNAME={HOST}
SLURM_JOB_ACCOUNT={ACCOUNT}
SLURM_JOB_PARTITION={PARTITION}
SLURM_JOB_NODELIST=vogelnest-[17-18]
AWS_ACCESS_KEY_ID={AWS_ID}
AWS_SECRET_ACCESS_KEY={AWS_SECRET}
COMET_API_KEY={COMET}
NEPTUNE_API_TOKEN={NEPTUNE}
CLEARML_API_ACCESS_KEY={CLEARML}
MLFLOW_TRACKING_PASSWORD={MLFLOW}
NGC_API_KEY={NGC}
GITLAB_TOKEN={GITLAB}
GOOGLE_API_KEY={GOOGLE}
SLACK_BOT_TOKEN={SLACK}
AZURE_STORAGE_CONNECTION_STRING=AccountName=x;AccountKey={AZURE};EndpointSuffix=core.windows.net
POD_NAMESPACE={NAMESPACE}
PATH=/usr/bin:/home/{USER}/bin
"""
YAML = f"""\
model: meta-llama/Llama-3-8B
hub_token: {FINE}
oauth: {GOOGLE_OAUTH}
db:
  host: {PUBLIC}
  password: "{YAML_PASSWORD}"
private_key: |
  {BLOCK}
per_device_train_batch_size: 4
role: arn:aws:iam::{CLOUD}:role/x
owner: {MAIL}
phone: {PHONE}
"""
JSON = json.dumps(
    {
        "auths": {"ghcr.io": {"auth": DOCKER}},
        "client_secret": JSON_SECRET,
        "kaggle": {"username": OTHER, "key": KAGGLE},
        "pat": DOCKER_PAT,
        "home": f"C:\\Users\\{WINDOWS}\\runs",
        "share": f"\\\\{SHARE}\\runs\\x",
        "machine-id": MACHINE,
        "accented": f"/home/{ACCENTED}/x",
        "password": 84711174,
    },
    indent=1,
)
TABLE = f"""\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: {CARD})
  MIG 1g.5gb Device 0: (UUID: {SLICE})
    Serial Number                         : {SERIAL}
                     USER        PID ACCESS COMMAND
/dev/nvidia0:        {OTHER}    4711 F...m python
drwxr-xr-x 2 {OTHER} users 4096 Nov  3 10:02 runs
machine api.wandb.ai login user password {NETRC}
Author: {COMMITTER} <{MAIL}>
origin\tgit@git.kranich.de:{REMOTE}.git (fetch)
-----BEGIN OPENSSH PRIVATE KEY-----
{PEM[0]}
{PEM[1]}
{PEM[2]}
-----END OPENSSH PRIVATE KEY-----
"""
FILES = {
    "crash.log": LOG,
    "kernel.log": KERNEL,
    "env.txt": ENVIRONMENT,
    "train.yaml": YAML,
    "docker.json": JSON,
    f"{USER}-table.txt": TABLE,
}
SECRETS = {
    name: value
    for name, value in list(globals().items())
    if name.isupper() and isinstance(value, str) and name not in {
        "HEX", "LOG", "KERNEL", "ENVIRONMENT", "YAML", "JSON", "TABLE", "SHARE",
    }
} | {f"PEM{number}": line for number, line in enumerate(PEM)} | {
    "SHARE": SHARE, "NUMBER": "84711174", "BASE": "vogelnest",
}  # fmt: skip
