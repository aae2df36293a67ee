"""Libraries are built once per version, and only where that can be done."""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from oomdoctor.errors import InputError
from oomdoctor.virtual import build as building
from oomdoctor.virtual.build import build, cache_folder
from oomdoctor.virtual.compiling import find_compiler
from oomdoctor.virtual.run import site_packages_of
from oomdoctor.virtual.symbols import exported
from oomdoctor.virtual.wheels import wheels_in

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="libraries are built on Linux alone")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site-packages folder with the files that are looked for, all empty."""
    for name in (
        "torch/lib/libtorch_cuda.so",
        "torch-2.13.0.dist-info/METADATA",
        "nvidia_cublas-13.1.1.3.dist-info/METADATA",
        "requests-2.0.dist-info/METADATA",
        "nvidia/cu13/include/cuda.h",
        "nvidia/cu13/include/cuda_runtime_api.h",
        "nvidia/cu13/include/cublasLt.h",
        "nvidia/cu13/lib/libcudart.so.13",
        "nvidia/cu13/lib/libcublas.so.13",
        "nvidia/cu13/lib/libcublasLt.so.13",
    ):
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "site"


def test_wheels_are_recognised(site: Path) -> None:
    wheels = wheels_in(site)

    assert wheels.cuda_major == 13
    assert wheels.versions == ("nvidia_cublas-13.1.1.3", "torch-2.13.0")
    assert [one.name for one in wheels.libraries("libcublas")] == [
        "libcublas.so.13",
        "libcublasLt.so.13",
    ]
    assert not wheels.has_header("nccl.h")


def test_a_build_of_torch_without_cuda_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no CUDA build of torch") as caught:
        wheels_in(tmp_path)

    assert "torch===" in str(caught.value.hint), "how to install one"
    assert "oomdoctor estimate" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("library", "said"), [("libtorch_cpu.so", "one for the CPU"), ("libtorch_hip.so", "for ROCm")]
)
def test_what_is_there_instead_is_said(tmp_path: Path, library: str, said: str) -> None:
    (tmp_path / "torch/lib").mkdir(parents=True)
    (tmp_path / "torch/lib" / library).touch()

    with pytest.raises(InputError, match=said):
        wheels_in(tmp_path)


def test_a_torch_that_is_too_old_is_refused(site: Path) -> None:
    (site / "torch-2.13.0.dist-info").rename(site / "torch-2.1.2+cu121.dist-info")

    with pytest.raises(InputError, match=r"torch 2\.1 .* is older") as caught:
        wheels_in(site)

    assert "oomdoctor estimate" in str(caught.value.hint)


def test_a_header_that_lacks_is_named(site: Path) -> None:
    (site / "nvidia/cu13/include/cublasLt.h").unlink()

    with pytest.raises(InputError, match=r"cublasLt\.h"):
        wheels_in(site)


def test_without_a_compiler_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no C compiler") as caught:
        find_compiler({"PATH": str(tmp_path), "CC": "mycc -m64"})

    assert "mycc" in caught.value.message
    assert "oomdoctor estimate" in str(caught.value.hint)
    assert "install gcc" in str(caught.value.hint)


def test_the_compiler_is_the_one_that_is_named(tmp_path: Path) -> None:
    for name in ("cc", "mycc"):
        (tmp_path / name).touch(mode=0o755)

    assert find_compiler({"PATH": str(tmp_path), "CC": "mycc -m64"}) == str(tmp_path / "mycc")
    assert find_compiler({"PATH": str(tmp_path)}) == str(tmp_path / "cc")


@LINUX
def test_what_was_built_is_taken_again(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def compile_nothing(wheels: object, compiler: str, folder: Path) -> None:
        del wheels, compiler
        built.append(folder.name)
        (folder / building.DRIVER).touch()

    (tmp_path / "cc").touch(mode=0o755)
    monkeypatch.setattr(building, "_compile", compile_nothing)
    environment = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    first = build(site, environment=environment)
    again = build(site, environment=environment)
    (site / "torch-2.13.0.dist-info").rename(site / "torch-2.14.0.dist-info")
    other = build(site, environment=environment)

    assert first == again != other
    assert len(built) == 2
    assert sorted(first.parent.iterdir()) == sorted([first, other])


@LINUX
def test_a_folder_without_its_libraries_is_built_anew(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cc").touch(mode=0o755)
    monkeypatch.setattr(
        building, "_compile", lambda _wheels, _compiler, to: (to / building.DRIVER).touch()
    )
    environment = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    folder = build(site, environment=environment)
    (folder / building.DRIVER).rename(folder / "left over")

    assert build(site, environment=environment) == folder
    assert [path.name for path in folder.iterdir()] == [building.DRIVER]


@LINUX
def test_a_build_that_failed_leaves_nothing(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise InputError("no")

    (tmp_path / "cc").touch(mode=0o755)
    monkeypatch.setattr(building, "_compile", fail)
    environment = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    with pytest.raises(InputError):
        build(site, environment=environment)

    assert list(cache_folder(environment).iterdir()) == []


@pytest.mark.parametrize(
    ("system", "machine", "said"),
    [
        ("Darwin", "arm64", "this is macOS on arm64"),
        ("Windows", "AMD64", "this is Windows on AMD64"),
        ("Linux", "aarch64", "this is Linux on aarch64"),
    ],
)
def test_another_system_is_told_so(
    site: Path, monkeypatch: pytest.MonkeyPatch, system: str, machine: str, said: str
) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: machine)

    with pytest.raises(InputError, match=said) as caught:
        build(site)

    assert "oomdoctor estimate" in str(caught.value.hint)


def test_a_system_with_another_c_library_is_told_so(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("platform.libc_ver", lambda: ("", ""))
    monkeypatch.setattr(building, "has_musl", lambda: True)

    with pytest.raises(InputError, match="musl") as caught:
        build(site)

    assert "oomdoctor estimate" in str(caught.value.hint)


def test_the_cache_is_the_users() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/oomdoctor/virtual")
    assert cache_folder({}) == Path.home() / ".cache/oomdoctor/virtual"


@LINUX
def test_functions_of_a_library_are_read_from_its_file() -> None:
    folder = Path(sys.modules["_socket"].__file__ or "") if "_socket" in sys.modules else None
    candidates = [folder] if folder else []
    candidates += [
        path
        for name in sys.path
        for path in Path(name or ".").glob(f"_ctypes*{EXTENSION_SUFFIXES[0]}")
    ]
    library = next(path for path in candidates if path is not None and path.is_file())

    assert f"PyInit_{library.name.partition('.')[0]}" in exported(library)


def test_a_file_of_another_kind_exports_nothing(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("INPUT(other.so)")
    (tmp_path / "empty.so").touch()

    assert exported(tmp_path / "text.so") == frozenset()
    assert exported(tmp_path / "empty.so") == frozenset()


def test_a_python_that_does_not_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not start"):
        site_packages_of(str(tmp_path / "python"))
