"""How far a right result may be from the exact one: the forward error bound of each operation.

Notation as in N. Higham, "Accuracy and Stability of Numerical Algorithms": ``u`` is the unit
roundoff, and k roundings after one another cost at most ``gamma(k, u) = k u / (1 - k u)``,
relative to the same expression with every term replaced by its absolute value.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.catalogue import dtype_name

Float64Array = npt.NDArray[np.float64]

# Bits of the significand, the implicit one included; and the smallest subnormal number.
SIGNIFICAND = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_SMALLEST = {
    "float16": 2.0**-24,
    "bfloat16": 2.0**-133,
    "float32": 2.0**-149,
    "float64": 2.0**-1074,
}


def is_float(dtype: npt.DTypeLike) -> bool:
    """Whether results of this dtype are rounded at all."""
    return dtype_name(dtype) in SIGNIFICAND


def accumulator(dtype: npt.DTypeLike) -> str:
    """The dtype that sums and products of ``dtype`` are carried in: float32 for the half types."""
    name = dtype_name(dtype)
    return "float32" if name in ("float16", "bfloat16") else name


def unit_roundoff(dtype: npt.DTypeLike) -> float:
    """The largest relative error of one rounding to nearest."""
    return 2.0 ** -SIGNIFICAND[dtype_name(dtype)]


def gamma(roundings: int, u: float) -> float:
    """The relative error that so many roundings can add up to, infinite if all of it."""
    product = roundings * u
    return product / (1 - product) if product < 1 else math.inf


def rounding(exact: Any, dtype: npt.DTypeLike) -> Any:
    """The error of rounding ``exact`` to ``dtype`` once, subnormal numbers included."""
    name = dtype_name(dtype)
    return unit_roundoff(name) * np.abs(exact) + _SMALLEST[name] / 2


def tree_depth(count: int) -> int:
    """The most additions that one element goes through in a reduction that is not serial.

    A thread takes some elements one after another, and a tree joins the threads: 8192 of them in
    Numba's reduction, which has the fewest, and more in the others, the longer the array is.
    """
    return max(math.isqrt(count), count // 8192) + 64


def sum_bound(
    absolute: Any,
    exact: Any,
    count: int,
    dtype: npt.DTypeLike,
    serial: bool = False,
    carried: str = "",
    products: int = 0,
) -> Any:
    """For a sum of ``count`` elements whose absolute values add up to ``absolute``.

    ``serial`` allows for any order, one addition after another, as with atomics; that is infinite
    beyond 2**24 elements in float32, and then only a sum of integers (see ``expected``) can judge.
    ``carried`` names the dtype of the accumulator where it is not the usual one; ``products`` is 1
    where the terms are products, which are rounded themselves. Of arrays it is elementwise.
    """
    carried = carried or accumulator(dtype)
    depth = max(count - 1, 0) if serial else min(tree_depth(count), max(count - 1, 0))
    error = gamma(depth + products, unit_roundoff(carried)) * absolute
    if carried != dtype_name(dtype):
        error = error + rounding(np.abs(exact) + error, dtype)
    # float64 has no wider oracle: what the oracle itself may be off by comes on top.
    return error + gamma(tree_depth(count), unit_roundoff("float64")) * absolute


def norm_bound(exact: Any, count: int, dtype: npt.DTypeLike) -> Any:
    """For the root of a sum of squares, which are all positive: half of their relative error."""
    carried = accumulator(dtype)
    depth = min(tree_depth(count), max(count - 1, 0)) + 1
    relative = gamma(depth, unit_roundoff(carried))
    # sqrt(1 - g) is a little further from 1 than sqrt(1 + g).
    error = (1 - math.sqrt(1 - relative) if relative < 1 else math.inf) * exact
    return error + rounding(np.abs(exact) + error, dtype) + rounding(exact, carried)


def matmul_bound(
    absolute: Float64Array, exact: Float64Array, inner: int, dtype: npt.DTypeLike
) -> Float64Array:
    """For a matrix product over ``inner`` terms in any order; ``absolute`` is |A| @ |B|."""
    carried = accumulator(dtype)
    error = gamma(inner, unit_roundoff(carried)) * absolute
    if carried != dtype_name(dtype):
        error += rounding(np.abs(exact) + error, dtype)
    error += gamma(inner, unit_roundoff("float64")) * absolute
    return error
