"""`oomdoctor confirm` as people type it; trials run scripts without torch."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.cli.test_bisect import as_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    RunPython = Callable[..., CompletedProcess[bytes]]

# what PyTorch says, from scripts that hold nothing
FAILS = """\
import sys
sys.exit(
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1024.00 MiB. GPU 0 has a"
    " total capacity of 39.39 GiB of which 500.00 MiB is free. Including non-PyTorch memory,"
    " this process has 38.90 GiB memory in use. Of the allocated memory 37.00 GiB is allocated"
    " by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated."
)
"""
YAML_FAILS = f"""\
import pathlib, sys
if "rows: 8" in pathlib.Path(sys.argv[1]).read_text():
    exec({FAILS!r})
"""
CPU = ("--backend", "cpu")


def confirm(run: RunPython, folder: Path, *rest: str) -> CompletedProcess[bytes]:
    return run("-m", "oomdoctor", "confirm", *rest, cwd=folder)


def script(folder: Path, name: str = "train.py", text: str = FAILS) -> tuple[str, ...]:
    (folder / name).write_text(text, encoding="utf-8")
    return (sys.executable, name)


def valid(values: dict[str, Any], root: Path) -> dict[str, Any]:
    schema = json.loads((root / "docs" / "confirm.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(values)
    return values


def mended(folder: Path) -> tuple[str, str]:
    return "--treated", " ".join(script(folder, "mended.py", "print('done')"))


def test_a_mended_command_confirms_a_cause(
    run_python: RunPython, tmp_path: Path, root: Path
) -> None:
    command = script(tmp_path)
    given = ("missing-no-grad", *CPU, *mended(tmp_path), "-f", "json", "--", *command)

    found = valid(as_json(confirm(run_python, tmp_path, *given)), root)

    (one,) = found["confirmations"]
    assert one["verdict"] == "confirmed"
    assert one["reason"].startswith("it fits with evaluation without a graph")
    assert [len(one[arm]) for arm in ("baseline", "treated", "control")] == [1, 1, 1]


def test_a_run_is_resumed_from_its_journal(run_python: RunPython, tmp_path: Path) -> None:
    given = ("missing-no-grad", *CPU, *mended(tmp_path), "-f", "json")
    command = ("--", *script(tmp_path))
    as_json(confirm(run_python, tmp_path, *given, "--max-trials", "1", *command), code=4)

    found = as_json(confirm(run_python, tmp_path, *given, "--resume", *command))

    assert found["replayed"] == 1
    assert found["confirmations"][0]["verdict"] == "confirmed"


def test_a_mended_command_that_fails_alike_refutes(run_python: RunPython, tmp_path: Path) -> None:
    treated = ("--treated", " ".join(script(tmp_path, "other.py")))

    done = confirm(
        run_python, tmp_path, "logits-vocab-fp32", *CPU, *treated, "--", *script(tmp_path)
    )

    assert done.returncode == 0
    assert done.stdout.decode().startswith("Refuted: logits-vocab-fp32")


def test_a_run_that_does_not_fail_proves_nothing(run_python: RunPython, tmp_path: Path) -> None:
    command = script(tmp_path, text="print('done')")

    done = confirm(run_python, tmp_path, "missing-no-grad", *CPU, "--", *command)

    assert done.returncode == 4
    assert "does not fail here" in done.stdout.decode()


def test_a_plan_shows_its_price_and_runs_nothing(
    run_python: RunPython, tmp_path: Path, root: Path
) -> None:
    given = ("optimizer-states", *CPU, "--dry-run", "-f", "json", "--", *script(tmp_path))

    found = valid(as_json(confirm(run_python, tmp_path, *given)), root)

    (test,) = found["planned"]
    assert (test["experiment"], test["way"]) == (
        "lighter-optimizer",
        "injected into its processes: optimizer",
    )
    assert (found["trials_at_most"], found["trials"]) == (3, [])
    assert not (tmp_path / ".oomdoctor").exists()


def test_the_page_needs_no_network(run_python: RunPython, tmp_path: Path) -> None:
    given = ("missing-no-grad", *CPU, *mended(tmp_path), "-f", "html", "--", *script(tmp_path))

    page = confirm(run_python, tmp_path, *given).stdout.decode()

    assert "Confirmed: missing-no-grad" in page
    assert "http://" not in page.replace("http://www.w3.org/", "")


def test_the_cheapest_changes_are_written_to_copies_of_configs(
    run_python: RunPython, tmp_path: Path
) -> None:
    (tmp_path / "train.yaml").write_text("rows: 8\n", encoding="utf-8")
    fix = {
        "fix": "micro-batch-half",
        "for": "batch-or-seq-too-large",
        "safety": "changes-speed",
        "patches": [{"dialect": "x", "file": "train.yaml", "settings": {"rows": 4}}],
    }
    diagnosis = {
        "schema_version": 1,
        "causes": [{"cause": "batch-or-seq-too-large", "probability": 0.9}],
        "prescriptions": [fix],
    }
    (tmp_path / "diagnosis.json").write_text(json.dumps(diagnosis), encoding="utf-8")
    command = (*script(tmp_path, text=YAML_FAILS), "train.yaml")
    given = ("diagnosis.json", *CPU, "--minimal", "--write-config", "new", "-f", "json")

    found = as_json(confirm(run_python, tmp_path, *given, "--", *command))

    assert found["minimal"]["names"] == ["half-rows"]
    assert [(tmp_path / one).read_text() for one in found["minimal"]["patched"]] == ["rows: 4\n"]
    assert (tmp_path / "train.yaml").read_text() == "rows: 8\n"


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("missing-no-grat", "did you mean missing-no-grad"),
        ("absent.json", "cannot be read"),
        ("text.json", "not JSON"),
        ("list.json", "this is no diagnosis"),
        ("old.json", "schema_version is 0, expected 1"),
        ("empty.json", "names no cause"),
        ("odd.json", "causes[0]: expected an object with cause and probability"),
    ],
)
def test_what_is_no_case_is_refused_with_the_reason(
    run_python: RunPython, tmp_path: Path, case: str, said: str
) -> None:
    for name, text in {
        "text.json": "no",
        "list.json": "[]",
        "old.json": '{"schema_version": 0, "causes": []}',
        "empty.json": '{"schema_version": 1, "causes": []}',
        "odd.json": '{"schema_version": 1, "causes": [{"cause": 1}]}',
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    done = confirm(run_python, tmp_path, case, *CPU, "--", *script(tmp_path))

    assert done.returncode == 2
    assert said in done.stderr.decode()


@pytest.mark.parametrize(
    ("treated", "said"),
    [
        ("'", '--treated "\'": No closing quotation'),
        ("  ", "--treated names no command"),
        ("no-such-program x", "'no-such-program' cannot be started"),
    ],
)
def test_a_changed_command_that_is_none_is_refused_before_a_trial(
    run_python: RunPython, tmp_path: Path, treated: str, said: str
) -> None:
    own = ("loss-graph-retained", *CPU, "--treated", treated, "--", *script(tmp_path))

    done = confirm(run_python, tmp_path, *own)

    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert not (tmp_path / ".oomdoctor").exists()
