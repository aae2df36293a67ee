"""The CUDA build of torch and NVIDIA's libraries, as an environment has them installed.

site-packages/torch/lib/libtorch_cuda.so
site-packages/nvidia/cu13/{include,lib}                    CUDA 13
site-packages/nvidia/{cuda_runtime,cublas,...}/{include,lib}   CUDA 12
site-packages/nvidia_cublas-13.1.1.3.dist-info
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oomdoctor.errors import InputError
from oomdoctor.record import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheels:
    """What is needed of an environment: headers, libraries, versions."""

    site: Path
    versions: tuple[str, ...]
    includes: tuple[Path, ...]
    cuda_major: int

    def has_header(self, name: str) -> bool:
        """Say whether a header is there."""
        return any((folder / name).is_file() for folder in self.includes)

    def libraries(self, name: str) -> tuple[Path, ...]:
        """Return the shared libraries whose names begin so; `libcublas` has two."""
        return tuple(sorted(self.site.glob(f"nvidia/*/lib/{name}*")))


FALL_BACK = "`oomdoctor estimate` simulates the job with any build of torch"
SETUP = (
    "make an environment with the CUDA build of torch, 5 GB, on any Linux with x86-64:\n"
    "    python3 -m venv ~/oomdoctor-cuda\n"
    "    ~/oomdoctor-cuda/bin/python -m pip install 'torch===2.13.0' -r YOUR-REQUIREMENTS.txt\n"
    "  (three equal signs: the wheel of PyPI, which has CUDA), and name it: of `run` with\n"
    "  --virtual-venv ~/oomdoctor-cuda, of others with --python ~/oomdoctor-cuda/bin/python.\n"
    f"  Without one, {FALL_BACK}"
)
OLDEST, NEWEST = (2, 4), (2, 13)
"""The versions of torch between which a virtual card was tried."""


def wheels_in(site: Path) -> Wheels:
    """Look into a site-packages folder; InputError if it holds no CUDA build of torch."""
    library = site / "torch" / "lib"
    if not (library / "libtorch_cuda.so").is_file():
        raise InputError(f"no CUDA build of torch in {site}{_which(site)}", hint=SETUP)
    version = torch_version(site)
    if version is not None and version < OLDEST:
        raise InputError(
            f"torch {version[0]}.{version[1]} in {site} is older than a virtual card was tried "
            f"with: {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}",
            hint=SETUP,
        )
    includes = tuple(sorted(site.glob("nvidia/*/include")))
    # triton carries the driver's header, for wheels that lack it
    spare = site / "triton" / "backends" / "nvidia" / "include"
    found = Wheels(
        site=site,
        versions=tuple(sorted(_versions(site))),
        includes=(*includes, *([spare] if spare.is_dir() else [])),
        cuda_major=_cuda_major(site),
    )
    for header in ("cuda.h", "cuda_runtime_api.h", "cublasLt.h"):
        if not found.has_header(header):
            raise InputError(
                f"the wheels of CUDA in {site} lack the header {header}",
                hint=f"install torch with its dependencies from PyPI, not a system's CUDA. {SETUP}",
            )
    return found


def _versions(site: Path) -> Iterator[str]:
    """Yield `torch-2.13.0`, `nvidia_cublas-13.1.1.3`, ..."""
    for folder in site.glob("*.dist-info"):
        name = folder.name.removesuffix(".dist-info")
        if name.startswith(("torch-", "nvidia_", "triton-")):
            yield name


def _cuda_major(site: Path) -> int:
    for library in site.glob("nvidia/*/lib/libcudart.so.*"):
        major = library.name.removeprefix("libcudart.so.").partition(".")[0]
        if major.isdecimal():
            return int(major)
    raise InputError(f"no libcudart in {site / 'nvidia'}", hint=SETUP)


def torch_version(site: Path) -> tuple[int, int] | None:
    """Return 2, 13 for torch 2.13.0+cu130; None where nothing says it."""
    for folder in site.glob("torch-*.dist-info"):
        major, _, rest = folder.name.removeprefix("torch-").partition(".")
        minor = rest.partition(".")[0]
        if major.isdecimal() and minor.isdecimal():
            return int(major), int(minor)
    return None


def _which(site: Path) -> str:
    """Return what is there instead: a build for the CPU, for ROCm, or none."""
    library = site / "torch" / "lib"
    if any(library.glob("libtorch_hip.*")):
        return ", but one for ROCm"
    if any(library.glob("libtorch_cpu.*")):
        return ", but one for the CPU"
    if (site / "torch").is_dir():
        return ", but a part of torch without its libraries: install it anew"
    return ""
