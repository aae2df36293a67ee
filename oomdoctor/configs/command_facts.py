"""What program, launcher, script name and container options say on their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.configs import meanings, shell_text
from oomdoctor.configs.claims import Claim, size
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from oomdoctor.configs.setting import Lines, Plain
    from oomdoctor.configs.shell_text import Word
    from oomdoctor.model.core import Quote

LAUNCH_MODULES = ("torch.distributed.launch", "torch.distributed.run")
SCRIPTS = (".py", ".sh", ".ipynb")
WEB_SERVERS = ("gunicorn", "uvicorn", "hypercorn", "celery")
LAUNCHERS = {
    "torchrun": "torchrun",
    "accelerate": "accelerate",
    "deepspeed": "deepspeed",
    "python": "python",
}
SERVERS = (
    ("vllm serve", "vllm"),
    ("vllm.entrypoints", "vllm"),
    ("sglang.launch_server", "sglang"),
    ("sglang serve", "sglang"),
    ("lmdeploy serve", None),
    ("llama-server", None),
    ("ollama serve", None),
    ("text-generation-launcher", None),
    ("trl vllm-serve", "vllm"),
)
FRAMEWORKS = (
    ("axolotl", "axolotl"),
    ("llamafactory-cli", "llamafactory"),
    ("llamafactory", "llamafactory"),
    ("train_bash", "llamafactory"),
    ("trl", "trl"),
    ("tune run", "torchtune"),
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("torchtitan", "torchtitan"),
    ("litgpt", "lightning"),
)
SCRIPT_TASKS = (  # parts of script names, the telling ones first
    (
        (
            "dreambooth",
            "text_to_image",
            "textual_inversion",
            "controlnet",
            "diffusion",
            "sdxl",
            "flux",
            "train_db",
        ),
        "diffusion",
    ),
    (("grpo", "rloo"), "grpo"),
    (("dpo", "orpo"), "dpo"),
    (("kto",), "kto"),
    (("ppo",), "ppo"),
    (("reward",), "reward"),
    (("sft",), "sft"),
    (("seq2seq", "summarization", "translation"), "seq2seq"),
    (("run_glue", "classification"), "classification"),
    (("pretrain",), "pretrain"),
    (("merge", "export_model"), "merge"),
)


def is_script(words: list[Word], at: int) -> bool:
    """Say whether a word of a command is a script, or the module behind `-m`."""
    text = words[at].text
    module = at > 0 and words[at - 1].text == "-m" and not text.startswith("-")
    return text.endswith(SCRIPTS) or (module and text.replace(".", "_").isidentifier())


def launcher_of(words: Sequence[str]) -> str | None:
    """Return the launcher that the words before the script name."""
    if any(module in words for module in LAUNCH_MODULES):
        return "torchrun"
    head = words[0].rpartition("/")[2] if words else ""
    if head.startswith("python"):
        return "python"
    return LAUNCHERS.get(head)


def launched(launcher: str) -> Claim:
    """Claim the launcher."""
    return Claim("job.launcher", launcher)


def script(name: str) -> Iterator[Claim]:
    """Read a script's name."""
    base = name.rpartition("/")[2]
    if base.startswith("<"):
        return
    yield Claim("job.script", base)
    yield from task_of_script(base)


def script_value(value: Plain) -> Iterator[Claim]:
    """Read `script: train.py`."""
    if isinstance(value, str) and value and " " not in value.strip():
        yield from script(value.strip())


def task_of_script(base: str) -> Iterator[Claim]:
    """Guess the task from the name of a script; a guess is derived, not stated."""
    low = base.lower()
    if "lora" in low:
        yield Claim("lora.on", value=True, source="name of the script", origin=Origin.DERIVED)
    for marks, task in SCRIPT_TASKS:
        if any(mark in low for mark in marks):
            yield Claim("job.task", task, 0, "name of the script", Origin.DERIVED)
            return


def program(words: list[Word], lines: Lines) -> list[tuple[Claim, Quote]]:
    """Read what the command as a whole is: a server, a framework's own command."""
    joined = " ".join(word.text for word in words[:6])
    where = shell_text.quote(words[0], lines)
    made: list[tuple[Claim, Quote]] = []
    name = words[0].text.rpartition("/")[2]
    if name == "trl" and len(words) > 1 and words[1].text in meanings.STAGES:
        made.append(
            (Claim("job.task", meanings.STAGES[words[1].text]), shell_text.quote(words[1], lines))
        )
    for mark, framework in SERVERS:
        if mark in joined:
            made.append((Claim("job.task", "serve"), where))
            if framework:
                made.append((Claim("job.framework", framework), where))
            model = _model_argument(words)
            if model is not None:
                here = shell_text.quote(model, lines)
                made += [(claim, here) for claim in meanings.model_name(model.text)]
            return made
    for mark, framework in FRAMEWORKS:
        if joined.startswith(mark) or f"-m {mark}" in joined or f"/{mark}" in joined:
            made.append((Claim("job.framework", framework), where))
            break
    return made


def _model_argument(words: list[Word]) -> Word | None:
    """Return the model that `vllm serve MODEL` names without a flag."""
    for at, word in enumerate(words[1:], start=1):
        named = words[at - 1].text in ("serve", "api_server") and word.text != "api_server"
        if named and not word.text.startswith("-"):
            return word
    return None


def container(words: list[Word], lines: Lines) -> list[tuple[Claim, Quote]]:
    """Read the options of a container that matter: it is one, its shared memory, its limit."""
    made = [(Claim("env.container", value=True), shell_text.quote(words[0], lines))]
    for at, word in enumerate(words):
        name, equals, value = word.text.partition("=")
        after = words[at + 1] if not equals and at + 1 < len(words) else None
        written = value or (after.text if after else "")
        where = shell_text.quote(after, lines) if after else shell_text.quote_value(word, lines)
        if name == "--shm-size":
            made += [(claim, where) for claim in size("host.shm_total", slack_share=0.001)(written)]
        elif name in ("--memory", "-m") and written[:1].isdecimal():
            made += [
                (claim, where) for claim in size("host.group_limit", slack_share=0.001)(written)
            ]
    return made
