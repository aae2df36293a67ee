"""Bundles are whole or not there, say what they lack, and tell the same as the originals."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import threading
from typing import TYPE_CHECKING

import pytest
import yaml

from oomdoctor import diagnose
from oomdoctor.cli.main import run
from oomdoctor.evidence.source import read_source
from oomdoctor.redaction.redactor import Redactor
from oomdoctor.render.json import as_dict

if TYPE_CHECKING:
    from pathlib import Path

LOG = "lena@gpu-box-7:~$ python train.py\nRuntimeError: CUDA out of memory.\n"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "crash.log"
    path.write_text(LOG, encoding="utf-8")
    return path


def test_a_folder_holds_inputs_diagnosis_and_manifest(log: Path) -> None:
    assert run(["collect", str(log), "-o", "out"]) == 0

    out = log.parent / "out"
    names = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert names == [
        "README.txt",
        "diagnosis.json",
        "diagnosis.md",
        "inputs/01-crash.log",
        "manifest.json",
    ]
    text = (out / "inputs/01-crash.log").read_text(encoding="utf-8")
    assert text.startswith("USER1@HOST1-7:~$ python train.py\n")
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["replaced"]["HOST"]["values"] >= 1
    told = json.loads((out / "diagnosis.json").read_text(encoding="utf-8"))
    assert told["artifacts"][0]["id"] == "inputs/01-crash.log"


def test_what_exists_is_replaced_only_by_force_and_only_if_it_is_a_bundle(log: Path) -> None:
    assert run(["collect", str(log), "-o", "b.zip"]) == 0
    assert run(["collect", str(log), "-o", "b.zip"]) == 2
    assert run(["collect", str(log), "-o", "b.zip", "--force"]) == 0

    (log.parent / "precious").mkdir()
    assert run(["collect", str(log), "-o", "precious", "--force"]) == 2
    assert (log.parent / "precious").is_dir()
    assert not list(log.parent.glob(".oomdoctor-*"))


def test_a_dry_run_writes_nothing_and_shows_no_value(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["collect", str(log), "--show"]) == 0

    shown = capsys.readouterr().out
    assert "HOST1-7 for gp" in shown
    assert "gpu-box" not in shown
    assert [log] == list(log.parent.iterdir())


def test_compressed_inputs_become_text_and_binary_ones_are_named(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = log.parent / "logs"
    folder.mkdir()
    (folder / "a.log.gz").write_bytes(gzip.compress(LOG.encode()))
    (folder / "model.bin").write_bytes(b"\x80\x02" + bytes(200))

    assert run(["collect", str(folder), "-o", "out"]) == 0

    inputs = [path.name for path in (log.parent / "out/inputs").iterdir()]
    assert inputs == ["01-a.log"]
    assert "left out" in capsys.readouterr().err


def test_ranks_that_folders_tell_are_told_by_the_names_in_the_bundle(log: Path) -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    for node in ("blue", "red"):
        for rank in range(3):
            path = log.parent / "logs" / node / "attempt_0" / str(rank) / "stderr.log"
            path.parent.mkdir(parents=True)
            path.write_text(oom if (node, rank) == ("red", 2) else "step 1\n", encoding="utf-8")

    assert run(["collect", "logs", "-o", "out"]) == 0

    names = sorted(path.name for path in (log.parent / "out/inputs").iterdir())
    assert names[0] == "01-node1-rank0-stderr.log"
    assert names[-1] == "06-node2-rank2-stderr.log"
    failed = [one for one in as_dict(diagnose("out/inputs"))["ranks"] if one["failed"]]
    assert [(one["ranks"], one["node"]) for one in failed] == [([2], "node2")]


def test_a_bundle_takes_the_files_of_a_folder_that_a_diagnosis_takes(log: Path) -> None:
    for name in ("a/b/c/d/e/f/rank0.log", "vocab.json", "env/x.log", "run/tool.py"):
        path = log.parent / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LOG, encoding="utf-8")

    assert run(["collect", "logs", "-o", "out"]) == 0

    assert [path.name for path in (log.parent / "out/inputs").iterdir()] == ["01-rank0.log"]


@pytest.mark.skipif(os.name == "nt", reason="this system has no named pipes")
def test_a_pipe_is_read_once_and_leaves_no_copy(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (log.parent / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(log.parent / "tmp"))
    pipe = log.parent / "pipe.log"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(LOG, encoding="utf-8"))
    writer.start()

    assert run(["collect", str(pipe), "-o", "out"]) == 0

    writer.join()
    text = (log.parent / "out/inputs/01-pipe.log").read_text(encoding="utf-8")
    assert text.startswith("USER1@HOST1-7:~$")
    assert "01-pipe.log:2" in (log.parent / "out/diagnosis.md").read_text(encoding="utf-8")
    assert list((log.parent / "tmp").iterdir()) == []


def test_a_bundle_is_no_input_of_the_next_one_but_its_inputs_are(log: Path) -> None:
    (log.parent / "logs").mkdir()
    log.rename(log.parent / "logs" / "crash.log")

    for _ in range(2):
        assert run(["collect", "logs", "-o", "logs/out", "--force"]) == 0

    names = [path.name for path in (log.parent / "logs/out/inputs").iterdir()]
    assert names == ["01-crash.log"]
    told = as_dict(diagnose("logs/out"))["artifacts"]
    assert [one["id"] for one in told] == ["logs/out/inputs/01-crash.log"]


def test_a_bundle_is_not_written_to_standard_output(log: Path) -> None:
    assert run(["collect", str(log), "-o", "-"]) == 2
    assert [log] == list(log.parent.iterdir())


def test_nothing_to_share_is_an_error(log: Path) -> None:
    log.write_bytes(b"\x80\x02" + bytes(200))

    assert run(["collect", str(log), "-o", "out"]) == 2


def cases(root: Path) -> list[Path]:
    return sorted(path.parent for path in (root / "fixtures" / "cases").glob("*/case.yaml"))


def essence(files: list[str], configs: list[str]) -> object:
    told = as_dict(diagnose(files, config=configs or None))
    causes = told["causes"]
    assert isinstance(causes, list)
    keys = ("cause", "code", "probability")
    shown = [{key: one[key] for key in keys} for one in causes if isinstance(one, dict)]
    return told["answer"], told["resource"], told["conclusive"], shown


def test_redacted_inputs_get_the_same_diagnosis(root: Path, tmp_path: Path) -> None:
    differing = []
    for folder in cases(root)[::4]:
        inputs = yaml.safe_load((folder / "case.yaml").read_text(encoding="utf-8"))["inputs"]
        names = {"logs": inputs["logs"], "configs": inputs["configs"]}
        texts = {
            one: read_source(str(folder / one)).text for each in names.values() for one in each
        }
        redactor = Redactor()
        for text in texts.values():
            redactor.learn(text)
        (tmp_path / folder.name).mkdir()
        for name, text in texts.items():
            path = tmp_path / folder.name / name
            path.write_text(redactor.redact(text), encoding="utf-8", newline="")
        one, other = (
            essence(*([str(where / name) for name in names[kind]] for kind in ("logs", "configs")))
            for where in (folder, tmp_path / folder.name)
        )
        differing += [folder.name] if one != other else []

    assert differing == []
