"""What was planted is found nowhere: in no byte of a bundle, and in no format of an answer."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
import yaml

from oomdoctor.cli.main import run
from oomdoctor.sharing.bundle import Bundle
from oomdoctor.sharing.inputs import Inputs
from oomdoctor.sharing.writer import write_bundle
from tests.unit.sharing.planted import FILES, SECRETS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("run")
    for name, text in FILES.items():
        (made / name).write_text(text, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def archive(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    path = tmp_path_factory.mktemp("out") / "bundle.zip"
    write_bundle(Bundle(Inputs([str(folder)])).files(), str(path))
    return zipfile.ZipFile(io.BytesIO(path.read_bytes()))


def forms(value: str) -> set[str]:
    return {value, value.lower(), quote(value), json.dumps(value)[1:-1], repr(value)[1:-1]}


def test_at_least_40_secrets_are_planted() -> None:
    text = "\n".join((*FILES, *FILES.values()))
    there = [name for name, value in SECRETS.items() if any(one in text for one in forms(value))]

    assert sorted(SECRETS) == sorted(there)
    assert len(set(SECRETS.values())) >= 40


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_no_byte_of_a_bundle_tells_it(archive: zipfile.ZipFile, name: str) -> None:
    held = "\n".join(
        (*archive.namelist(), *(archive.read(one).decode() for one in archive.namelist()))
    )

    assert [one for one in forms(SECRETS[name]) if one in held] == []


@pytest.mark.parametrize("style", ["text", "json", "markdown"])
def test_no_format_of_an_answer_tells_any(
    folder: Path, style: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["diagnose", str(folder), "--redact", "--explain", "--format", style])

    told = capsys.readouterr().out
    assert "2.32 GiB" in told
    assert [name for name, value in SECRETS.items() if any(x in told for x in forms(value))] == []


def test_configs_can_still_be_parsed(archive: zipfile.ZipFile) -> None:
    names = archive.namelist()
    held = yaml.safe_load(archive.read(next(one for one in names if one.endswith(".yaml"))))
    read = json.loads(archive.read(next(one for one in names if one.endswith("docker.json"))))

    assert (held["model"], held["per_device_train_batch_size"]) == ("meta-llama/Llama-3-8B", 4)
    assert sorted(read) == sorted(json.loads(FILES["docker.json"]))


def test_lines_keep_their_numbers(archive: zipfile.ZipFile) -> None:
    names = [one for one in archive.namelist() if one.startswith("inputs/")]
    lines = [archive.read(one).decode().count("\n") for one in sorted(names)]

    expected = [FILES[name].count("\n") for name in sorted(FILES)]
    assert sorted(expected) == sorted(lines)
