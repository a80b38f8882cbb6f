"""NumPy on the CPU: what everything else has to beat."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.contenders.kept import WITH_ARRAYS, Kept
from gpukern.bench.model.case import AXES, KINDS, Case
from gpukern.bench.model.contender import Absent, Contender
from gpukern.bench.model.dtypes import numpy_dtype

Array = npt.NDArray[Any]
_HALVES = ("float16", "bfloat16")


def contenders(op: str, dtype: str) -> Iterator[Contender | Absent]:
    """What takes part in a comparison of ``op`` on ``dtype``."""
    if dtype in _HALVES and KINDS[op] in ("sum", "matmul", "dot", "norm"):
        # NumPy's own half-precision loops round at each step, and its matmul has no BLAS for them.
        yield Contender("NumPy", f"np.{op} via float32", _widened(_function(op)))
        return
    yield Contender("NumPy", f"np.{op}", _function(op))
    if op in WITH_ARRAYS:
        yield Contender("NumPy", "out=", _with_out(op, dtype), reuses=True)


def _function(op: str) -> Callable[..., Any]:
    if op == "transpose":
        return _transpose
    if op == "norm":
        return np.linalg.norm
    return partial(np.sum, axis=AXES[op]) if op in AXES else getattr(np, op)


def _with_out(op: str, dtype: str) -> Callable[..., Any]:
    """The same into an array that is kept from call to call, whose memory is there already."""
    function: Callable[..., Any] = _transpose_into if op == "transpose" else _function(op)
    kept = Kept(np.empty)

    def into_kept(*arrays: Array) -> Any:
        case = Case(op, tuple(array.shape for array in arrays), dtype)
        out = kept("out", case.result_shape, numpy_dtype(case.result_dtype))
        function(*arrays, out=out)
        return out

    return into_kept


def _widened(function: Callable[..., Any]) -> Callable[..., Any]:
    def through_float32(*arrays: Array) -> Any:
        return function(*(a.astype(np.float32) for a in arrays)).astype(arrays[0].dtype)

    return through_float32


def _transpose(a: Array) -> Array:
    # np.transpose alone is a view: the others write a new array. So is what np.ascontiguousarray
    # makes of a single row.
    return np.array(a.T, order="C")


def _transpose_into(a: Array, out: Array) -> None:
    np.copyto(out, a.T)
