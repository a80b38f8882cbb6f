"""The right answer of a case, and how far from it a result may be.

Each contender answers twice. The `random` inputs show how accurate it is. The `exact` inputs are
whole numbers chosen so that every order of summation in the dtype's accumulator gives the same
bits: a skipped tail, a lower precision (tf32 keeps 11 bits, these have 12) or a result kept from an
earlier call is then simply a different number, where a bound for random inputs would have to let
it pass.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.cases import bounds
from gpukern.bench.cases.pieces import in_pieces
from gpukern.bench.model.dtypes import widened
from gpukern.catalogue import dtype_name

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Expected:
    """The right answer, and how far from it a result may be.

    ``bound`` None asks for ``nearest`` itself, bit for bit. ``bound_in`` gives the bound of a sum
    that is carried in another dtype than the usual one.
    """

    exact: Array
    nearest: Array
    bound: Array | None
    serial_bound: Array | None = None
    bound_in: Callable[[str], Array] | None = None

    @cached_property
    def typical(self) -> float:
        """The root mean square of the result."""
        if not self.exact.size:
            return 0.0
        squares = in_pieces(lambda x: np.sum(np.square(x, dtype=np.float64)), self.exact)
        return math.sqrt(float(np.sum(squares)) / self.exact.size)

    def _ulp(self, exact: Array, typical: float) -> Array:
        """One unit in the last place of some elements.

        Where cancellation has left an element smaller than is typical of all, it is the unit of
        that: how accurate a sum is depends on its terms, not on what is left of them.
        """
        _, exponent = np.frexp(np.maximum(np.abs(exact), typical))
        bits = bounds.SIGNIFICAND[dtype_name(self.nearest.dtype)]
        return np.asarray(np.ldexp(1.0, exponent - bits))

    def distance(self, got: Array) -> tuple[float, float]:
        """The largest error of a result, absolute and in ulps."""
        if got is self.exact or not got.size:
            return 0.0, 0.0
        rounded = bounds.is_float(self.nearest.dtype)
        typical = self.typical

        def part(found: Array, exact: Array) -> tuple[float, float]:
            difference = deviation(found, exact)
            with np.errstate(invalid="ignore"):
                ulps = np.max(difference / self._ulp(exact, typical)) if rounded else 0.0
            return float(np.max(difference)), float(ulps)

        error, ulps = np.max(in_pieces(part, got, self.exact), axis=0)
        return float(error), float(ulps)

    @cached_property
    def nearest_distance(self) -> tuple[float, float]:
        """The same of the correctly rounded result, which most contenders return."""
        return self.distance(self.nearest)


@dataclass(frozen=True)
class Trial:
    """Inputs with their right answer."""

    name: str
    inputs: tuple[Array, ...]
    expected: Expected


def deviation(got: Array, exact: Array) -> Array:
    """How far each element is from the right one."""
    # NaN and infinity are legitimate here: they are what a wrong result may hold.
    with np.errstate(invalid="ignore", over="ignore"):
        difference: Array = np.abs(widened(got) - exact.astype(np.float64, copy=False))
        return difference
