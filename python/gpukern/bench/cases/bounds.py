"""How far a right result may be from the exact one: the error bound of each operation.

``u`` is the unit roundoff. In the worst case k roundings after one another cost
``gamma(k, u) = k u / (1 - k u)``, relative to the same expression with every term replaced by its
absolute value (N. Higham, "Accuracy and Stability of Numerical Algorithms"). For large arrays that
says nothing: the bound is larger than the result. So the smaller of it and a probabilistic one is
taken. Where the roundings are independent and of mean zero, the error of a sum is at most
``c u sqrt(sum of the squares of all partial sums)``, but with a probability of
``2 exp(-c**2 / 2)`` (N. Higham and T. Mary, "A new approach to probabilistic rounding error
analysis", 2019; I. Ipsen and H. Zhou, "Probabilistic error analysis for inner products", 2020;
E. Hallman and I. Ipsen, "Precision-aware deterministic and probabilistic error bounds for floating
point summation", 2023). With ``c = 8`` that is one in 4e13.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.catalogue import dtype_name

# Bits of the significand, the implicit one included; and the smallest subnormal number.
SIGNIFICAND = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_SMALLEST = {
    "float16": 2.0**-24,
    "bfloat16": 2.0**-133,
    "float32": 2.0**-149,
    "float64": 2.0**-1074,
}
_CERTAINTY = 8
# The fewest elements in a block whose sum is added to one total, block by block: a thread has one.
_BLOCK = 256
# Where so many additions are this times 1 / u, a term may be lost beside the sum of the others.
_STAGNATION = 1 / 8


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


def gamma(roundings: float, u: float) -> float:
    """The relative error that so many roundings can add up to, infinite if all of it."""
    product = roundings * u
    return product / (1 - product) if product < 1 else math.inf


def probable(roundings: float, u: float) -> float:
    """The same of roundings that are independent, by Higham and Mary: their root counts."""
    worst = gamma(roundings, u)
    likely = _CERTAINTY * math.sqrt(roundings) * u + gamma(roundings * u, u)
    return min(worst, math.expm1(likely) if likely < 1 else math.inf)


def rounding(exact: Any, dtype: npt.DTypeLike) -> Any:
    """The error of rounding ``exact`` to ``dtype`` once, subnormal numbers included."""
    name = dtype_name(dtype)
    return unit_roundoff(name) * np.abs(exact) + _SMALLEST[name] / 2


def chain(count: int) -> int:
    """The most elements that one thread adds one after another, before a tree joins the threads.

    There are 8192 threads in Numba's reduction, which has the fewest, and no more than the root of
    the elements in others.
    """
    return max(math.isqrt(count), count // 8192)


@dataclass(frozen=True)
class Terms:
    """What a sum's bound is made of: the sum of its terms, of their absolute values, of squares.

    Of arrays they are elementwise; ``count`` terms make up one element.
    """

    exact: Any
    absolute: Any
    squares: Any
    count: int


def _in_blocks(terms: Terms, u: float) -> Any:
    """Threads add chains, a tree joins them to blocks, and blocks are added one after another.

    A partial sum of k terms is about k times a term at most, in any order, sorted ones too. The
    squares of the tree's are n**2 (1 + 1/2 + 1/4 ...), those of n / L chains n L**2 / 3, times a
    term's square. Sums of blocks arrive in an order that has nothing to do with their values.
    """
    count, length = terms.count, chain(terms.count)
    if length * u > _STAGNATION:
        return np.full(np.shape(terms.absolute), np.inf)
    joined = np.square(terms.absolute) * (2 + length**2 / (3 * max(count, 1)))
    return _CERTAINTY * u * np.sqrt(joined + _wandering(terms, -(-count // _BLOCK)))


def _wandering(terms: Terms, parts: int) -> Any:
    """The squares of the partial sums where so many parts are added one by one in random order.

    They grow evenly, and wander: that of k parts is (k / m)**2 of the sum's, and k / m of the sum
    of squares.
    """
    return terms.squares * parts / 2 + np.square(terms.exact) * parts / 3


def _one_by_one(terms: Terms, u: float) -> Any:
    """One addition after another in random order."""
    if terms.count * u > _STAGNATION:
        return np.full(np.shape(terms.absolute), np.inf)
    return _CERTAINTY * u * np.sqrt(_wandering(terms, terms.count))


def sum_bound(
    terms: Terms, dtype: npt.DTypeLike, serial: bool = False, carried: str = "", products: int = 0
) -> Any:
    """For a sum in blocks, and one by one as far as that says something.

    ``serial`` tells that the contender adds one by one: beyond 2**21 elements in float32 terms may
    be lost then, and nothing is certain but that those of one sign do not add up to 0. ``carried``
    names the dtype of the accumulator where it is not the usual one; ``products`` is 1 where the
    terms are products, which are rounded themselves.
    """
    carried = carried or accumulator(dtype)
    u = unit_roundoff(carried)
    blocks, serially = _in_blocks(terms, u), _one_by_one(terms, u)
    known = serial or carried != accumulator(dtype) or terms.count * u <= _STAGNATION
    likely = np.maximum(blocks, serially) if known else blocks
    error = np.minimum(likely, gamma(max(terms.count - 1, 0), u) * terms.absolute)
    error = error + products * u * terms.absolute
    if carried != dtype_name(dtype):
        error = error + rounding(np.abs(terms.exact) + error, dtype)
    error = np.asarray(error + rounding(terms.exact, dtype), np.float64)
    # Of terms of one sign 0 is no sum, however little is certain.
    one_sign = np.abs(terms.exact) > terms.absolute / 2
    return np.where(one_sign, np.minimum(error, 0.999 * np.abs(terms.exact)), error)


def norm_bound(terms: Terms, dtype: npt.DTypeLike, carried: str = "") -> Any:
    """For the root of a sum of squares, which are all positive: half of their relative error."""
    inner = carried or accumulator(dtype)
    total = np.asarray(terms.exact, np.float64)
    error = sum_bound(terms, inner, carried=inner, products=1)
    root = np.sqrt(total)
    error = root - np.sqrt(np.maximum(total - error, 0))
    return error + 2 * rounding(root, inner) + rounding(root + error, dtype)


def root_bound(exact: Any, dtype: npt.DTypeLike) -> Any:
    """For a root of what is exact: twice the error of the nearest."""
    carried = accumulator(dtype)
    error = 2 * rounding(exact, carried)
    return error if carried == dtype_name(dtype) else error + rounding(exact, dtype)


def matmul_bound(absolute: Any, exact: Any, inner: int, dtype: npt.DTypeLike) -> Any:
    """For a matrix product over ``inner`` terms in any order; ``absolute`` is |A| @ |B|."""
    carried = accumulator(dtype)
    error = probable(inner, unit_roundoff(carried)) * absolute
    if carried != dtype_name(dtype):
        error = error + rounding(np.abs(exact) + error, dtype)
    return error + rounding(exact, dtype)
