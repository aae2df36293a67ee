"""What `diagnose --snapshot` does: the inputs, with what memory snapshots say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor import pipeline
from oomdoctor.cli.options import codes_of, is_snapshot, standard_input
from oomdoctor.cli.progress import bar_for
from oomdoctor.cli.settings import rule_directories
from oomdoctor.facts.given import parse_given

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.cli.diagnose import Asked
    from oomdoctor.evidence.source import Progress
    from oomdoctor.gathering import Gathered
    from oomdoctor.model.plan import Diagnosis


def diagnosed(asked: Asked) -> Diagnosis:
    """Diagnose the inputs and the snapshots together."""
    with bar_for(quiet=asked["quiet"]) as bar:
        gathered = gathered_with(asked["files"], asked["snapshot"], asked["config"], progress=bar)
    ruleset = pipeline.chosen_rules(
        (*rule_directories(), *asked["rules"]),
        preview=asked["preview"],
        select=codes_of(asked["select"]),
        ignore=codes_of(asked["ignore"]),
    )
    book = pipeline.assemble(gathered, parse_given(asked["fact"]))
    return pipeline.concluded(gathered, book, ruleset)


def gathered_with(
    files: Sequence[str],
    snapshots: Sequence[str],
    config: Sequence[str],
    *,
    progress: Progress | None = None,
) -> Gathered:
    """Read all inputs; snapshots among the files are read as such."""
    found = [one for one in files if is_snapshot(one)]
    gathered = pipeline.gather(
        [one for one in files if one not in found],
        config=config or None,
        stdin=standard_input(),
        progress=progress,
    )
    given = list(dict.fromkeys([*found, *snapshots]))
    if given:
        from oomdoctor.snapshot.findings import add_snapshots

        add_snapshots(gathered, given)
    return gathered
