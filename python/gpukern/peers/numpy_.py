"""NumPy on the CPU: what everything else has to beat."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.contenders import Absent, Contender

Array = npt.NDArray[Any]
_HALVES = ("float16", "bfloat16")


def contenders(op: str, dtype: str) -> Iterator[Contender | Absent]:
    """What takes part in a comparison of ``op`` on ``dtype``."""
    if dtype in _HALVES and op in ("sum", "matmul"):
        # NumPy's own half-precision loops round at each step, and its matmul has no BLAS for them.
        yield Contender("NumPy", f"np.{op} via float32", _WIDENED[op])
    else:
        yield Contender("NumPy", f"np.{op}", _PLAIN[op])


def _sum(a: Array) -> Any:
    return np.sum(a)


def _transpose(a: Array) -> Array:
    # np.transpose alone is a view: the others write a new array.
    return np.ascontiguousarray(a.T)


def _sum_widened(a: Array) -> Any:
    return np.sum(a, dtype=np.float32).astype(a.dtype)


def _matmul_widened(a: Array, b: Array) -> Array:
    product: Array = np.matmul(a.astype(np.float32), b.astype(np.float32))
    return product.astype(a.dtype)


_PLAIN: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sum": _sum,
    "matmul": np.matmul,
    "transpose": _transpose,
}
_WIDENED: dict[str, Callable[..., Any]] = {"sum": _sum_widened, "matmul": _matmul_widened}
