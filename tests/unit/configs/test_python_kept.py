"""Containers that are given tensors of the device."""

from __future__ import annotations

import ast

import pytest

from oomdoctor.configs.python_kept import kept


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("s = torch.tensor(s).cuda()\nself.memory.append((s, a))", [True]),
        ("buffer.push(torch.zeros(3, device='cuda'))", [True]),
        ("rows.append(x.to(device))", [False]),
        ("cache[key] = feats.to('cuda:0')", [True]),
        ("s = s.cuda()\nself.memory.append(s.cpu())", []),
        ("self.memory.append((state, action))", []),
        ("rows.append(x.to('cpu'))", []),
    ],
)
def test_device_tensors_in_containers_are_found(code: str, expected: list[bool]) -> None:
    assert [lasting for _, lasting in kept(ast.parse(code))] == expected
