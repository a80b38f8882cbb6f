"""Finding the compilers: nvcc in a toolkit or a wheel, gcc and g++, and the headers."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from build_tools.steps import output_of, stop

OLDEST_NVCC = (13, 0)
OLDEST_NUMPY = "numpy>=2.0"
# The four must agree: a newer nvvm emits PTX that the 13.0 ptxas refuses, and PTX of 13.0 is what
# every driver from r580 on can load.
TOOLKIT_WHEELS = [
    f"{name}==13.0.*"
    for name in ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-runtime")
]


@dataclass(frozen=True)
class Toolkit:
    """An nvcc that is new enough, and what it says of itself."""

    nvcc: str
    version: str
    include: str
    fatbinary: str


def nvcc_places(environ: Mapping[str, str], search: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Where an nvcc may be, best first: (what led there, path)."""
    if environ.get("CUDA_HOME"):
        yield "CUDA_HOME", Path(environ["CUDA_HOME"], "bin", "nvcc")
    on_path = shutil.which("nvcc", path=environ.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    for entry in search:
        yield "wheel nvidia-cuda-nvcc", Path(entry or ".", "nvidia", "cu13", "bin", "nvcc")


def nvcc_version(nvcc: Path) -> str | None:
    """The version as "13.0.88", or None if this is no nvcc that runs."""
    found = re.search(r"release \d+\.\d+, V(\d+\.\d+\.\d+)", output_of([str(nvcc), "--version"]))
    return found.group(1) if found else None


def toolkit_include(nvcc: Path) -> str | None:
    """The folder of cuda.h and cuda_fp16.h; nvcc knows, and it differs between distributions."""
    said = output_of([str(nvcc), "--dryrun", "-x", "cu", os.devnull])
    folders = [Path(folder) for folder in re.findall(r'INCLUDES="-I([^"]+)"', said)]
    folders.append(nvcc.resolve().parent.parent / "include")
    for folder in folders:
        if (folder / "cuda.h").is_file() and (folder / "cuda_fp16.h").is_file():
            return os.path.normpath(folder)
    return None


def fatbinary_beside(nvcc: Path) -> str | None:
    """The tool that packs what nvcc compiles; nvcc itself may be a link or a script."""
    for folder in (nvcc.parent, nvcc.resolve().parent):
        if (folder / "fatbinary").is_file():
            return str(folder / "fatbinary")
    return shutil.which("fatbinary")


def look_for_toolkit(
    environ: Mapping[str, str], search: Iterable[str]
) -> tuple[Toolkit | None, list[str]]:
    """The first toolkit that will do, and what was passed over before it."""
    rejected = []
    for origin, nvcc in nvcc_places(environ, search):
        if not nvcc.is_file():
            if origin == "CUDA_HOME":
                rejected.append(f"CUDA_HOME has no {nvcc}")
            continue
        version = nvcc_version(nvcc)
        include = toolkit_include(nvcc) if version else None
        fatbinary = fatbinary_beside(nvcc)
        if version is None:
            rejected.append(f"{nvcc} (from {origin}) does not run")
        elif tuple(map(int, version.split(".")))[:2] < OLDEST_NVCC:
            rejected.append(f"{nvcc} (from {origin}) is {version}")
        elif include is None:
            rejected.append(f"{nvcc} (from {origin}) has no cuda.h and cuda_fp16.h beside it")
        elif fatbinary is None:
            rejected.append(f"{nvcc} (from {origin}) has no fatbinary beside it")
        else:
            return Toolkit(str(nvcc), version, include, fatbinary), rejected
    return None, rejected


def find_toolkit(environ: Mapping[str, str], search: Iterable[str]) -> Toolkit:
    """The first toolkit that will do, or the end of the build with what was found in its place."""
    toolkit, rejected = look_for_toolkit(environ, search)
    if toolkit:
        passed_over = f" (passed over: {'; '.join(rejected)})" if rejected else ""
        print(f"gpukern: nvcc {toolkit.version}, {toolkit.nvcc}{passed_over}", flush=True)
        return toolkit
    found = "; ".join(rejected) if rejected else "no nvcc in CUDA_HOME, on PATH or among the wheels"
    wheels = " ".join(f"'{wheel}'" for wheel in TOOLKIT_WHEELS)
    return stop(
        f"compiling the kernels takes nvcc 13.0 or newer, but {found}: install CUDA 13 and set "
        f"CUDA_HOME to it, or run: pip install {wheels}"
    )


def compiler(variable: str, default: str) -> list[str]:
    """The words of the compiler's command, from the environment or by its usual name."""
    words = shlex.split(os.environ.get(variable, "")) or [default]
    if shutil.which(words[0]) is None:
        stop(
            f"no {'C' if variable == 'CC' else 'C++'} compiler (looked for {words[0]}): install "
            "gcc and g++, for example with: apt install build-essential"
        )
    return words


@cache
def compiler_version(*words: str) -> str:
    """What a compiler says of itself."""
    return output_of([*words, "--version"])


def header_folders() -> list[str]:
    """The folders of Python.h and of NumPy's headers."""
    try:
        import numpy
    except ImportError:
        stop(f"compiling takes NumPy 2.0 or newer: pip install '{OLDEST_NUMPY}'")
    if int(numpy.__version__.split(".")[0]) < 2:
        stop(f"compiling takes NumPy 2.0 or newer, not {numpy.__version__}: pip install -U numpy")
    python = sysconfig.get_paths()["include"]
    if not Path(python, "Python.h").is_file():
        stop(f"no Python.h in {python}: install Python's headers, as with: apt install python3-dev")
    return [python, numpy.get_include()]
