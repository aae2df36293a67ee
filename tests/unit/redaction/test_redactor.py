"""Names and secrets go, figures and words stay, and doing it twice changes nothing."""

from __future__ import annotations

import json
import re
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoctor.redaction.redactor import PATTERNS, Redactor
from tests.hang import no_hang


def redacted(*texts: str) -> tuple[str, ...]:
    redactor = Redactor()
    for text in texts:
        redactor.learn(text)
    return tuple(redactor.redact(text) for text in texts)


HARMLESS = (
    "torch 2.6.0.1",
    "nvidia-nccl-cu12        2.21.5.1",
    "nvidia-cudnn-cu12==9.1.0.70",
    "libcudnn.so.9.1.0.70",
    "Driver Version: 550.127.05   CUDA Version: 12.4",
    "listening on 127.0.0.1:29500 and 0.0.0.0:8000",
    "http://localhost:8000/health",
    "meta-llama/Llama-3-8B-Instruct",
    "Qwen/Qwen2.5-7B at revision 3f2a1c",
    "https://pytorch.org/docs/stable/notes/cuda.html#environment-variables",
    "https://huggingface.co/docs/transformers",
    "git+https://github.com/huggingface/transformers.git@8c12690cecbb97e187861e386f7a0ac790e4236c",
    "/root/.cache/huggingface/hub/models--x/snapshots/8c12690cecbb97e187861e386f7a0ac790e4236c/a",
    "/home/ubuntu/venv/lib/python3.11/site-packages/torch/nn/modules/module.py",
    "root     4711  0.0  0.1  12345  2345 ?  Ss  10:02  0:00 /usr/sbin/sshd",
    "2026-11-03T10:02:13.123Z INFO trainer: step 12:34:56",
    "00000000:0C:00.0 Off |                    0",
    "pad_token: <|endoftext|>",
    "eos_token=<|im_end|>",
    "image_token: <image>",
    "max_new_tokens=4096, num_tokens: 12345678",
    "token_type_ids = inputs['token_type_ids']",
    "use_auth_token=True, token=token, api_key=os.environ['KEY']",
    "password=args.password",
    "key_padding_mask=None, attn_key: 3",
    "HF_TOKEN=$HF_TOKEN",
    "secret: ***",
    "std::vector<at::Tensor> c10::cuda::CUDACachingAllocator",
    "at::native::add::call(dead::beef)",
    "x @ W + b; attn@value.transpose(1, 2)",
    "@torch.no_grad()",
    "|    0   N/A  N/A     90417      C   python                 9667MiB |",
    "Tried to allocate 2.32 GiB (GPU 0; 23.64 GiB total capacity)",
    "train: 100%|##########| 10/10 [00:10<00:00,  1.00it/s]",
    "host memory 251 GiB, host=gpu",
    "preds_host = logits if preds_host is None else nested_concat(preds_host, logits)",
    "user: what is the capital of France?",
    "step-100 loss=1.234e-05 lr=2e-4 grad_norm=0.1.2",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0",
    "Mem-Info: active_anon:12345 inactive_anon:678 isolated_anon:0",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl",
    "tensor([-0.1234, 0.5678], device='cuda:0', dtype=torch.bfloat16)",
    "rank0: [rank1]: worker-0 node_rank=1 local_rank: 3",
    "C:\\Program Files\\Python311\\Lib\\site-packages\\torch\\_tensor.py",
    "os.path.join('a\\nTraceback', 'b\\tuser')",
    "--partition=gpu --account=default --mem=64G",
    "s3 = boto3; gs = 1; bucket_size: 500000000",
    "cookie_jar = None",
    "basic training of the auto model",
    "the bearer of this message",
)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_alike_stays(text: str) -> None:
    assert (text,) == redacted(text)


def test_at_least_40_look_alikes_are_tried() -> None:
    assert len(HARMLESS) >= 40


@pytest.mark.parametrize("account", ["root", "ubuntu", "user", "train", "data", "python", "max"])
def test_a_user_called_like_a_word_is_not_replaced_elsewhere(account: str) -> None:
    _, text = redacted(f"/home/{account}/x.py", f"{account} {account}_size of the {account}")

    assert f"{account} {account}_size of the {account}" == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lena 4711 C python, lena_sft, lena-7b", "USER1 4711 C python, USER1_sft, USER1-7b"),
        ("valena lenas LENA", "valena lenas USER1"),
        ('{"log": "x\\nlena: y"}', '{"log": "x\\nUSER1: y"}'),
        ("USER=lena", "USER=USER1"),
        ("drwxr-xr-x 2 lena users 4096 Nov 3 x", "drwxr-xr-x 2 USER1 users 4096 Nov 3 x"),
    ],
)
def test_a_name_that_one_text_tells_is_replaced_in_all(text: str, expected: str) -> None:
    assert expected == redacted("/home/lena/sft/train.py", text)[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PEER=node-03 MASTER_ADDR=node-03", "PEER=HOST1-03 MASTER_ADDR=HOST1-03"),
        ("MASTER_ADDR=node-03\nHOSTNAME=node-04", "MASTER_ADDR=HOST1-03\nHOSTNAME=HOST1-04"),
        ("NodeList=dgx-a[03-05]\nx on dgx-a04 ok", "NodeList=HOST1-[03-05]\nx on HOST1-04 ok"),
        ("HOSTNAME=frieda.lab.example\nfrieda up", "HOSTNAME=HOST1\nHOST1 up"),
    ],
)
def test_hosts_keep_their_numbers(text: str, expected: str) -> None:
    assert (expected,) == redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "hf_\x1b[31mabcdefgh\x1b[0mijklmnop",
        "hf_abcd\u200befghijklmnop",
        '{"a": "line\\nhf_abcdefghijklmnop\\n"}',
        "x" * 70 + " hf_abcdefgh\nijklmnop7 and more",
        "https://x.example/?a=1&b=hf_abcdefghijklmnop",
        "10%|#  |\rhf_abcdefghijklmnop\r20%|## |",
    ],
)
def test_a_disguised_key_is_found(text: str) -> None:
    (shown,) = redacted(text)

    assert "SECRET1" in shown
    assert "ijklmnop" not in shown
    assert text.count("\n") == shown.count("\n")


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        ("/home/józef/x.py", "zef"),
        ('{"p": "/home/j\\u00f3zef/x.py"}', "zef"),
        ("file:///home/j%C3%B3zef/x.py", "zef"),
        ("/home/anna-lena.k/x.py", "lena"),
        ("C:\\\\Users\\\\anna.k\\\\x.py", "anna"),
        ("C:/Users/Anna Kranz/x.py", "Kranz"),
        ("/Users/anna/x.py", "anna"),
        ("-rw-r--r-- 1 anna staff 12 Nov 3 10:02 x.py", "anna"),
    ],
)
def test_a_home_path_tells_no_name(path: str, gone: str) -> None:
    (shown,) = redacted(path)

    assert gone not in shown
    assert "x.py" in shown


def test_a_number_in_json_stays_json() -> None:
    (shown,) = redacted('{"password": 84711174, "n": 1}')

    assert json.loads(shown) == {"password": "SECRET1", "n": 1}


TOKEN = st.text(string.ascii_letters + string.digits, min_size=36, max_size=40).map("aB1{}".format)
SHAPES = st.sampled_from(
    [
        "hf_{}", "sk-proj-{}", "ghp_{}", "glpat-{}", "nvapi-{}", "xoxb-{}", "password={}",
        "Authorization: Bearer {}", "postgres://u:{}@db.example:5432/x", "https://x/?sig={}",
        '"api_key": "{}"', "WANDB_API_KEY={}", "--db-password {}", "client_secret: '{}'",
        "Cookie: session={}", "dckr_pat_{}", "AccountKey={};",
    ]
)  # fmt: skip
NOISE = st.text(st.characters(codec="utf-8", exclude_characters="\x1b"), max_size=40)


@settings(max_examples=150, deadline=None)
@given(token=TOKEN, shape=SHAPES, before=NOISE, after=NOISE)
def test_a_key_never_survives(token: str, shape: str, before: str, after: str) -> None:
    text = f"{before} {shape.format(token)} {after}"

    (shown,) = redacted(text)

    assert token not in shown
    assert text.count("\n") == shown.count("\n")
    assert (shown,) == redacted(shown)


@settings(max_examples=150, deadline=None)
@given(name=st.from_regex(r"[a-z][a-z]{3,9}zq[.-]?[a-z0-9]{1,3}", fullmatch=True), after=NOISE)
def test_a_user_never_survives(name: str, after: str) -> None:
    text = f"/home/{name}/x.py\n{name}: {after}\nUSER={name}"

    (shown,) = redacted(text)

    assert name not in shown
    assert (shown,) == redacted(shown)


@pytest.mark.parametrize(
    "part", ["a", "a.", "a-", "/home/", "1.", ":", "a@", "://", "password=", "\\\\", "[1-", " "]
)  # fmt: skip
def test_long_lines_end_in_time(part: str) -> None:
    with no_hang(seconds=30):
        redacted(part * (60_000 // len(part)))


def test_every_pattern_has_one_group_to_replace() -> None:
    assert all(re.compile(pattern.regex).groupindex.get("it") for pattern in PATTERNS)
