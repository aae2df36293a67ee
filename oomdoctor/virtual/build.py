"""Builds the libraries of the virtual card, once for each version of the wheels, and keeps them.

    libcuda.so.1            the driver, and the libraries of CUDA that are played
    libvirtual_rest.so      their other functions, written from the headers
    libnvidia-ml.so.1       what nvidia-smi would show
    libnvrtc.so.13          the compiler at run time, under the name of the real one

The compiler runs for some seconds. What it made lies under ~/.cache/oomdoctor/virtual, in a folder
that is named after the sources, the compiler and the versions of the wheels.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from oomdoctor.errors import InputError
from oomdoctor.virtual import compiling, headers, kept, rest, symbols
from oomdoctor.virtual.kept import made_once
from oomdoctor.virtual.wheels import FALL_BACK, wheels_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oomdoctor.virtual.wheels import Wheels

HERE = Path(__file__).parent
SOURCES = HERE / "csrc"
DRIVER = "libcuda.so.1"
REST = "libvirtual_rest.so"
MONITOR = "libnvidia-ml.so.1"
_WITH_HEADER = {
    "cudnn.c": "cudnn.h",
    "rnn.c": "cudnn.h",
    "fft.c": "cufftXt.h",
    "solver.c": "cusolverDn.h",
    "nccl.c": "nccl.h",
    "nccl_collectives.c": "nccl.h",
}
_APART = ("nvml.c", "nvrtc.c")
_AWAY = f"run it in CI, in a container or on a login node with Linux; here, {FALL_BACK}"


def build(site: Path, *, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder with the libraries for the wheels of an environment, built if need be."""
    _check_platform()
    wheels = wheels_in(site)
    compiler = compiling.find_compiler(environment)
    folder = cache_folder(environment) / _key(wheels, compiler)
    try:
        return made_once(folder, DRIVER, lambda to: _compile(wheels, compiler, to))
    except OSError as error:
        raise InputError(
            f"the libraries of a virtual card cannot be kept in {folder.parent}: {error.strerror}",
            hint="name a folder that can be written to in the environment variable XDG_CACHE_HOME; "
            f"without one, {FALL_BACK}",
        ) from error


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return where built libraries are kept."""
    return kept.cache_folder("virtual", environment)


def _check_platform() -> None:
    """The CUDA build of torch has to run here, though on no card."""
    system, machine = platform.system(), platform.machine()
    if (system, machine) != ("Linux", "x86_64"):
        here = f"{'macOS' if system == 'Darwin' else system} on {machine}"
        raise InputError(f"a virtual card needs Linux on x86-64, and this is {here}", hint=_AWAY)
    if platform.libc_ver()[0] != "glibc" and has_musl():
        raise InputError(
            "a virtual card needs glibc, and this system has musl: there is no CUDA build of torch "
            "for it",
            hint=_AWAY,
        )


def has_musl() -> bool:
    """Say whether the system's C library is musl, as Alpine's is."""
    return any(Path("/lib").glob("ld-musl-*"))


def _key(wheels: Wheels, compiler: str) -> str:
    """Return the name of a build: it changes with all that the result depends on."""
    files = [one for one in (*SOURCES.rglob("*"), *HERE.glob("*.py")) if one.is_file()]
    return kept.name_of(files, (compiler, *wheels.versions))


def _compile(wheels: Wheels, compiler: str, folder: Path) -> None:
    ours = ["-I", str(SOURCES), "-isystem", str(SOURCES / "stand_in")]
    theirs = [flag for path in wheels.includes for flag in ("-isystem", str(path))]
    # the tests compile with all warnings; a user can do nothing about one
    flags = ["-w", *ours, *theirs]
    for file in _write_rest(wheels, compiler, folder, flags):
        file.chmod(0o644)
    generated = sorted(folder.glob("rest_*.c"))
    compiling.link(compiler, generated, folder / REST, flags)
    played = [path for path in sorted(SOURCES.glob("*.c")) if _is_played(path, wheels)]
    search = ["-L", str(folder), f"-l:{REST}", "-Wl,-rpath,$ORIGIN", "-ldl", "-lpthread"]
    # the other library is kept though nothing of it is called by name
    keep = ["-Wl,--no-as-needed", f"-Wl,-soname,{DRIVER}"]
    compiling.link(compiler, played, folder / DRIVER, [*flags, *keep, *search])
    (folder / "libcuda.so").symlink_to(DRIVER)
    major = f"-DVC_CUDA_MAJOR={wheels.cuda_major}"
    compiling.link(compiler, [SOURCES / "nvml.c"], folder / MONITOR, [*flags, major])
    if wheels.has_header("nvrtc.h"):
        _link_nvrtc(wheels, compiler, folder, flags)


def _is_played(path: Path, wheels: Wheels) -> bool:
    header = _WITH_HEADER.get(path.name)
    return path.name not in _APART and (header is None or wheels.has_header(header))


def _link_nvrtc(wheels: Wheels, compiler: str, folder: Path, flags: list[str]) -> None:
    for library in wheels.libraries("libnvrtc.so"):
        name = library.name
        own = [f"-Wl,-soname,{name}", f"-DVC_NVRTC_MAJOR={wheels.cuda_major}"]
        compiling.link(compiler, [SOURCES / "nvrtc.c"], folder / name, [*flags, *own])


def _exported(wheels: Wheels, library: rest.Library) -> set[str]:
    """Return what a library has besides what its headers declare; the driver is in no wheel."""
    if library.files:
        return {one for path in wheels.libraries(library.files) for one in symbols.exported(path)}
    texts = (path / "cuda.h" for path in wheels.includes if library.headers == ("cuda.h",))
    first = next((path for path in texts if path.is_file()), None)
    return set(headers.renamed(first.read_text("utf-8", "replace"))) if first else set()


def _write_rest(wheels: Wheels, compiler: str, folder: Path, flags: list[str]) -> list[Path]:
    """Write the generated sources: one file without headers, and one for each library with them."""
    written, plain = [], [rest.PLAIN_HEAD]
    for library in rest.LIBRARIES:
        if not all(wheels.has_header(name) for name in library.headers):
            continue
        head = rest.TYPED_HEAD + rest.includes([library])
        typed = folder / f"rest_{library.headers[0].partition('.')[0]}.c"
        typed.write_text(head, encoding="utf-8")
        text = compiling.preprocess(compiler, typed, flags)
        declared = list(headers.prototypes(text))
        exported = _exported(wheels, library)
        plain.append(rest.plain_source(library, declared, exported))
        typed.write_text(head + rest.typed_source(library, declared), encoding="utf-8")
        written.append(typed)
    (folder / "rest_plain.c").write_text("".join(plain), encoding="utf-8")
    return written
