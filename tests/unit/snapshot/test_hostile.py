"""Hostile snapshots are refused within a small memory, each with a word on what stands where.

All kinds are read by one process of its own that may have 300 MiB of addresses, the interpreter
included, and that the kernel ends if it computes without end.
"""

from __future__ import annotations

import gzip
import json
import pickle
import re
import resource
import struct
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from oomdoctor.snapshot.compiled import library

if TYPE_CHECKING:
    from pathlib import Path

ADDRESS_LIMIT = 300 << 20
CPU_LIMIT_SECONDS = 60
MANY = 50_000


class Kind(NamedTuple):
    """What is read, and what the refusal must say."""

    data: bytes
    says: str


def text(word: str) -> bytes:
    return b"\x8c" + bytes([len(word)]) + word.encode()


def shared(key: str, one: bytes, times: int) -> bytes:
    """Return a list at `key` that names the same object again and again, at two bytes each."""
    return text(key) + b"](" + one + b"\x94" + b"h\x00" * times + b"e"


BLOCKS = shared("blocks", b"}", MANY)
SEGMENT = (
    b"}(" + text("address") + b"K\x00" + text("total_size") + b"K\x01" + text("device") + b"K\x00"
)
KINDS = {
    "a global": Kind(b"cos\nsystem\n.", "instruction GLOBAL at byte 0"),
    "a global off the stack": Kind(
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "STACK_GLOBAL at byte 14"
    ),
    "a call": Kind(b"\x80\x04]R.", "instruction REDUCE at byte 3"),
    "a call within calls": Kind(b"\x80\x04" + b"cos\nsystem\n(" * 9 + b"tR" * 9 + b".", "byte 2"),
    "an instance": Kind(b"(S'true'\nios\nsystem\n.", "instruction INST at byte 9"),
    "an object": Kind(b"\x80\x02(]o.", "instruction OBJ at byte 4"),
    "a new object": Kind(b"\x80\x02]]\x81.", "instruction NEWOBJ at byte 4"),
    "a new object with keywords": Kind(b"\x80\x04]]}\x92.", "NEWOBJ_EX at byte 5"),
    "a state": Kind(b"\x80\x02]}b.", "instruction BUILD at byte 4"),
    "extension codes": Kind(b"\x80\x02\x84\xff\xff\xff\x7f.", "instruction EXT4 at byte 2"),
    "a persistent id": Kind(b"Pname\n.", "instruction PERSID at byte 0"),
    "a binary persistent id": Kind(b"\x80\x02K\x01Q.", "instruction BINPERSID at byte 4"),
    "sets": Kind(b"\x80\x04\x8f(K\x01\x90.", "instruction EMPTY_SET at byte 2"),
    "a buffer of elsewhere": Kind(b"\x80\x05\x97.", "unknown instruction at byte 2"),
    "bytes that can be changed": Kind(
        b"\x80\x05\x96" + b"\xff" * 8 + b".", "unknown instruction at byte 2"
    ),
    "an integer without end": Kind(
        b"\x80\x02\x8b" + struct.pack("<i", 1 << 20) + b"\x01" * (1 << 20) + b".",
        "instruction LONG4 at byte 2",
    ),
    "digits without end": Kind(b"I" + b"9" * 1_000_000 + b"\n.", "at byte 0"),
    "a text longer than the file": Kind(b"\x80\x04X\xff\xff\xff\xffx.", "at byte 2 of 9"),
    "a text longer than memory": Kind(b"\x80\x04\x8d" + b"\xff" * 8 + b".", "at byte 2 of 12"),
    "a memo of two thousand million": Kind(b"\x80\x02]r\xff\xff\xff\x7f.", "not there at byte 3"),
    "a memo by text": Kind(b"]p999999999\n.", "not there at byte 1"),
    "a frame that lies": Kind(b"\x80\x04\x95" + b"\xff" * 7 + b"\x7f}.", "damaged"),
    "a tree of twos as a key": Kind(
        b"\x80\x02)" + b"q\x00h\x00\x86" * 100 + b"K\x01s.", "unknown instruction at byte 7"
    ),
    "empty lists": Kind(b"\x80\x02" + b"]" * 5_000_000 + b".", "5,000,000 lists"),
    "deep nesting": Kind(b"\x80\x02" + b"]" * 9_000 + b"a" * 8_999 + b".", "segment"),
    "deep nesting in JSON": Kind(b'{"a":' * 100_000, "neither a pickle nor JSON"),
    "digits without end in JSON": Kind(
        b'{"segments": [], "a": ' + b"9" * 1_000_000 + b"}", "neither a pickle nor JSON"
    ),
    "a protocol of the future": Kind(b"\x80\xff}.", "damaged: unsupported pickle protocol: 255"),
    "cut off": Kind(pickle.dumps({"segments": ["x" * 300]}, protocol=4)[:-9], "was cut off"),
    "a gzip bomb": Kind(gzip.compress(b"\x80\x04X" + b"\0" * (1 << 27)), "larger than"),
    "one segment many times": Kind(
        b"\x80\x04}("
        + text("segments")
        + b"]("
        + SEGMENT
        + BLOCKS.replace(b"}\x94", b"}(" + text("size") + b"K\x01u\x94")
        + b"u\x94"
        + b"h\x01" * MANY
        + b"eu.",
        "names the same objects again and again",
    ),
    "one trace many times": Kind(
        b"\x80\x04}("
        + text("segments")
        + b"]"
        + text("device_traces")
        + b"]("
        + b"]("
        + b"}("
        + text("action")
        + text("snapshot")
        + text("size")
        + b"K\x01u\x94"
        + b"h\x00" * MANY
        + b"e\x94"
        + b"h\x01" * MANY
        + b"eu.",
        "names the same objects again and again",
    ),
    "one stack of many frames": Kind(
        b"\x80\x04}("
        + text("segments")
        + b"]"
        + text("device_traces")
        + b"](](}("
        + text("action")
        + text("snapshot")
        + text("size")
        + b"K\x01"
        + shared("frames", b"K\x01", MANY)
        + b"ueeu.",
        "a frame that is no dictionary",
    ),
}
REFUSALS = re.compile(
    "no snapshot: .* at byte|was cut off|larger than|neither a pickle|no `segments`"
)
READERS = {
    "in Python": (1 << 40, 64 << 20),
    "compiled, then in Python": (0, 64 << 20),
    "compiled alone": (0, 0),
}
CHILD = """
import json, resource, sys
from oomdoctor.errors import InputError
from oomdoctor.snapshot import reading
found = {}
streamed_from, reading.AGAIN_BYTES = json.loads(sys.argv[2])
for name, path in json.loads(sys.argv[1]).items():
    try:
        reading.read_snapshot(
            path, most_bytes=64 << 20, most_streamed_bytes=64 << 20, streamed_from=streamed_from
        )
        found[name] = "read"
    except InputError as error:
        found[name] = error.message
    except BaseException as error:
        found[name] = f"{type(error).__name__}: {error}"[:200]
print(json.dumps(found))
"""


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_LIMIT, ADDRESS_LIMIT))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_SECONDS, CPU_LIMIT_SECONDS))


@pytest.fixture(scope="module", params=READERS)
def answers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, str]]:
    """Return what each kind was answered by one way of reading."""
    if request.param != "in Python" and library() is None:  # it is built before memory is short
        pytest.skip("there is no C compiler")
    folder: Path = tmp_path_factory.mktemp("hostile")
    paths = {}
    for number, (name, kind) in enumerate(KINDS.items()):
        path = folder / f"{number}.pickle"
        path.write_bytes(kind.data)
        paths[name] = str(path)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(paths), json.dumps(READERS[request.param])],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )
    assert done.returncode == 0, done.stderr
    return request.param, json.loads(done.stdout)


@pytest.mark.parametrize("name", KINDS)
def test_a_hostile_snapshot_is_refused_in_little_memory(
    name: str, answers: tuple[str, dict[str, str]]
) -> None:
    way, found = answers
    if way == "in Python" or (way != "compiled alone" and name != "a gzip bomb"):
        assert KINDS[name].says in found[name]
    else:
        assert REFUSALS.search(found[name])
