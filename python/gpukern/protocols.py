"""What NumPy's functions do with a DeviceArray: ours where there is one, else a clear error.

DeviceArray's ``__array_ufunc__`` and ``__array_function__`` come here. Nothing is copied to the
host in silence.
"""

import inspect
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gpukern import _core, creation
from gpukern._core import DeviceArray

# By the names of NumPy's ufuncs; what they take beside operands and `out` is not offered.
_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": _core.add,
    "subtract": _core.subtract,
    "multiply": _core.multiply,
    "divide": _core.divide,
    "maximum": _core.maximum,
    "minimum": _core.minimum,
    "negative": _core.negative,
    "absolute": _core.abs,
    "sqrt": _core.sqrt,
    "exp": _core.exp,
    "matmul": _core.matmul,
    "less": _core.less,
    "less_equal": _core.less_equal,
    "greater": _core.greater,
    "greater_equal": _core.greater_equal,
    "equal": _core.equal,
    "not_equal": _core.not_equal,
}


def _clip(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
) -> Any:
    if any(x is not None for x in (a_min, a_max)) and any(x is not None for x in (min, max)):
        raise ValueError("clip: the bounds are a_min and a_max, or min and max, and not of both")
    return _core.clip(a, a_min if min is None else min, a_max if max is None else max, out)


def _norm(x: Any, ord: None = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord is not None:
        raise TypeError(f"norm: ord {ord!r} is not offered; leave it out for the 2-norm")
    return _core.norm(x, axis, keepdims=keepdims)


def _with_axes(x: Any) -> Any:
    """``x`` itself, or ours of another library's array that does not tell how many axes it has."""
    return creation.asarray(x) if not hasattr(x, "ndim") and creation.is_on_device(x) else x


def _check_aligned(a: Any, b: Any) -> None:
    """That the last axis of ``a`` is as long as the one of ``b`` that a dot multiplies it by."""
    rows, columns = tuple(np.shape(a)), tuple(np.shape(b))
    last, axis = len(rows) - 1, max(len(columns) - 2, 0)
    if rows[last] != columns[axis]:
        raise ValueError(
            f"shapes {rows} and {columns} not aligned: {rows[last]} (dim {last}) != "
            f"{columns[axis]} (dim {axis})"
        )


def _dot_of_stack(a: Any, b: Any, out: None) -> Any:
    """Each row of ``a`` by each column of each matrix of ``b``, where matmul pairs the matrices."""
    if out is not None:
        raise TypeError("out is not offered where b has three axes or more; leave it out")
    stack = b if isinstance(b, np.ndarray) else creation.asarray(b)
    *outer, length, columns = stack.shape
    side_by_side = stack.transpose(len(outer), *range(len(outer)), len(outer) + 1)
    product = _core.matmul(a, side_by_side.reshape(length, math.prod(outer) * columns))
    return product.reshape(*np.shape(a)[:-1], *outer, columns)


@creation.said_by("dot", ("matmul", "multiply", "asarray"))
def _dot(a: Any, b: Any, out: Any = None) -> Any:
    """Of two vectors the inner product, of a number the multiples, else the product of matrices."""
    a, b = _with_axes(a), _with_axes(b)
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return _core.multiply(a, b, out)
    _check_aligned(a, b)
    if np.ndim(a) == np.ndim(b) == 1:
        return _core.dot(a, b, out)
    return (_core.matmul if np.ndim(b) <= 2 else _dot_of_stack)(a, b, out)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: _core.sum,
    np.mean: _core.mean,
    np.prod: _core.prod,
    np.max: _core.max,
    np.amax: _core.max,
    np.min: _core.min,
    np.amin: _core.min,
    np.argmax: _core.argmax,
    np.argmin: _core.argmin,
    np.clip: _clip,
    np.dot: _dot,
    np.linalg.norm: _norm,
    np.transpose: lambda a, axes=None: a.transpose(axes),
    np.matrix_transpose: lambda x, /: _core.matrix_transpose(x),
    np.reshape: lambda a, /, shape: a.reshape(shape),
    np.ravel: lambda a: a.ravel(),
    np.copy: lambda a: a.copy(),
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
    np.empty_like: creation.empty_like,
    np.zeros_like: creation.zeros_like,
    np.ones_like: creation.ones_like,
    np.full_like: creation.full_like,
}


# Types that have nothing of their own to say, for short.
_USUAL = frozenset({DeviceArray, np.ndarray, int, float, bool, type(None)})


def _refusal(name: str, reason: str) -> TypeError:
    return TypeError(
        f"numpy.{name}: {reason} a DeviceArray; copy it to the host first, with .to_host() or "
        "numpy.asarray(...), or use the functions of gpukern, which work on the device"
    )


def _is_foreign(kind: type, protocol: str) -> bool:
    """Whether a type has a protocol of its own, which may know what to do with a DeviceArray."""
    if kind in _USUAL:
        return False
    its = getattr(kind, protocol, None)
    known = (getattr(np.ndarray, protocol), getattr(DeviceArray, protocol))
    return its is not None and its not in known


@cache
def _signature(ours: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(ours)


def _run(name: str, ours: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    try:
        return ours(*args, **named)
    except TypeError:
        try:
            _signature(ours).bind(*args, **named)
        except TypeError as unknown:
            raise _refusal(name, f"with these arguments ({unknown}) does not take") from None
        raise


def array_ufunc(ufunc: np.ufunc, method: str, *inputs: Any, **named: Any) -> Any:
    """NumPy's ``ufunc`` on operands of which one or ``out`` is a DeviceArray: the result of ours.

    Raises TypeError where gpukern has no such operation, or one that takes other arguments.
    """
    out = named.pop("out", (None,))
    if any(_is_foreign(type(each), "__array_ufunc__") for each in (*inputs, *out)):
        return NotImplemented
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    ours = _UFUNCS.get(name)
    if ours is None:
        raise _refusal(name, "does not take")
    return _run(name, ours, inputs, {"out": out[0], **named})


def array_function(
    function: Callable[..., Any],
    types: tuple[type, ...],
    args: tuple[Any, ...],
    named: dict[str, Any],
) -> Any:
    """Another function of NumPy that was given a DeviceArray: the result of ours.

    Raises TypeError where gpukern has no such function, or one that takes other arguments.
    """
    if any(_is_foreign(kind, "__array_function__") for kind in types):
        return NotImplemented
    name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
    ours = _FUNCTIONS.get(function)
    if ours is None:
        raise _refusal(name, "does not take")
    operand = next((key for key in ("a", "x") if key in named and not args), None)
    if operand:
        args, named = (named[operand],), {k: v for k, v in named.items() if k != operand}
    return _run(name, ours, args, named)
