"""Columns with gaps between them, which are taken with what lies there: results are those of the
columns alone, whatever the gaps hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, Array, beside, is_float, limits, random

# The rows, and the columns' part of the last axis.
CASES = {
    "two of three": ((360_011, 3), slice(None, None, 2)),
    "two of four": ((270_000, 4), slice(None, None, 2)),
    "the others of four": ((270_001, 4), slice(1, None, 2)),
    "every third of seven": ((160_003, 7), slice(None, None, 3)),
    "of matrices": ((5, 54_321, 4), slice(1, None, 2)),
    "every second of many": ((777, 1_402), slice(None, None, 2)),
}
OPS = ["max", "min", "argmax", "argmin", "sum"]


def greatest(dtype: np.dtype[Any]) -> Any:
    """What no column may be given that it lies in the gap of."""
    return np.nan if is_float(dtype) else limits(dtype)[1]


def in_gaps(shape: tuple[int, ...], cut: slice, dtype: str) -> Array:
    """Values of the columns, and in all gaps what would win."""
    held = np.full(shape, greatest(DTYPES[dtype]), DTYPES[dtype])
    held[..., cut] = random(held[..., cut].shape, DTYPES[dtype], 5)
    return held


@pytest.mark.costly(3)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["uint8", "bool", "float16", "bfloat16", "int32"])
def test_gaps_are_none_of_the_columns(dtype, case):
    shape, cut = CASES[case]
    held = in_gaps(shape, cut, dtype)
    axis = len(shape) - 2
    for begin in (0, 1):  # on a vector, and between two
        lies = beside(held, begin)[..., cut]
        for op in OPS:
            if op == "sum" and is_float(DTYPES[dtype]):
                continue  # in the order of the columns alone
            got = np.asarray(getattr(gk, op)(lies, axis))
            oracle.assert_along(op, held[..., cut], axis, got)


@pytest.mark.parametrize("keepdims", [False, True])
def test_several_axes_and_out(keepdims):
    held = in_gaps((40, 3, 5_000, 4), slice(None, None, 2), "float16")
    view = held[..., ::2]
    want = np.max(view, (0, 2), keepdims=keepdims)
    out = gk.empty(want.shape, "float16")
    assert gk.max(beside(held, 1)[..., ::2], (0, 2), keepdims=keepdims, out=out) is out
    oracle.assert_same(np.asarray(out), want, "max")


def test_in_another_order_of_axes():
    held = in_gaps((90_001, 5, 4), slice(None, None, 3), "uint8")
    got = gk.argmax(beside(held, 0)[..., ::3].transpose(1, 2, 0), 2)
    oracle.assert_same(np.asarray(got), np.argmax(held[..., ::3], 0), "argmax")


def test_matrices_with_gaps_between_them():
    """Rows that are no run from matrix to matrix are taken as they lie."""
    held = in_gaps((6, 60_000, 6), slice(None, None, 2), "uint8")
    got = gk.argmax(beside(held, 0)[:, 7:, ::2], 1)
    oracle.assert_same(np.asarray(got), np.argmax(held[:, 7:, ::2], 1), "argmax")
