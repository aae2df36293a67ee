"""Measure `oomdoctor data` on a large JSON lines file, beside `datasets.map` in the same run.

    python benchmarks/data.py [--size 2048] [--share 0.05] [--processes 2] [--check] [--data DIR]

Needs datasets, tokenizers and pyarrow. The file is made from a seed (words by Zipf's law, one in
thirty of them new, numbers, punctuation), the tokenizer is trained on it: byte-level BPE, 32,000
tokens. Both count with the same tokenizer and as many processes. `datasets.map` gets the first
`--share` of the file, once before and once after ours, and the faster one counts; its loading of
the JSON is timed apart and left out. Seconds of the cores are told beside those of the clock, which
other work on the machine lengthens. Memory is looked at 20 times a second: of the largest process,
and of all together. `--data` keeps what is made in a folder, for the next run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MIB = 1024**2
MOST_MIB = 600
BLOCKS, BLOCK_BYTES = 48, 4 * MIB
ONSETS = (
    *("b", "c", "d", "f", "g", "h", "j", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w"),
    *("st", "tr", "ch", "pl", "br", "th", "sh"),
)
RHYMES = (
    *("a", "e", "i", "o", "u", "ai", "ea", "ou", "an", "en", "in", "on", "er", "ar", "al"),
    *("ing", "ent", "ess"),
)
THEIRS = """
import json, resource, sys, time
from datasets import load_dataset
from tokenizers import Tokenizer
path, tokenizer, processes, how = sys.argv[1:]
machine = Tokenizer.from_file(tokenizer)
def count(rows):
    found = getattr(machine, how)(rows["text"])
    return {"length": [len(one.ids) for one in found]}
if __name__ == "__main__":
    start = time.perf_counter()
    rows = load_dataset("json", data_files=path, split="train")
    loaded = time.perf_counter()
    counted = rows.map(count, batched=True, num_proc=int(processes), remove_columns=["text"])
    done = time.perf_counter()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "load": loaded - start,
                      "map": done - loaded, "tokens": sum(counted["length"])}))
"""


class Cost(NamedTuple):
    """What a command took: seconds, MiB of its largest process and of all, seconds per process."""

    seconds: float
    largest: float
    together: float
    cpu: dict[int, float]
    output: str


class Words:
    """Text out of made-up words, the common ones often, now and then a new one."""

    def __init__(self, seed: int) -> None:
        """Make the vocabulary."""
        self._dice = random.Random(seed)  # noqa: S311 - made-up text
        self._known = [self._word() for _ in range(80_000)]
        self._sums = list(accumulate(1 / (rank + 3) for rank in range(len(self._known))))

    def _word(self) -> str:
        dice = self._dice
        return "".join(
            dice.choice(ONSETS) + dice.choice(RHYMES)
            for _ in range(dice.choice((1, 1, 2, 2, 3, 4)))
        )

    def text(self) -> str:
        """Return a text of some ten to some thousand words."""
        dice = self._dice
        words = dice.choices(
            self._known, cum_weights=self._sums, k=max(8, int(dice.lognormvariate(5, 1)))
        )
        for at in range(7, len(words), 30):
            words[at] = self._word() + self._word()
        for at in range(0, len(words), 14):
            words[at] = words[at].capitalize()
        for at in range(11, len(words), 23):
            words[at] = f"{words[at]}, {dice.randrange(10_000)}"
        for at in range(13, len(words), 14):
            words[at] += ".\n" if at % 3 == 0 else "."
        return " ".join(words)


def make(folder: Path, size: int) -> tuple[Path, Path]:
    """Write the data and the tokenizer; return their paths."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    words = Words(20260304)
    blocks = []
    for _ in range(min(BLOCKS, max(1, size // BLOCK_BYTES))):
        lines, held = [], 0
        while held < BLOCK_BYTES:
            lines.append(json.dumps({"text": words.text()}) + "\n")
            held += len(lines[-1])
        blocks.append("".join(lines).encode())
    path = folder / "train.jsonl"
    with path.open("wb") as file:
        at = 0
        while file.tell() < size:
            file.write(blocks[at % len(blocks)])
            at += 1
    machine = Tokenizer(models.BPE())
    machine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=32_000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    machine.train_from_iterator((words.text() for _ in range(4000)), trainer)
    tokenizer = folder / "tokenizer.json"
    machine.save(str(tokenizer))
    return path, tokenizer


def first_part(path: Path, share: float) -> Path:
    """Write the first lines of a file into another one."""
    part = path.with_name("part.jsonl")
    left = int(path.stat().st_size * share)
    with path.open("rb") as file, part.open("wb") as out:
        for line in file:
            if left <= 0:
                break
            out.write(line)
            left -= len(line)
    return part


def run(command: list[str], folder: Path) -> Cost:
    """Run a command, and look at its processes meanwhile."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "HF_HOME": str(folder / "home"),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    cpu: dict[int, float] = {}
    largest = together = 0.0
    start = time.perf_counter()
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as told,
        subprocess.Popen(
            command, stdout=told, stderr=subprocess.DEVNULL, env=environment, cwd=folder
        ) as process,
    ):
        while process.poll() is None:
            sizes = look(process.pid, cpu)
            largest, together = max(largest, *sizes, 0), max(together, sum(sizes))
            time.sleep(0.05)
        seconds = time.perf_counter() - start
        told.seek(0)
        output = told.read()
    if process.returncode:
        raise SystemExit(f"failed: {' '.join(command)}")
    return Cost(seconds, largest, together, cpu, output)


def look(number: int, cpu: dict[int, float]) -> list[float]:
    """Return the MiB of a process and of all below it; note the CPU seconds of each."""
    try:
        status = Path(f"/proc/{number}/status").read_text()
        times = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    except OSError:
        return [0.0]
    cpu[number] = (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
    own = next((line.split()[1] for line in status.split("\n") if line.startswith("VmRSS")), "0")
    return [int(own) / 1024, *(size for child in children for size in look(int(child), cpu))]


class Theirs(NamedTuple):
    """What datasets.map took: seconds, of the cores in its processes, of loading; its tokens."""

    seconds: float
    cpu: float
    load: float
    tokens: int


def theirs(part: Path, tokenizer: Path, processes: int, how: str) -> Theirs:
    """Count with datasets.map."""
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "theirs.py"
        script.write_text(THEIRS)
        command = [sys.executable, str(script), str(part), str(tokenizer), str(processes), how]
        told = json.loads(run(command, Path(name)).output.splitlines()[-1])
    return Theirs(told["map"], told["cpu"], told["load"], told["tokens"])


def ours(path: Path, tokenizer: Path, processes: int) -> Cost:
    """Count with oomdoctor."""
    command = [sys.executable, "-m", "oomdoctor", "data", str(path)]
    command += ["--tokenizer", str(tokenizer), "--format", "json"]
    return run([*command, "--processes", str(processes)], path.parent)


def compare(folder: Path, asked: argparse.Namespace) -> list[bool]:
    """Make the data, measure both, print; return for each goal whether it was met."""
    path, tokenizer = folder / "train.jsonl", folder / "tokenizer.json"
    if not (path.exists() and tokenizer.exists()):
        path, tokenizer = make(folder, asked.size * MIB)
    size = path.stat().st_size / MIB
    part = first_part(path, asked.share)
    part_size = part.stat().st_size / MIB
    print(f"{size:.0f} MiB, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    before = theirs(part, tokenizer, asked.processes, asked.how)
    print(f"before: {before}, load {os.getloadavg()[0]:.1f}", flush=True)
    cost = ours(path, tokenizer, asked.processes)
    told = json.loads(cost.output)
    busy = sorted((round(used, 1) for used in cost.cpu.values()), reverse=True)
    cpu = sum(busy)
    print(
        f"oomdoctor data: {cost.seconds:.1f} s, {size / cost.seconds:.2f} MiB/s, {size / cpu:.2f}"
        f" MiB per second of a core, {told['tokens']:,} tokens, largest process"
        f" {cost.largest:.0f} MiB, all together {cost.together:.0f} MiB, seconds of the cores by"
        f" process {busy}, load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    after = theirs(part, tokenizer, asked.processes, asked.how)
    best = min(before, after)
    print(
        f"datasets.map ({asked.how}) on {part_size:.0f} MiB: {before.seconds:.1f} s and"
        f" {after.seconds:.1f} s, best {part_size / best.seconds:.2f} MiB/s,"
        f" {part_size / min(before.cpu, after.cpu):.2f} MiB per second of a core"
        f" (loading the JSON before it: {best.load:.1f} s)"
    )
    check = json.loads(ours(part, tokenizer, asked.processes).output)["tokens"]
    part.unlink()
    faster = (size / cost.seconds) / (part_size / best.seconds)
    cheaper = (size / cpu) / (part_size / min(before.cpu, after.cpu))
    cores = sum(one > 0.5 * busy[0] for one in busy)
    print(
        f"x {faster:.2f} the speed of datasets.map, x {cheaper:.2f} per second of a core;"
        f" {cores} processes busy; tokens of the part: {check:,} and {before.tokens:,}"
    )
    return [faster >= 1, cost.together <= MOST_MIB, cores >= 2, check == before.tokens]


def main() -> int:
    """Measure, print, and with --check fail where a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=2048, help="MiB of the file")
    parser.add_argument("--share", type=float, default=0.05, help="of it for datasets.map")
    parser.add_argument("--how", default="encode_batch", help="the tokenizer's method for it")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--data", type=Path, help="a folder that keeps the data")
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        met = compare(asked.data or Path(name), asked)
    return 1 if asked.check and not all(met) else 0


if __name__ == "__main__":
    sys.exit(main())
