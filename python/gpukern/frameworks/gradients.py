"""How built-in operations are differentiated.

Each is called with the framework's functions (``torch`` or ``jax.numpy``, as ``xp``), the gradient
of the result and the arguments.
"""

from collections.abc import Callable, Mapping
from typing import Any


def _abs(xp: Any, g: Any, a: Any) -> Any:
    return g * xp.sign(a)


def _add(xp: Any, g: Any, a: Any, b: Any) -> Any:
    return g, g


def _divide(xp: Any, g: Any, a: Any, b: Any) -> Any:
    return g / b, -g * a / (b * b)


def _exp(xp: Any, g: Any, a: Any) -> Any:
    return g * xp.exp(a)


def _chosen(xp: Any, g: Any, of_a: Any, same: Any) -> Any:
    """Of a choice of a or b; where both are the same, half of it is for each."""
    first = xp.where(of_a, g, xp.where(same, g * 0.5, xp.zeros_like(g)))
    return first, g - first


def _maximum(xp: Any, g: Any, a: Any, b: Any) -> Any:
    return _chosen(xp, g, a > b, a == b)


def _minimum(xp: Any, g: Any, a: Any, b: Any) -> Any:
    return _chosen(xp, g, a < b, a == b)


def _multiply(xp: Any, g: Any, a: Any, b: Any) -> Any:
    return g * b, g * a


def _negative(xp: Any, g: Any, a: Any) -> Any:
    return -g


def _scale_add(xp: Any, g: Any, a: Any, x: Any, y: Any) -> Any:
    return g * x, g * a, g


def _sqrt(xp: Any, g: Any, a: Any) -> Any:
    return g * 0.5 / xp.sqrt(a)


def _subtract(xp: Any, g: Any, a: Any, b: Any) -> Any:
    return g, -g


def _matmul(xp: Any, g: Any, a: Any, b: Any) -> Any:
    row, column = a.ndim == 1, b.ndim == 1
    a = a[None, :] if row else a
    b = b[:, None] if column else b
    g = g[..., None, :] if row and not column else g
    g = g[..., :, None] if column and not row else g
    g = g[..., None, None] if row and column else g
    of_a = xp.matmul(g, xp.swapaxes(b, -1, -2))
    of_b = xp.matmul(xp.swapaxes(a, -1, -2), g)
    return of_a, of_b[..., 0] if column else of_b


def _matrix_transpose(xp: Any, g: Any, a: Any) -> Any:
    return xp.swapaxes(g, -1, -2)


BACKWARD: Mapping[str, Callable[..., Any]] = {
    "abs": _abs,
    "add": _add,
    "divide": _divide,
    "dot": _multiply,
    "exp": _exp,
    "matmul": _matmul,
    "matrix_transpose": _matrix_transpose,
    "maximum": _maximum,
    "minimum": _minimum,
    "multiply": _multiply,
    "negative": _negative,
    "scale_add": _scale_add,
    "sqrt": _sqrt,
    "subtract": _subtract,
}


def of_clip(low: float | None, high: float | None) -> Callable[..., Any]:
    """Of numbers that are kept within bounds."""

    def backward(xp: Any, g: Any, a: Any) -> Any:
        nothing = xp.zeros_like(g)
        g = g if low is None else xp.where(a >= low, g, nothing)
        return g if high is None else xp.where(a <= high, g, nothing)

    return backward


def of_sum(axes: tuple[int, ...], keepdims: bool, mean: bool) -> Callable[..., Any]:
    """Of a sum over axes, or of their mean."""

    def backward(xp: Any, g: Any, a: Any) -> Any:
        kept = {axis % a.ndim for axis in axes} if axes else set(range(a.ndim))
        if not keepdims:
            g = g.reshape([1 if axis in kept else a.shape[axis] for axis in range(a.ndim)])
        if mean:
            for axis in kept:
                g = g / a.shape[axis]
        return xp.broadcast_to(g, a.shape)

    return backward


def of_transpose(axes: tuple[int, ...] | None) -> Callable[..., Any]:
    """Of an exchange of axes."""

    def backward(xp: Any, g: Any, a: Any) -> Any:
        order = axes or tuple(reversed(range(a.ndim)))
        places = [axis % a.ndim for axis in order]
        back = sorted(range(a.ndim), key=places.__getitem__)
        return xp.permute_dims(g, back) if hasattr(xp, "permute_dims") else xp.permute(g, back)

    return backward
