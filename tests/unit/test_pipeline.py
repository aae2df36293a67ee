"""The public entry: texts, paths, directories, standard input, configs and given facts."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from oomdoctor.errors import InputError, UsageError
from oomdoctor.inputs import is_text
from oomdoctor.pipeline import assemble, derived_sources, diagnose, gather

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total "
    "capacity of 39.39 GiB of which 1.25 GiB is free. Including non-PyTorch memory, this process "
    "has 38.10 GiB memory in use. Of the allocated memory 36.90 GiB is allocated by PyTorch, and "
    "512.00 MiB is reserved by PyTorch but unallocated."
)
CONFIG = "per_device_train_batch_size: 4\ngradient_checkpointing: false\n"
SUMMARY = """\
|                  PyTorch CUDA memory summary, device ID 0                 |
|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
| Allocated memory      |   9210 MiB |   9340 MiB | 368400 MiB | 359190 MiB |
| GPU reserved memory   |  10240 MiB |  10240 MiB |  19240 MiB |   9000 MiB |
"""
STRANGER = """\
| NVIDIA-SMI 535.129.03             Driver Version: 535.129.03   CUDA Version: 12.2     |
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:07:00.0 Off |                    0 |
| N/A   58C    P0             302W / 400W |  27110MiB / 40960MiB |     97%      Default |
| Processes:                                                                            |
|  GPU   GI   CI        PID   Type   Process name                            GPU Memory |
|    0   N/A  N/A     70021      C   python3                                   27094MiB |
"""


def test_a_string_with_line_feeds_is_the_text() -> None:
    assert is_text("RuntimeError: x\n")


def test_a_message_on_one_line_is_the_text() -> None:
    assert is_text(OOM)


def test_a_name_without_a_file_is_a_path() -> None:
    assert not is_text("logs/crash 2.log")
    assert not is_text("-")


def test_an_existing_file_is_a_path_whatever_its_name(tmp_path: Path) -> None:
    named = tmp_path / "a long name: of a log"
    named.write_text(OOM)

    assert not is_text(str(named))


def test_a_missing_file_is_an_input_error() -> None:
    with pytest.raises(InputError):
        diagnose("no-such-crash.log")


def test_a_text_and_its_file_give_the_same_facts(tmp_path: Path) -> None:
    path = tmp_path / "crash.log"
    path.write_text(OOM + "\n")

    by_text = diagnose(OOM + "\n")
    by_path = diagnose(str(path))

    assert by_text.facts["oom.requested"].value == 3 << 30
    assert {k: f.value for k, f in by_text.facts.items()} == {
        k: f.value for k, f in by_path.facts.items()
    }


def test_standard_input_is_read() -> None:
    said = diagnose("-", stdin=io.BytesIO(OOM.encode()))

    assert said.facts["oom.requested"].value == 3 << 30


def test_a_directory_is_read_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "crash.log").write_text(OOM)
    (tmp_path / "notes.bin").write_bytes(bytes(range(256)) * 40)

    said = diagnose(str(tmp_path))

    assert said.facts["oom.requested"].value == 3 << 30


def test_an_empty_directory_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        diagnose(str(tmp_path))


def test_a_config_is_read_from_a_path_a_text_and_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(CONFIG)
    mapping = {"per_device_train_batch_size": 4, "gradient_checkpointing": False}

    batches = [
        assemble(gather(OOM, config=config)).value("train.micro_batch")
        for config in (str(path), [str(path)], CONFIG, mapping)
    ]

    assert batches == [4, 4, 4, 4]


def test_an_input_that_is_a_config_is_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(CONFIG)

    gathered = gather([OOM, str(path)])

    assert [one.path for one in gathered.readings] == [str(path)]


def test_a_broken_config_becomes_a_note_and_the_log_still_speaks() -> None:
    said = diagnose(OOM, config='{"train_batch_size": 4,\n "broken": [1, 2\n')

    assert said.facts["oom.requested"].value == 3 << 30


def test_given_facts_outrank_what_was_read_and_the_conflict_is_kept() -> None:
    said = diagnose(OOM, facts=["oom.requested=7 GiB"])

    assert said.facts["oom.requested"].value == 7 << 30
    assert [one.key for one in said.conflicts] == ["oom.requested"]


def test_a_malformed_given_fact_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        diagnose(OOM, facts=["oom.requested=much"])


def test_several_texts_have_names_of_their_own() -> None:
    gathered = gather([OOM, "step 1: fine\nstep 2: fine\n"])

    assert [one.id for one in gathered.artifacts] == ["<text>", "<text-2>"]


def test_the_lines_of_all_logs_are_searched() -> None:
    book = assemble(gather([OOM, "first line\nsecond line\n"]))
    text = book.get("log.text")

    assert text is not None
    assert "first line" in str(text.value)
    assert "Tried to allocate" in str(text.value)


def test_the_order_of_artifacts_does_not_change_the_answer() -> None:
    table = "memory.used [MiB], memory.total [MiB]\n39000 MiB, 40335 MiB\n"

    one = diagnose([OOM, table])
    other = diagnose([table, OOM])

    assert [(c.cause, round(c.probability, 9)) for c in one.causes] == [
        (c.cause, round(c.probability, 9)) for c in other.causes
    ]


def test_derived_facts_name_their_sources() -> None:
    assert "oom.capacity" in derived_sources()["balance.outside"]


def test_a_file_whose_name_holds_a_line_feed_is_read_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "my\nlog.txt"
    path.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")

    assert diagnose([str(path)]).event is not None


def test_a_text_longer_than_any_path_is_a_text() -> None:
    assert is_text("[" * 5000)


def test_notes_on_a_config_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("a: 1\na: 2\n")

    assert diagnose([str(path)]).notes[0].startswith(f"{path}: 'a' is given twice")


def test_a_failure_among_lines_of_code_is_read_as_a_log() -> None:
    text = (
        "Error occurred when executing Decode:\n\nAllocation on device\n\n"
        'File "nodes.py", line 336, in decode\nframes = vae.decode(latents).sample\n'
        'File "autoencoder.py", line 53, in decode\ndecoded = self._decode(z).sample\n'
    )

    assert diagnose(text).facts["oom.seen"].value is True


def test_a_strangers_row_in_a_table_beside_healthy_text_is_no_failure() -> None:
    said = diagnose(["step 10 loss 2.1\nstep 11 loss 2.0\n" + SUMMARY, STRANGER])

    assert said.facts["gpu.process_rows"].value == 1
    assert (said.answer, said.causes, said.prescriptions) == ("nothing_found", (), ())


def test_a_table_behind_lines_of_code_is_read_as_a_table(tmp_path: Path) -> None:
    table = (FIXTURES / "raw/nvidia_smi/driver_470_rank_contexts.txt").read_text()
    pasted = tmp_path / "pasted.txt"
    pasted.write_text("import torch\n" + "    x = f(\n" * 2000 + table)

    found = diagnose(str(pasted))

    assert found.facts["gpu.process_rows"].value == diagnose(table).facts["gpu.process_rows"].value
