from __future__ import annotations

import pytest

from oomdoctor.evidence import environment
from oomdoctor.model.enums import Origin
from tests.unit.evidence.tables_documents import MIB, fact_of, read_raw, read_text, values

SETTINGS = [
    "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    'export PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"',
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py --bf16",
    "PYTORCH_ALLOC_CONF=expandable_segments:True",
    "$ PYTORCH_HIP_ALLOC_CONF=expandable_segments:True torchrun train.py",
    "NCCL_DEBUG=INFO PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True torchrun train.py",
    'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"',
    "os.environ.setdefault('PYTORCH_CUDA_ALLOC_CONF', 'expandable_segments:True')",
    "  PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True",
    '  "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",',
    "docker run --gpus all -e PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True image",
    "ENV PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    '$env:PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"',
    "%env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    'torch.cuda.memory._set_allocator_settings("expandable_segments:True")',
]
NO_SETTINGS = [
    "large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation",
    "memory is large try setting\nPYTORCH_ALLOC_CONF=expandable_segments:True\nto avoid it",
    "# export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    '# os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"',
    "See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF",
    "You may want to use PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True here",
    'print(os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"))',
]


@pytest.mark.parametrize("text", SETTINGS)
def test_a_setting_is_read_wherever_it_is_made(text: str) -> None:
    said = values(read_text(environment, text), "alloc.")

    assert said == {
        "alloc.conf": "expandable_segments:True",
        "alloc.expandable_segments": True,
    }


@pytest.mark.parametrize("text", NO_SETTINGS)
def test_advice_comments_and_questions_set_nothing(text: str) -> None:
    assert values(read_text(environment, text), "alloc.") == {}


@pytest.mark.parametrize("file", ["hint_only.txt", "hint_wrapped.txt"])
def test_the_hint_of_the_message_is_no_setting(file: str) -> None:
    assert values(read_raw(environment, "environment", file)) == {}


def test_all_options_of_the_allocator_become_facts() -> None:
    conf = (
        "backend:native,max_split_size_mb:128,garbage_collection_threshold:0.8,"
        "roundup_power2_divisions:[256:1,512:2],expandable_segments:False"
    )

    said = values(read_text(environment, f"export PYTORCH_CUDA_ALLOC_CONF={conf}"))

    assert {
        "alloc.conf": conf,
        "alloc.backend": "native",
        "alloc.max_split_size": 128 * MIB,
        "alloc.gc_threshold": 0.8,
        "alloc.roundup": "[256:1,512:2]",
        "alloc.expandable_segments": False,
    } == said


def test_a_setting_without_expandable_segments_leaves_them_off() -> None:
    reading = read_text(environment, "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64")

    fact = fact_of(reading, "alloc.expandable_segments")
    assert (fact.value, fact.origin) == (False, Origin.DERIVED)


def test_the_later_setting_wins() -> None:
    text = (
        "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64\n"
        "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"
    )

    assert values(read_text(environment, text))["alloc.conf"] == "expandable_segments:True"


def test_a_lasting_and_another_setting_of_visible_devices_conflict() -> None:
    text = "export CUDA_VISIBLE_DEVICES=5\nCUDA_VISIBLE_DEVICES=0 python train.py\n"

    assert values(read_text(environment, text)) == {
        "env.visible_devices": "0",
        "env.visible_devices_conflict": True,
    }


@pytest.mark.parametrize(
    "text",
    [
        "CUDA_VISIBLE_DEVICES=0 python a.py\nCUDA_VISIBLE_DEVICES=1 python b.py\n",
        "export CUDA_VISIBLE_DEVICES=0,1\nCUDA_VISIBLE_DEVICES=0,1 python a.py\n",
        "LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0]\nLOCAL_RANK: 1 - CUDA_VISIBLE_DEVICES: [1]\n",
        'os.environ["CUDA_VISIBLE_DEVICES"] = "0, 1"\nexport CUDA_VISIBLE_DEVICES=0,1',
    ],
    ids=["two-runs", "same-value", "launcher", "spaces"],
)
def test_two_runs_or_equal_values_do_not_conflict(text: str) -> None:
    said = values(read_text(environment, text))

    assert "env.visible_devices_conflict" not in said
    assert said["env.visible_devices"][0] in "01"  # type: ignore[index] - a text


def test_jax_variables_that_are_set_after_the_import_come_too_late() -> None:
    text = 'import jax\nimport os\nos.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"\n'

    assert values(read_text(environment, text)) == {
        "xla.preallocate": False,
        "xla.set_after_import": True,
    }


def test_jax_variables_of_the_shell_are_in_time() -> None:
    text = "XLA_PYTHON_CLIENT_MEM_FRACTION=.5 python a.py\nimport jax\n"

    assert values(read_text(environment, text)) == {"xla.memory_fraction": 0.5}


@pytest.mark.parametrize(
    ("text", "fraction"),
    [
        ("torch.cuda.set_per_process_memory_fraction(0.5, 0)", 0.5),
        ("    torch.cuda.set_per_process_memory_fraction(fraction=.25)", 0.25),
        ("export PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.3", 0.3),
    ],
)
def test_a_memory_fraction_is_a_cap(text: str, fraction: float) -> None:
    assert fraction == values(read_text(environment, text))["alloc.fraction"]


def test_a_fraction_that_is_a_variable_is_not_known() -> None:
    text = "torch.cuda.set_per_process_memory_fraction(share, 0)"

    assert values(read_text(environment, text)) == {}


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("[2024 Control 57] Cmd:set_default_device_pinned_mem_limit 0 4606M", 4606 * MIB),
        ("export CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=4G", 4096 * MIB),
    ],
)
def test_a_limit_of_the_mps_server_is_read(text: str, limit: int) -> None:
    assert {"mps.client_limit": True, "mps.client_limit_bytes": limit} == values(
        read_text(environment, text)
    )


def test_caching_can_be_switched_off() -> None:
    text = "PYTORCH_NO_CUDA_MEMORY_CACHING=1 python a.py"

    assert values(read_text(environment, text)) == {"alloc.cache_disabled": True}


@pytest.mark.parametrize(
    ("text", "platform"),
    [
        ("Platform: Linux-5.15.153.1-microsoft-standard-WSL2-x86_64-with-glibc2.35", "wsl"),
        ("platform: WSL2", "wsl"),
        ('File "C:\\Users\\mia\\venv\\lib\\site-packages\\torch\\nn.py", line 3', "windows"),
        ('File "/Users/mia/venv/lib/python3.11/site-packages/torch/nn.py", line 3', "macos"),
        ("- Platform: macOS-14.4-arm64-arm-64bit", "macos"),
        ("- Platform: Linux-6.5.0-35-generic-x86_64-with-glibc2.35", "linux"),
    ],
)
def test_the_platform_is_told_by_sure_signs(text: str, platform: str) -> None:
    assert platform == values(read_text(environment, text))["env.platform"]


def test_a_home_directory_proves_no_platform() -> None:
    text = 'docker? File "/home/mia/venv/lib/python3.11/site-packages/torch/nn.py", line 3'

    assert values(read_text(environment, text)) == {}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("oom_memcg=/kubepods/burstable/pod1234", "env.container"),
        ("Task in /docker/0123456789abcdef killed", "env.container"),
        ("docker run --gpus all image", "env.container"),
        ('File "/tmp/ipykernel_4711/123.py", line 3, in <module>', "env.notebook"),
        ("Cell In[7], line 3", "env.notebook"),
        ("<ipython-input-7-abc> in <module>", "env.notebook"),
    ],
)
def test_containers_and_notebooks_leave_signs(text: str, key: str) -> None:
    assert {key: True} == values(read_text(environment, text))
