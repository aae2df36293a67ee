"""The configs with the cheapest changes in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.experiments.arms import Subject
from oomdoctor.experiments.trials import Trials
from oomdoctor.model.enums import Safety
from oomdoctor.model.job import Job, ModelSpec
from oomdoctor.model.plan import Patch, Prescription
from oomdoctor.model.trial import TrialSpec

if TYPE_CHECKING:
    from pathlib import Path

JOB = Job(
    model=ModelSpec(
        name="m",
        config={"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
        source="test",
    ),
    attention="eager",
    batch=4,
)


def test_the_config_of_a_job_is_written_with_the_changes_that_a_fix_spells(tmp_path: Path) -> None:
    config = tmp_path / "train.yaml"
    config.write_text("micro_batch_size: 4  # rows\nattention: eager\n", encoding="utf-8")
    fix = Prescription(
        fix_id="fused-attention",
        cause="attention-not-flash",
        code="ACT2005",
        title="t",
        safety=Safety.SAFE,
        patches=(Patch(dialect="axolotl", settings={"attention": "sdpa"}, file=str(config)),),
    )
    subject = Subject(spec=TrialSpec(values={}, job=JOB), fixes={fix.fix_id: fix})

    written = Trials(subject, ()).write_configs(["fused-attention"], tmp_path / "new")

    assert [one.rsplit("/", 1)[-1] for one in written] == ["train.yaml"]
    text = (tmp_path / "new" / "0" / "train.yaml").read_text(encoding="utf-8")
    assert text == "micro_batch_size: 4  # rows\nattention: sdpa\n"
    assert config.read_text(encoding="utf-8").endswith("attention: eager\n")


def test_a_change_that_no_config_spells_writes_nothing(tmp_path: Path) -> None:
    subject = Subject(spec=TrialSpec(values={}, job=JOB))

    assert Trials(subject, ()).write_configs(["fused-attention"], tmp_path / "new") == ()
    assert not (tmp_path / "new").exists()
