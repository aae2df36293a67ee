"""What `oomdoctor data` answers: one value that every format shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.data.files import files_of
from oomdoctor.data.job import Setting, job_of
from oomdoctor.data.lengths import Lengths
from oomdoctor.data.measure import count_files
from oomdoctor.data.packing import best_fit, wrapped
from oomdoctor.data.padding import strategies
from oomdoctor.data.peak import peak_of
from oomdoctor.data.tokenizer import file_of, load
from oomdoctor.data.work import Setup
from oomdoctor.errors import InputError, Location
from oomdoctor.record import NamedTuple, dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from oomdoctor.data.files import DataFile
    from oomdoctor.data.job import Job
    from oomdoctor.data.measure import Progress
    from oomdoctor.data.packing import Packing
    from oomdoctor.data.padding import Strategy
    from oomdoctor.data.peak import Peak
    from oomdoctor.data.tally import Fault, Place, Tally
    from oomdoctor.data.tokenizer import Tokens
    from oomdoctor.model.core import Fact

ROWS_ASSUMED = 8
PAIRED = "preference"


class Reading(NamedTuple):
    """How the data is read: a field and a split that were named, the chat template or not."""

    field: str | None = None
    split: str | None = None
    template: bool = True
    processes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataReport:
    """Lengths of all rows and what they mean for padding, packing and memory.

    `lengths` are the sequences as they are, `kept` after truncation by `limit`; `capacity` is the
    row length that packing is calculated for, `packed` whether the job packs. `batch` is rows per
    device and forward pass, as sequences: a preference pair is two.
    """

    files: tuple[DataFile, ...]
    tokenizer: str
    template: str
    rows: int
    characters: int
    layouts: tuple[tuple[str, int], ...]
    lengths: Lengths
    kept: Lengths
    longest: tuple[Place, ...]
    faults: tuple[tuple[str, int], ...]
    first_faults: tuple[Fault, ...]
    limit: Setting | None
    batch: Setting
    capacity: Setting
    strategies: tuple[Strategy, ...]
    packings: tuple[Packing, ...]
    peak: Peak
    packed: bool = False
    notes: tuple[str, ...] = ()

    @property
    def chars_per_token(self) -> float:
        """Return the characters that one token stands for, 0 where rows were tokens already."""
        return self.characters / self.lengths.tokens if self.lengths.tokens else 0.0

    @property
    def bad_rows(self) -> int:
        """Return the number of rows that could not be counted."""
        return sum(count for _, count in self.faults)

    @property
    def over_limit(self) -> tuple[int, int]:
        """Return the sequences above the limit, and the tokens that are cut."""
        return self.lengths.over(self.limit.value) if self.limit else (0, 0)


def report_of(
    paths: Sequence[str],
    *,
    tokenizer: str,
    configs: Sequence[str] = (),
    given: Sequence[Fact] = (),
    reading: Reading | None = None,
    stdin: BinaryIO | None = None,
    progress: Progress | None = None,
) -> DataReport:
    """Count the tokens of a data set and say what they mean for the job of the configs."""
    how = reading or Reading()
    tokens = load(tokenizer)
    job = job_of(configs, given, tokenizer=file_of(tokenizer))
    notes: list[str] = []
    files = files_of(paths, notes, split=how.split)
    setup = Setup(tokenizer, how.field, how.template)
    tally = count_files(files, setup, processes=how.processes, stdin=stdin, progress=progress)
    if not tally.rows:
        raise _nothing(tally, paths)
    return _report(tally, files, tokens, job, template=how.template, notes=notes)


def _nothing(tally: Tally, paths: Sequence[str]) -> InputError:
    reason = tally.faults.most_common(1)[0][0] if tally.faults else "it is empty"
    hint = "--field NAME says which field holds the text or the messages"
    return InputError(
        f"no row could be counted: {reason}",
        location=Location(path=", ".join(paths)),
        hint=hint if tally.faults else None,
    )


def _report(
    tally: Tally,
    files: Sequence[DataFile],
    tokens: Tokens,
    job: Job,
    *,
    template: bool,
    notes: list[str],
) -> DataReport:
    lengths = Lengths(tally.lengths)
    stated = job.setting("train.seq_len")
    limit = None if job.flag("train.truncation") is False else stated
    if stated and limit is None:
        notes.append(f"Truncation is off: rows longer than {stated.value:,} tokens stay whole.")
    kept = lengths.cut_at(limit.value) if limit else lengths
    capacity = stated or _capacity(tokens, lengths)
    batch = _batch(job, pairs=tally.layouts.get(PAIRED, 0) * 2 > tally.rows)
    packed = job.flag("train.packing") is True
    padding = _padding(job, packed=packed)
    notes += _notes(tally, tokens, template=template)
    return DataReport(
        files=tuple(files),
        tokenizer=tokens.path,
        template=_template_words(tally, tokens, template=template),
        rows=tally.rows,
        characters=tally.characters,
        layouts=tuple(tally.layouts.most_common()),
        lengths=lengths,
        kept=kept,
        longest=tuple(tally.longest),
        faults=tuple(tally.faults.most_common()),
        first_faults=tuple(tally.first_faults),
        limit=limit,
        batch=batch,
        capacity=capacity,
        strategies=strategies(kept, batch=batch.value, limit=capacity.value, in_force=padding),
        packings=(best_fit(lengths, capacity.value), wrapped(lengths, capacity.value)),
        peak=peak_of(
            kept,
            rows=batch.value,
            limit=capacity.value,
            constant=packed or padding == "max_length",
            job=job,
        ),
        packed=packed,
        notes=tuple(notes),
    )


def _capacity(tokens: Tokens, lengths: Lengths) -> Setting:
    """Return the row length to calculate with where no limit is configured."""
    if tokens.limit is not None and tokens.limit >= lengths.longest:
        return Setting(lengths.longest, "the longest row; no limit is configured")
    if tokens.limit is not None:
        return Setting(tokens.limit, "model_max_length of the tokenizer; no limit is configured")
    return Setting(lengths.longest, "the longest row; no limit is configured")


def _batch(job: Job, *, pairs: bool) -> Setting:
    said = job.setting("train.micro_batch") or Setting(ROWS_ASSUMED, "assumed: nothing says")
    if not pairs:
        return said
    return Setting(2 * said.value, f"2 x {said.value} (chosen and rejected), {said.source}")


def _padding(job: Job, *, packed: bool) -> str:
    """Return the key of the strategy in force, empty where rows are packed or nothing says."""
    if packed:
        return ""
    if job.flag("train.group_by_length"):
        return "by_length"
    word = job.word("train.padding")
    return word if word in ("max_length", "longest") else ""


def _template_words(tally: Tally, tokens: Tokens, *, template: bool) -> str:
    if tokens.template is None or not template:
        return "none"
    return "applied" if tally.layouts.get("chat") or tally.layouts.get(PAIRED) else "not needed"


def _notes(tally: Tally, tokens: Tokens, *, template: bool) -> list[str]:
    notes = []
    chats = tally.layouts.get("chat", 0) + tally.layouts.get(PAIRED, 0)
    if chats and not (tokens.template and template):
        why = "the tokenizer has none" if template else "--no-template"
        notes.append(
            f"No chat template is applied ({why}): contents are counted, the template's own tokens"
            " are not."
        )
    if any(tally.layouts.get(one) for one in ("instruction", "prompt and answer")):
        notes.append(
            "Prompt and answer are counted as they are; what a trainer writes around them is not."
        )
    if tally.pictures:
        notes.append(f"{tally.pictures:,} parts of messages are no text and are not counted.")
    return notes
