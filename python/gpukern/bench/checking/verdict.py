"""Whether a result is right: every element of it within its bound."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.bench.cases import pieces
from gpukern.bench.cases.answers import Answer, deviation
from gpukern.bench.cases.pieces import in_pieces

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Verdict:
    """``error`` is the largest absolute error, ``ulps`` the largest in units in the last place.

    ``share`` is how much of its bound the error uses up, at most; None where there is one right
    answer. ``detail`` says what is wrong, or is empty.
    """

    error: float
    detail: str = ""
    ulps: float = 0.0
    share: float | None = None

    @property
    def right(self) -> bool:
        """Whether the result is within its bound everywhere."""
        return not self.detail


class WrongResult(Exception):
    """A contender has been caught."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.detail)
        self.verdict = verdict


def mismatch(got: Array, expected: Answer) -> str:
    """What is wrong with the dtype and the shape of a result, if anything is."""
    nearest = expected.nearest
    if got.shape == nearest.shape and got.dtype == nearest.dtype:
        return ""
    return f"{_described(got)} in place of {_described(nearest)}"


def _described(array: Array) -> str:
    return f"{array.dtype} of shape {array.shape}"


def check(
    got: Array, expected: Answer, serial: bool = False, carried: str = "", figures: bool = True
) -> Verdict:
    """Whether a result is right.

    ``serial`` allows a sum for any order of its additions, ``carried`` for an accumulator of that
    dtype. Without ``figures`` the errors of what is right bit for bit are not worked out.
    """
    wrong = mismatch(got, expected)
    if wrong:
        return Verdict(math.nan, wrong)
    if not figures and same_values(got, expected.nearest):
        return Verdict(0.0)
    bound = expected.bound(serial, carried)
    found = _measured(got, expected, bound)
    if not found.count:
        return Verdict(found.error, "", found.ulps, found.share)
    return Verdict(found.error, _words(got, expected, bound, found), found.ulps, found.share)


def same_values(got: Array, nearest: Array) -> bool:
    """Whether all numbers are the same, which is nearly always seen by their bits."""

    def part(a: Array, b: Array) -> bool:
        # The bits first, since half types compare slowly.
        if np.array_equal(a.view(np.uint8), b.view(np.uint8)):
            return True
        with np.errstate(invalid="ignore"):
            return bool(np.all(a == b))

    return all(in_pieces(part, got, nearest))


def is_wrong(got: Array, expected: Answer, bound: Array | None) -> Any:
    """For each element whether it is out of its bound."""
    return _wrong(got, expected.exact, expected.nearest, bound)


def _wrong(got: Array, exact: Array, nearest: Array, bound: Array | None) -> Any:
    with np.errstate(invalid="ignore"):
        if bound is None:
            return got != nearest
        return ~((deviation(got, exact) <= bound) | (got == nearest))


@dataclass(frozen=True)
class _Found:
    """The largest errors, how many elements are wrong, and which is the first of them."""

    error: float
    ulps: float
    share: float | None
    count: int
    first: int


def _measured(got: Array, expected: Answer, bound: Array | None) -> _Found:
    def part(mine: Array, exact: Array, nearest: Array, *allowed: Array) -> tuple[float, ...]:
        within = allowed[0] if allowed else None
        difference = deviation(mine, exact)
        wrong = _wrong(mine, exact, nearest, within)
        share = 0.0
        if within is not None:
            with np.errstate(invalid="ignore", divide="ignore"):
                share = float(np.nanmax(np.append(difference / within, 0.0)))
        ulps = float(np.max(expected.ulps(difference, exact, typical)))
        counted = int(np.count_nonzero(wrong)), int(np.argmax(wrong))
        return float(np.max(difference)), ulps, share, *counted

    if not got.size:
        return _Found(0.0, 0.0, None, 0, 0)
    typical = expected.typical
    rest = [] if bound is None else [np.broadcast_to(bound, got.shape)]
    found = np.array(in_pieces(part, got, expected.exact, expected.nearest, *rest))
    error, ulps, share = (float(np.max(found[:, i])) for i in range(3))
    at = int(np.argmax(found[:, 3] > 0))
    known = bound is not None and math.isfinite(share)
    first = at * pieces.PIECE + int(found[at, 4])
    return _Found(error, ulps, share if known else None, int(np.sum(found[:, 3])), first)


def _words(got: Array, expected: Answer, bound: Array | None, found: _Found) -> str:
    """What is wrong where, and by how much."""
    at = np.unravel_index(found.first, got.shape)
    where = f" at [{', '.join(str(int(i)) for i in at)}]" if got.ndim else ""
    some = f"{found.count} of {got.size} elements, the first" if got.ndim else "the result"
    words = f"{some}{where}: {got[at]} in place of {expected.nearest[at]}"
    if bound is None:
        return words
    allowed = float(np.broadcast_to(bound, got.shape)[at])
    off = float(deviation(got[at], expected.exact[at]))
    return (
        f"{words} within {allowed:.2g}, off by {off / allowed if allowed else math.inf:.2g} of it"
    )
