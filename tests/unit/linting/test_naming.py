"""Names of rules and cards that nothing has are wrong use, with the one that may be meant."""

from __future__ import annotations

import pytest

from oomdoctor.errors import UsageError
from oomdoctor.facts.given import parse_given
from oomdoctor.linting.naming import check_card, check_rules
from oomdoctor.linting.run import Wanted, lint_files, stated_facts

CODES = {"fp16-and-bf16": "COR2001", "weights-exceed-card": "MEM1001"}


@pytest.mark.parametrize("name", ["COR2001", "cor2", "C", "fp16-and-bf16", "MEM10"])
def test_a_code_the_start_of_one_and_a_name_mean_rules(name: str) -> None:
    check_rules([name], CODES, where="select")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("fp16-and-bf17", "fp16-and-bf16"), ("COR9", "COR2"), ("COR2002", "COR2001")],
)
def test_a_slip_in_the_name_of_a_rule_is_told_with_the_rule_that_is_meant(
    name: str, meant: str
) -> None:
    with pytest.raises(UsageError, match=f"select: no rule is called '{name}'") as caught:
        check_rules([name], CODES, where="select")

    assert (caught.value.hint or "").startswith(f"did you mean {meant}?")


@pytest.mark.parametrize("wanted", [Wanted(select=("nonsense",)), Wanted(ignore=("nonsense",))])
def test_a_run_refuses_names_that_no_rule_has(wanted: Wanted) -> None:
    with pytest.raises(UsageError, match="no rule is called 'nonsense'"):
        lint_files((), wanted)


@pytest.mark.parametrize("name", ["RTX 4090", "a100", "H100 SXM", "H100 SXM5", "MI300X", "4x T4"])
def test_a_card_is_known_by_what_people_call_it(name: str) -> None:
    check_card(name, ())


def test_a_slip_in_the_name_of_a_card_is_told_with_the_card_that_is_meant() -> None:
    with pytest.raises(UsageError, match="'RTX 4909': no such card") as caught:
        stated_facts(Wanted(gpu="RTX 4909"))

    assert (caught.value.hint or "").startswith("did you mean 'NVIDIA GeForce RTX 4090'?")


def test_no_name_is_no_card() -> None:
    with pytest.raises(UsageError, match="'': no such card"):
        check_card("", ())


def test_a_new_card_may_be_named_where_its_memory_is_stated() -> None:
    check_card("RTX 9090", parse_given(["gpu.total=64 GiB"]))
