"""What compilers are asked to keep on disk, for the next process and the next run."""

from contextlib import suppress

from gpukern.machine.folders import cache_folder


def keeping() -> dict[str, str]:
    """The environment of a process whose compilers keep what they keep only where asked to."""
    asked = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "TRITON_CACHE_AUTOTUNING": "1"}
    with suppress(RuntimeError):  # a user without a home has no such folder
        asked["JAX_COMPILATION_CACHE_DIR"] = str(cache_folder() / "jax")
    return asked
