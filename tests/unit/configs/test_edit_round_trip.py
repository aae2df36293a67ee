"""Whatever is set by an edit is read back, and every other line stays as it was."""

from __future__ import annotations

import json

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oomdoctor.configs import json_edit, yaml_edit

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NAMES = st.sampled_from(["alpha", "beta", "gamma_x", "gamma_y", "delta"])
WORDS = st.text(st.sampled_from("abz019 .:#'\"-_/{}[],&*!%@\\"), min_size=1, max_size=12)
SCALARS = st.one_of(
    st.booleans(), st.none(), st.integers(-10, 10**6), st.floats(0.001, 1000), WORDS
)
FLAT = st.dictionaries(NAMES, SCALARS, min_size=1, max_size=4)
DOCUMENTS = st.dictionaries(
    NAMES, st.one_of(SCALARS, FLAT, st.lists(SCALARS, max_size=3)), min_size=1
)


def written(document: dict[str, object], *, flow: bool | None) -> str:
    """Dump a document and put a comment between its keys, so that there is something to lose."""
    text = str(yaml.safe_dump(document, default_flow_style=flow, sort_keys=False, width=10_000))
    return "# head\n" + text + "# tail\n"


@QUICK
@given(document=DOCUMENTS, key=NAMES, value=SCALARS, flow=st.sampled_from([False, None]))
def test_a_yaml_key_that_is_set_is_read_back(
    document: dict[str, object], key: str, value: object, flow: bool | None
) -> None:
    before = written(document, flow=flow)

    after = yaml_edit.edit(before, {key: value})

    read = yaml.safe_load(after)
    assert list(read) == [*document] if key in document else key in read
    assert {k: v for k, v in read.items() if k != key} == {
        k: v for k, v in yaml.safe_load(before).items() if k != key
    }
    assert yaml_edit.held(after, key) == (True, value)


@QUICK
@given(document=DOCUMENTS, key=NAMES, inner=NAMES, value=SCALARS)
def test_a_nested_yaml_key_that_is_set_is_read_back(
    document: dict[str, object], key: str, inner: str, value: object
) -> None:
    before = written(document, flow=False)

    after = yaml_edit.edit(before, {f"{key}.{inner}": value})

    assert yaml_edit.held(after, f"{key}.{inner}") == (True, value)
    assert {k: v for k, v in yaml.safe_load(after).items() if k != key} == {
        k: v for k, v in yaml.safe_load(before).items() if k != key
    }


@QUICK
@given(document=DOCUMENTS, key=NAMES, value=st.one_of(st.booleans(), st.integers(0, 99)))
def test_an_edit_of_a_scalar_changes_one_line_of_yaml(
    document: dict[str, object], key: str, value: object
) -> None:
    document = {**document, key: "old"}
    before = written(document, flow=False).split("\n")

    after = yaml_edit.edit("\n".join(before), {key: value}).split("\n")

    assert len(before) == len(after)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


@QUICK
@given(
    document=DOCUMENTS, key=NAMES, inner=NAMES, value=SCALARS, indent=st.sampled_from([None, 2, 4])
)
def test_a_json_key_that_is_set_is_read_back(
    document: dict[str, object], key: str, inner: str, value: object, indent: int | None
) -> None:
    before = json.dumps(document, indent=indent)

    after = json.loads(json_edit.edit(before, {f"{key}.{inner}": value}))

    assert after[key][inner] == value
    assert {k: v for k, v in after.items() if k != key} == {
        k: v for k, v in document.items() if k != key
    }
