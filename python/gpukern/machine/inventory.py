"""Which libraries are here, and in which versions."""

import importlib.util
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

# Distributions by the name that a reader knows them by; the first that is installed counts.
_DISTRIBUTIONS = {
    "gpukern": ("gpukern",),
    "numpy": ("numpy",),
    "ml_dtypes": ("ml_dtypes",),
    "torch": ("torch",),
    "cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy"),
    "numba": ("numba",),
    "numba-cuda": ("numba-cuda",),
    "pycuda": ("pycuda",),
    "triton": ("triton",),
    "jax": ("jax",),
    "cuda-core": ("cuda-core",),
    "cuda-bindings": ("cuda-bindings",),
}


def versions() -> dict[str, str]:
    """The version of Python and of each library that is installed, without importing any."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name, distributions in _DISTRIBUTIONS.items():
        for distribution in distributions:
            try:
                found[name] = version(distribution)
                break
            except PackageNotFoundError:
                continue
    return found


def installed(module: str) -> bool:
    """Whether a module is there, without importing what is inside it."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def cuda_version(number: int | None) -> str:
    """A version as the driver gives it, 13000, as a reader writes it: "13.0"."""
    return "unknown" if not number else f"{number // 1000}.{number % 1000 // 10}"
