"""TOML: every form of a value is read with its place, and edited without touching the rest."""

from __future__ import annotations

import sys

import pytest

from oomdoctor.configs import toml_edit, toml_text
from oomdoctor.configs.setting import Lines, SyntaxFault

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TEXT = """\
# head
root = 1  # r
  [training] # tr
  seq_len = 8_192  # tokens
  names = [
    "a", # one
    'b',
  ]
  data = {name = 'c4', opts.x = 1}
[optimizer]
name = 'AdamW'\t# tab
[[d.s]]
x = \"\"\"
a "quoted" \\
   b\"\"\"
[[d.s]]
x = 2
[empty]
[last]
y = 1e-4"""


def test_every_form_of_a_value_is_read_with_its_place() -> None:
    rows = [(row.key, row.value) for row in toml_text.read(Lines.of_text("a", TEXT))]
    places = [
        (row.quote.line, row.quote.column) for row in toml_text.read(Lines.of_text("a", TEXT))
    ]

    assert rows == [
        ("root", 1),
        ("training.seq_len", 8192),
        ("training.names", ("a", "b")),
        ("training.data.name", "c4"),
        ("training.data.opts.x", 1),
        ("optimizer.name", "AdamW"),
        ("d.s.0.x", 'a "quoted" b'),
        ("d.s.1.x", 2),
        ("last.y", 1e-4),
    ]
    assert places == [
        (2, 8),
        (4, 13),
        (5, 11),
        (9, 18),
        (9, 33),
        (11, 8),
        (13, 5),
        (17, 5),
        (20, 5),
    ]


def test_what_is_no_toml_is_read_line_by_line() -> None:
    rows = toml_text.read(Lines.of_text("a", "[one]\na = some words\nb = [1,\n; c\nd = x\n"))

    assert [(row.key, row.value) for row in rows] == [
        ("one.a", "some words"),
        ("one.b", "[1,"),
        ("one.d", "x"),
    ]


@pytest.mark.parametrize(
    ("key", "value", "gone", "come"),
    [
        ("training.seq_len", 4096, ["  seq_len = 8_192  # tokens"], ["  seq_len = 4096  # tokens"]),
        ("training.new", [1, "x"], [], ['  new = [1, "x"]']),
        ("optimizer.name", "SGD", ["name = 'AdamW'\t# tab"], ["name = 'SGD'\t# tab"]),
        (
            "training.data.z",
            True,
            ["  data = {name = 'c4', opts.x = 1}"],
            ["  data = {name = 'c4', opts.x = 1, z = true}"],
        ),
        ("empty.k", 1.5, [], ["k = 1.5"]),
        ("new", "a'b", [], ['new = "a\'b"']),
        ("root", "!remove", ["root = 1  # r"], []),
        (
            "training.data.name",
            "!remove",
            ["  data = {name = 'c4', opts.x = 1}"],
            ["  data = {opts.x = 1}"],
        ),
        (
            "training.data.opts.x",
            "!remove",
            ["  data = {name = 'c4', opts.x = 1}"],
            ["  data = {name = 'c4'}"],
        ),
        ("optimizer.name", "!rename kind", ["name = 'AdamW'\t# tab"], ["kind = 'AdamW'\t# tab"]),
        ("d.s.1.x", 5, ["x = 2"], ["x = 5"]),
        ("no.such", "!remove", [], []),
    ],
)
@pytest.mark.parametrize("ended", ["\n", "\r\n"])
def test_an_edit_changes_its_own_line_only(
    key: str, value: object, gone: list[str], come: list[str], ended: str
) -> None:
    before = TEXT.replace("\n", ended)

    after = toml_edit.edit(before, {key: value})

    old, new = before.split(ended), after.split(ended)
    assert "\n" not in after.replace(ended, "")
    assert [row for row in old if row not in new] == gone
    assert [row for row in new if row not in old] == come
    assert len(new) - len(old) == len(come) - len(gone)
    assert tomllib.loads(after)
    assert toml_edit.held(after, key)[0] is not str(value).startswith("!")


def test_a_table_that_is_not_there_is_written_at_the_end() -> None:
    assert toml_edit.edit(TEXT, {"a.b.c": 1}) == TEXT + "\n\n[a.b]\nc = 1\n"
    assert toml_edit.edit("", {"a.b": "x"}) == '[a]\nb = "x"\n'


def test_a_broken_text_is_not_edited() -> None:
    with pytest.raises(SyntaxFault, match="closing quote"):
        toml_edit.edit('a = "x\n', {"b": 1})
