"""Names that speak of offloading, and names that deny it."""

from __future__ import annotations

import pytest

from oomdoctor.configs import parallel


def offload_of(name: str) -> object:
    claims = {claim.key: claim.value for claim in parallel.zero_file(name)}
    return claims.get("optimizer.offload")


@pytest.mark.parametrize(
    "name",
    ["ds_zero2_no_offload.json", "zero3_without-offload.json", "ds_z3_offload_none.json"],
)
def test_a_file_whose_name_denies_offloading_does_not_offload(name: str) -> None:
    assert offload_of(name) is None


@pytest.mark.parametrize("name", ["ds_z3_offload_config.json", "conf/zero2-offload.json"])
def test_a_file_is_taken_by_its_name(name: str) -> None:
    assert offload_of(name) == "cpu"
