"""Whether a result is right: every element of it within its bound."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.cases.expected import Expected, deviation
from gpukern.bench.cases.pieces import in_pieces

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Verdict:
    """``error`` is the largest absolute error, ``ulps`` the largest in units in the last place.

    ``detail`` says what is wrong, or is empty.
    """

    error: float
    detail: str = ""
    ulps: float = 0.0

    @property
    def right(self) -> bool:
        """Whether the result is within its bound everywhere."""
        return not self.detail


def check(got: Any, expected: Expected, serial: bool = False, carried: str = "") -> Verdict:
    """Whether a result is right.

    ``serial`` allows a sum for any order of its additions, ``carried`` for an accumulator of that
    dtype.
    """
    array = np.asarray(got)
    nearest = expected.nearest
    if array.shape != nearest.shape or array.dtype != nearest.dtype:
        wanted = f"{nearest.dtype} of shape {nearest.shape}"
        return Verdict(math.nan, f"{array.dtype} of shape {array.shape} in place of {wanted}")
    if _equal(array, nearest):
        error, ulps = expected.nearest_distance
        return Verdict(error, ulps=ulps)
    bound = expected.serial_bound if serial else expected.bound
    if carried and expected.bound_in:
        bound = expected.bound_in(carried)
    return _measured(array, expected, bound)


def _equal(got: Array, nearest: Array) -> bool:
    def part(a: Array, b: Array) -> bool:
        # The bits first, since half types compare slowly.
        if np.array_equal(a.view(np.uint8), b.view(np.uint8)):
            return True
        with np.errstate(invalid="ignore"):
            return bool(np.all(a == b))

    return all(in_pieces(part, got, nearest))


def is_wrong(got: Array, expected: Expected, bound: Array | None) -> Any:
    """For each element whether it is out of its bound."""
    if bound is None:
        with np.errstate(invalid="ignore"):
            return got != expected.nearest
    return ~(deviation(got, expected.exact) <= bound)


def _measured(got: Array, expected: Expected, bound: Array | None) -> Verdict:
    wrong = np.asarray(is_wrong(got, expected, bound))
    error, ulps = expected.distance(got)
    count = int(np.count_nonzero(wrong))
    if not count:
        return Verdict(error, ulps=ulps)
    at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    where = f" at [{', '.join(str(int(i)) for i in at)}]" if wrong.ndim else ""
    allowed = (
        "" if bound is None else f" within {float(np.broadcast_to(bound, wrong.shape)[at]):.2g}"
    )
    share = f"{count} of {wrong.size} elements, the first" if wrong.ndim else "the result"
    return Verdict(
        error, f"{share}{where}: {got[at]} in place of {expected.nearest[at]}{allowed}", ulps
    )
