"""Which versions a job runs with: stated, locked beside it, installed, pinned, or the newest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oomdoctor.errors import UsageError
from oomdoctor.facts.book import FactBook
from oomdoctor.facts.pins import pinned
from oomdoctor.linting import versions
from oomdoctor.linting.files import read_file
from oomdoctor.linting.jobs import Job
from oomdoctor.model.core import Fact
from oomdoctor.model.enums import Origin

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    versions.forget()
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.chdir(tmp_path)


def found(path: Path) -> dict[str, tuple[object, str]]:
    path.write_text("bf16: true\n", encoding="utf-8")
    facts = versions.found_versions(Job((read_file(str(path)),)))
    return {fact.key: (fact.value, fact.origin.value) for fact in facts}


def test_versions_on_the_command_line_are_stated() -> None:
    facts = versions.parse_versions(["transformers==4.36.2, trl=0.7.4", "torch==2.1.0+cu118"])
    assert [(fact.key, fact.value) for fact in facts] == [
        ("env.transformers", "4.36.2"),
        ("env.trl", "0.7.4"),
        ("env.torch", "2.1.0"),
        ("env.torch_cuda", "11.8"),
    ]
    assert {fact.origin for fact in facts} == {Origin.STATED}


@pytest.mark.parametrize("text", ["transformers", "transformers==new", "left-pad==1.0"])
def test_what_is_no_version_is_refused_with_the_packages_that_matter(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        versions.parse_versions([text])
    assert "transformers" in (caught.value.hint or "")


def test_a_requirements_file_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "pins.txt"
    path.write_text("# ours\ntrl==0.12.2  # held\npeft[extra]==0.13.2\nnumpy>=1\n", "utf-8")
    facts = versions.parse_versions([str(path)])
    assert [(fact.key, fact.value, fact.quotes[0].line) for fact in facts] == [
        ("env.trl", "0.12.2", 2),
        ("env.peft", "0.13.2", 3),
    ]


def test_exact_pins_beside_the_config_are_read_and_ranges_are_not(tmp_path: Path) -> None:
    text = "transformers==4.46.3\ntrl>=0.9\naccelerate~=1.0\n"
    (tmp_path / "requirements-train.txt").write_text(text, "utf-8")
    assert found(tmp_path / "train.yaml") == {"env.transformers": ("4.46.3", "stated")}


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock"])
def test_a_lock_file_beside_the_config_is_read(tmp_path: Path, name: str) -> None:
    text = (
        'version = 1\n\n[[package]]\nname = "trl"\nversion = "0.12.2"\n'
        '\n[[package]]\nname = "numpy"\nversion = "2.0"\n'
    )
    (tmp_path / name).write_text(text, "utf-8")
    assert found(tmp_path / "train.yaml") == {"env.trl": ("0.12.2", "stated")}


def test_the_active_environment_is_probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "venv"
    packages = home / "lib" / "python3.11" / "site-packages"
    (packages / "transformers-4.57.1.dist-info").mkdir(parents=True)
    (packages / "flash_attn-2.7.0.dist-info").mkdir()
    monkeypatch.setenv("VIRTUAL_ENV", str(home))
    assert found(tmp_path / "train.yaml") == {
        "env.transformers": ("4.57.1", "probed"),
        "env.flash_attn": ("2.7.0", "probed"),
    }


def test_a_pin_beside_the_config_outranks_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "venv"
    package = home / "lib" / "python3.11" / "site-packages" / "trl-1.0.0.dist-info"
    package.mkdir(parents=True)
    monkeypatch.setenv("VIRTUAL_ENV", str(home))
    (tmp_path / "requirements.txt").write_text("trl==0.12.2\n", "utf-8")
    assert found(tmp_path / "train.yaml") == {"env.trl": ("0.12.2", "stated")}


def book(**facts: str) -> FactBook:
    return FactBook().add(
        Fact(key=key.replace("_", ".", 1), value=value) for key, value in facts.items()
    )


def test_a_framework_brings_its_own_pins() -> None:
    assumed = {fact.key: fact for fact in pinned(book(job_framework="axolotl"))}
    assert (assumed["env.transformers"].value, assumed["env.transformers"].source) == (
        "5.16.1",
        "pin of Axolotl 0.19.0",
    )
    assert assumed["env.torch"].source == "the newest version known; --versions states it"


def test_another_release_of_the_framework_does_not_bring_them() -> None:
    assumed = {
        fact.key: fact for fact in pinned(book(job_framework="axolotl", env_axolotl="0.8.0"))
    }
    assert assumed["env.transformers"].source == "the newest version known; --versions states it"


def test_nothing_is_assumed_of_an_unknown_framework() -> None:
    assert pinned(book()) == ()
