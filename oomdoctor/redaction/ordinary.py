"""Words that name nobody: accounts that exist everywhere, public sites, terms of the trade.

An account such as `ubuntu` is never replaced. A name that is an ordinary word too (a user called
`max`) is replaced where its place tells that it is a name, and nowhere else.
"""

from __future__ import annotations

import re
from functools import cache

ACCOUNTS = """
admin administrator airflow all app appuser azureuser bin buildbot buildd builder centos coder
codespace colab conda daemon debian default docker ec2-user fedora git gitlab-runner jenkins jovyan
kaggle linuxbrew mambauser me mockbuild munge mysql myuser nobody nogroup nvidia opc oracle postgres
public ray redis render root runner sagemaker sagemaker-user shared slurm staff sudo sys systemd
ubuntu user user1 user2 username users video vscode wheel www-data you your_user yourname
"""

WORDS = """
a about access account active ada address agent albert all allocate allocated allocation allocator
alpaca amd ampere an and any apex api apr april arch archive args array art as asr assert at aten
attention aug august author auto autograd autumn axolotl aya backend backward baichuan bar bart base
bash batch be bench bert best beta bf16 bill binary blackwell block bloom body book boot box branch
broken bucket buffer build built bus by bytes cache call card case cat cause cerebras chase chat
chatglm check child chunk class claude clean client clip cloud cluster code codellama codes cohere
colab collective column comm command common compile compute conf config connect console container
content context control cook copy core corpus count cpu crash create critical cron cuda cudnn
current custom cutlass cycle data database dataset datasets date day dean debug dec december deep
deepseek deepspeed default delta demo dense deploy dev device devices diffusion dim dino dir disk
dist distributed dns docker docs dolly done down download draft drew driver drop dtype dump dynamo
earl echo edge eight embed empty end engine env epoch error eval evaluate event every example exec
exit exp expert export extra fail failed fairseq falcon false fast fatal feature feb february feed
file files final fine first fix flag flash flax flow flux folder for forward foundation fp16 fp32
frame frank free friday from full func function functional game gate gemma gen general generate get
git glm global go gpt gpu gpuq gpus grace grad gradient gradio granite grant graph green grid group
guest guide guy hand head help helper hidden high hip home hook hopper host hosts hour http https
hub hunter hunyuan id image images in index inductor inf infer inference info init inner input
inputs install int intel interactive internlm is issue it item iter jack jamba jan january jax job
jobs join json july june just kepler kernel key kill killed king lab lance lang large last launch
layer layers lead learn level lib libs light lightning line linear link linux list llama llm load
loader local localhost log logger logging logs long loop lora loss lovelace low luna machine mail
main make mamba manager map mar march mark mask master math matrix max maxwell may mean megatron mem
memory message meta metal method metric micro miles min mini mistral mixed mixtral mode model models
module modules mon monday monitor month more mps multi my name names nan native nccl nemo nemotron
net network new next nice no node nodes none norm normal not note notice nov november now npu null
num number nvidia object oct october of off ok old olmo on one online oom op open ops opt optim or
orca order other out outer output over own owner pack package pad page paper parallel param params
part pascal pass pat patch path pay peft phi pid pierce pip pipe pipeline pixart play pod point
policy pool port post power pre pred predict prep print process prod production prof profile project
prompt proxy public pull push py pytest pythia python pytorch quadro queue quick qwen ram random
rank ray read reader real ref remote render repo request reserved reset result results return rich
rob roberta robin rocm rose row rule run runner runs rwkv safe sam sample sat save scale scheduler
score scratch script sdxl search sec second self send sep september seq serve server service session
set setup seven sft shape shard share shared shell short show sim single size sky slow slurm small
snap snapshot softmax some source space spark split stack stage standard starcoder start stat state
stats status stderr stdout step stone stop storage store stream string student study style sub sue
sum summary summer sun sunday super support switch sync sys system systemd table tag task teacher
team temp tensor term tesla test tests text the theta this thread thursday time titan to tok token
tokenizer tokens tony tool tools top torch total trace train trainer training transformer
transformers tree trial triton true try tue tuesday tune turing type ui unit unknown unsloth up
update upload url usage use used user users util utils val valid validation value var vast vector
version vicuna video view vision vit vllm vocab volta volume wait wan wandb warn warning warren web
wed week weight weights west while whisper white will win window windows winter with wolf wood word
work worker workers workspace world write xformers xla xpu yaml year yes yi yolo young zero
"""

SITES = """
aka.ms amazon.com amazonaws.com amd.com anaconda.com anaconda.org anthropic.com apache.org apple.com
arxiv.org azure.com bit.ly bitbucket.org clear.ml cloudflare.com cohere.ai comet.com conda.io
debian.org deepspeed.ai developer.mozilla.org discord.com discord.gg docker.com docker.io
example.com example.net example.org fastly.net gcr.io ghcr.io github.com github.io
githubusercontent.com gitlab.com gnu.org goo.gl google.com googleapis.com googlesource.com hf.co
huggingface.co intel.com jax.dev json-schema.org k8s.io kaggle.com keras.io kernel.org kubernetes.io
lightning.ai llamafactory.cn medium.com microsoft.com mistral.ai mlflow.org modelscope.cn
mozilla.org neptune.ai numpy.org nvcr.io nvidia.com openai.com openreview.net openxla.org
paperswithcode.com pkg.dev pydantic.dev pypi.org python.org pythonhosted.org pytorch.org quay.io
ray.io readme.io readthedocs-hosted.com readthedocs.io readthedocs.org reddit.com schedmd.com
schema.org scikit-learn.org scipy.org slack.com slurm.net stackoverflow.com t.co tensorflow.org
tiny.cc ubuntu.com unsloth.ai vllm.ai w3.org wandb.ai wandb.me wikipedia.org windows.net yaml.org
youtube.com
"""

_NOBODY = "127.0.0.1 0.0.0.0 255.255.255.255 ::1 ::"
LOOPBACK = frozenset(_NOBODY.split())

_NUMBERED = """
block col cpu cuda cudnn dev device epoch expert gpu gpus group hip layer libcudnn line npu py
python rank shard stage step tpu v version xpu
"""


@cache
def _accounts() -> frozenset[str]:
    return frozenset(ACCOUNTS.split())


@cache
def _words() -> frozenset[str]:
    return frozenset(WORDS.split())


@cache
def _numbered() -> frozenset[str]:
    return frozenset(_NUMBERED.split())


@cache
def _sites() -> frozenset[str]:
    return frozenset(SITES.split())


@cache
def _product() -> re.Pattern[str]:
    """Match names of cards and of sizes: a partition called `a100` is no secret."""
    return re.compile(
        r"(?:[abhlptv]\d{1,4}\w{0,4}|[rg]tx[\w-]*|mi\d+\w*|gh?b?\d+|[dh]gx|tpu\w*"
        r"|gaudi\d?|[\d._x-]+[a-z]{0,3})"
    )


def is_account(name: str) -> bool:
    """Say whether this account exists on many machines and stands for no person."""
    return name.lower() in _accounts()


def is_ordinary(name: str) -> bool:
    """Say whether a name is also a word, so that it may not be replaced wherever it occurs."""
    low = name.lower()
    if len(low) < 2 or low in _words() or low in _accounts():
        return True
    if low.rstrip("0123456789").rstrip("-_") in _numbered():
        return True
    return _product().fullmatch(low) is not None


def is_public(host: str) -> bool:
    """Say whether a host is this machine itself or a site that everybody knows."""
    low = host.lower().rstrip(".")
    if low in LOOPBACK or low.startswith("localhost") or low in ("ip6-localhost", "ip6-loopback"):
        return True
    labels = low.split(".")
    return any(".".join(labels[at:]) in _sites() for at in range(len(labels) - 1))
