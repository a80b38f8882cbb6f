"""A product of float64 matrices that is more accurate than float64: an oracle for it."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_SLICES = 3


def wide_product(a: Array, b: Array) -> Array:
    """``a @ b`` in long double, right to about 60 bits of what the terms' largest have.

    Each matrix is cut into slices of so few bits that float64 products of them are exact in any
    order (K. Ozaki et al., "Error-free transformations of matrix multiplication by using fast
    routines of matrix multiplication and its applications", 2012).
    """
    bits = (52 - math.ceil(math.log2(max(a.shape[1], 2)))) // 2
    left, right = _slices(a, 1, bits), _slices(b, 0, bits)
    total = np.zeros((a.shape[0], b.shape[1]), np.longdouble)
    # The small ones first.
    for order in range(_SLICES + 1, -1, -1):
        for i in range(min(order + 1, _SLICES)):
            if order - i < _SLICES:
                total += left[i] @ right[order - i]
    return total


def _slices(matrix: Array, axis: int, bits: int) -> list[Array]:
    """Matrices that add up to this one, each of so many bits of its lines' largest elements."""
    rest, slices = matrix.copy(), []
    _, exponents = np.frexp(np.max(np.abs(matrix), axis=axis, keepdims=True))
    for number in range(_SLICES):
        unit = np.ldexp(1.0, exponents - bits * (number + 1))
        # The last takes all that is left.
        part = np.rint(rest / unit) * unit if number < _SLICES - 1 else rest.copy()
        slices.append(part)
        rest -= part
    return slices
