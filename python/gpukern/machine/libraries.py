"""Where the CUDA libraries that gpukern opens when it needs them are found."""

CUBLAS_CURE = 'pip install "gpukern[cublas]" (or nvidia-cublas)'

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
    """What to give dlopen for cuBLAS, the best candidate first; the last ones are bare sonames."""
    found = _pathfinder("cublas")
    return [*([found] if found else []), *_CUBLAS_SONAMES]
