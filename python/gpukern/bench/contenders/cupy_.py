"""CuPy: NumPy's functions on the GPU."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import cupy
import numpy as np
import numpy.typing as npt
from cupyx import empty_pinned

from gpukern.bench.contenders.kept import WITH_ARRAYS, Kept
from gpukern.bench.model.case import AXES, ELEMENTWISE, KINDS
from gpukern.bench.model.contender import Absent, Contender, DeviceSide

Array = npt.NDArray[Any]


def contenders(op: str, dtype: str) -> Iterator[Contender | Absent]:
    """What takes part in a comparison of ``op`` on ``dtype``."""
    if not cupy.cuda.is_available():
        yield Absent("CuPy", "", "is installed, but finds no GPU")
        return
    if dtype == "bfloat16":
        yield Absent("CuPy", f"cupy.{op}", "takes no bfloat16 arrays from NumPy")
        return
    if op in ("dot", "norm") and dtype not in ("float32", "float64"):
        yield Absent("CuPy", "", f"no {op} for {dtype} here")
        return
    calculate, into = _OPERATIONS[op]
    # CuPy adds up float16 in float16.
    carried = "float16" if KINDS[op] == "sum" and dtype == "float16" else ""
    yield _contender(f"cupy.{op}", calculate, into, carried)
    if op == "add":
        yield _contender("ElementwiseKernel", _elementwise(), _elementwise_into)
    yield Contender("CuPy", "pinned", _staged(calculate, False), carried=carried)
    if op in WITH_ARRAYS:
        kept = _staged(calculate, True)
        yield Contender("CuPy", "out=", kept, carried=carried, reuses=True)


def _contender(
    variant: str, calculate: Callable[..., Any], into: Callable[..., object], carried: str = ""
) -> Contender:
    def end_to_end(*arrays: Array) -> Array:
        return fetch(calculate(*map(cupy.asarray, arrays)))

    def run(inputs: Any, out: Any) -> None:
        into(*inputs, out=out)

    # asarray copies from the host, and takes device memory as it is.
    side = DeviceSide(cupy.asarray, run, fetch, cupy.asarray)
    return Contender("CuPy", variant, end_to_end, side, carried=carried)


def _staged(calculate: Callable[..., Any], keep: bool) -> Callable[..., Array]:
    """From end to end by way of pinned memory, which is kept from call to call.

    CuPy starts a copy from there without a copy of its own. With ``keep`` the result stays there.
    """
    pinned: Kept[Array] = Kept(empty_pinned)

    def load_staged(place: int, array: Array) -> Any:
        stage = pinned(place, array.shape, array.dtype)
        np.copyto(stage, array)
        return cupy.asarray(stage)

    def end_to_end(*arrays: Array) -> Array:
        result = calculate(*(load_staged(place, array) for place, array in enumerate(arrays)))
        stage = pinned("out", result.shape, result.dtype)
        cupy.asnumpy(result, out=stage)
        return stage if keep else stage.copy()

    return end_to_end


@cache
def _elementwise() -> Any:
    return cupy.ElementwiseKernel("T a, T b", "T out", "out = a + b", "gpukern_peer_add")


def _elementwise_into(a: Any, b: Any, out: Any) -> None:
    _elementwise()(a, b, out)


def fetch(array: Any) -> Array:
    """A NumPy array of one on the GPU."""
    found: Array = cupy.asnumpy(array)
    return found


def _transpose(a: Any) -> Any:
    # cupy.transpose alone is a view: the others write a new array.
    return cupy.ascontiguousarray(a.T)


def _transpose_into(a: Any, out: Any) -> None:
    cupy.copyto(out, a.T)


def _norm_into(a: Any, out: Any) -> None:
    # cupy.linalg.norm has no output argument.
    out[...] = cupy.linalg.norm(a)


def _min_into(a: Any, out: Any) -> None:
    # CuPy 14.2 takes the output argument of min for a dtype.
    out[...] = cupy.min(a)


_OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    **{
        op: (getattr(cupy, op), getattr(cupy, op))
        for op in (*ELEMENTWISE, "sum", "max", "argmax", "argmin", "dot", "matmul")
    },
    **{op: (partial(cupy.sum, axis=axis),) * 2 for op, axis in AXES.items()},
    "min": (cupy.min, _min_into),
    "norm": (cupy.linalg.norm, _norm_into),
    "transpose": (_transpose, _transpose_into),
}
