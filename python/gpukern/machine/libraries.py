"""Where the CUDA libraries that gpukern opens when it needs them are found."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# The CUDA version of the first driver that takes what CUDA 13 compiles, r580.
DRIVER_IS_NEW = 13000

# What the system's loader is asked for, the newest first.
_CUBLAS_SONAMES = ("libcublas.so.13", "libcublas.so.12")


def _pathfinder(name: str) -> str | None:
    """The path that NVIDIA's own search gives: loaded already, then wheels, conda, toolkits."""
    try:
        from cuda.pathfinder import (  # type: ignore[import-untyped, unused-ignore]
            load_nvidia_dynamic_lib,
        )
    except ImportError:
        return None
    # DynamicLibNotFoundError is a RuntimeError, as is what a library that does not load raises.
    try:
        path: str | None = load_nvidia_dynamic_lib(name).abs_path
    except (RuntimeError, OSError):
        return None
    return path


def find_cublas() -> list[str]:
    """What to give dlopen for cuBLAS, the best candidate first; the last ones are bare sonames.

    Of those a driver is too old for, the engine opens none.
    """
    found = _pathfinder("cublas")
    older = [wheel / "cublas" / "lib" / "libcublas.so.12" for wheel in _wheels()]
    beside = [str(path) for path in older if path.is_file() and str(path) != found]
    return [*([found] if found else []), *beside, *_CUBLAS_SONAMES]


def cublas_cure(driver: int | None) -> str:
    """What installs a cuBLAS for the driver."""
    if driver is not None and driver < DRIVER_IS_NEW:
        return 'pip install "gpukern[cublas12]" (or nvidia-cublas-cu12)'
    return 'pip install "gpukern[cublas]" (or nvidia-cublas)'


def nvrtc_major(driver: int | None) -> int:
    """The newest NVRTC whose machine code a driver takes, which supports that CUDA version.

    None: there is no driver, and nothing speaks against the newest.
    """
    return 13 if driver is None or driver >= DRIVER_IS_NEW else 12


def nvrtc_cure(driver: int | None) -> str:
    """What installs an NVRTC for the driver."""
    if nvrtc_major(driver) == 12:
        return 'pip install "gpukern[jit12]" (or nvidia-cuda-nvrtc-cu12)'
    return 'pip install "gpukern[jit]" (or nvidia-cuda-nvrtc)'


def _wheels() -> Iterator[Path]:
    """Where NVIDIA's packages of Python lie."""
    found = find_spec("nvidia")
    for folder in (found.submodule_search_locations or []) if found else []:
        yield Path(folder)


def _nvrtc_folders(major: int) -> Iterator[Path]:
    for wheel in _wheels():
        yield wheel / f"cu{major}" / "lib"
        yield wheel / "cuda_nvrtc" / "lib"
    if prefix := os.environ.get("CONDA_PREFIX"):
        yield Path(prefix) / "lib"
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(name):
            yield Path(home) / "lib64"
    yield Path("/usr/local/cuda/lib64")
    yield Path(f"/usr/local/cuda-{major}/lib64")


def find_nvrtc(driver: int | None) -> str | None:
    """The path of an NVRTC for a driver that supports that CUDA version; None where none is found.

    The files are looked for by name: several majors may be here, NVIDIA's own search takes the
    newest and loads it, and what is compiled already needs none.
    """
    majors = range(nvrtc_major(driver), 11, -1)
    for major in majors:
        for folder in _nvrtc_folders(major):
            path = folder / f"libnvrtc.so.{major}"
            if path.is_file():
                return str(path.resolve())
    found = _pathfinder("nvrtc")
    fits = found and any(f".so.{major}" in Path(found).name for major in majors)
    return found if fits else None


def find_headers(driver: int | None) -> list[Path]:
    """The folders of NVIDIA's own headers: cuda_fp16.h, cooperative_groups.h, cub."""
    major = nvrtc_major(driver)
    folders: list[Path] = []
    for wheel in _wheels():
        folders += [wheel / f"cu{major}" / "include", wheel / "cuda_runtime" / "include"]
        folders += [wheel / "curand" / "include", wheel / "cuda_cccl" / "include"]
    homes = filter(None, map(os.environ.get, ("CUDA_HOME", "CUDA_PATH")))
    folders += [Path(home) / "include" for home in (*homes, "/usr/local/cuda")]
    folders += [folder / "cccl" for folder in folders]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def nvrtc_report(driver: int | None) -> dict[str, Any]:
    """Where NVRTC was found and its version, or what is wrong; never raises."""
    from gpukern import _core

    report: dict[str, Any] = {"library": find_nvrtc(driver), "version": 0, "problem": None}
    if report["library"] is None:
        report["problem"] = f"NVRTC was not found; {nvrtc_cure(driver)} brings it"
        return report
    try:
        report["version"] = _core.nvrtc_version(report["library"])
    except _core.CudaError as error:
        report["problem"] = f"{error}; {nvrtc_cure(driver)} brings one that works"
    return report
