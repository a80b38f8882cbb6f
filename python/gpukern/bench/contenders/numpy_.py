"""NumPy on the CPU: what everything else has to beat."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.model.case import AXES, KINDS
from gpukern.bench.model.contender import Absent, Contender

Array = npt.NDArray[Any]
_HALVES = ("float16", "bfloat16")


def contenders(op: str, dtype: str) -> Iterator[Contender | Absent]:
    """What takes part in a comparison of ``op`` on ``dtype``."""
    if dtype in _HALVES and KINDS[op] in ("sum", "matmul", "dot", "norm"):
        # NumPy's own half-precision loops round at each step, and its matmul has no BLAS for them.
        yield Contender("NumPy", f"np.{op} via float32", _widened(_function(op)))
    else:
        yield Contender("NumPy", f"np.{op}", _function(op))


def _function(op: str) -> Callable[..., Any]:
    if op == "transpose":
        return _transpose
    if op == "norm":
        return np.linalg.norm
    return partial(np.sum, axis=AXES[op]) if op in AXES else getattr(np, op)


def _widened(function: Callable[..., Any]) -> Callable[..., Any]:
    def through_float32(*arrays: Array) -> Any:
        return function(*(a.astype(np.float32) for a in arrays)).astype(arrays[0].dtype)

    return through_float32


def _transpose(a: Array) -> Array:
    # np.transpose alone is a view: the others write a new array. So is what np.ascontiguousarray
    # makes of a single row.
    return np.array(a.T, order="C")
