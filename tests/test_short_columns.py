"""Columns of few rows, which threads take side by side where neighbours are vectors: the results of
columns that are taken one by one, wherever the elements and the results lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, REDUCTIONS, WAYS_TO_REDUCE, Array, beside, random, with_special

# As many columns as threads take by vectors of four, and few rows. What is cut out has whole
# vectors in each of its runs, behind others.
WIDE = {
    "rows": ((3, 200_004), 0, ...),
    "matrices": ((61, 5, 3400), 1, ...),
    "runs of matrices": (
        (2, 61, 7, 908),
        0,
        (slice(None), slice(None), slice(1, 6), slice(4, 904)),
    ),
}
MANY_ROWS = (17, 393_220)
# Fewer columns, and more rows than a thread takes of them alone: two matrices to a block.
HALF_BLOCKS = (603, 17, 504)


def values_of(shape: tuple[int, ...], dtype: str) -> Array:
    """Random ones; where there are such, NaN, infinities, zeros of both signs and subnormals."""
    values = random(shape, DTYPES[dtype], 11)
    return with_special(values, 7, 900)


@pytest.mark.costly(2)
@pytest.mark.parametrize("case", WIDE)
@pytest.mark.parametrize("op", WAYS_TO_REDUCE)
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int32", "float64", "bool"])
def test_by_vectors_and_by_elements(op, dtype, case):
    """A copy that begins one element later lies between vectors, and has the same results."""
    check_both(op, dtype, *WIDE[case])


@pytest.mark.parametrize("op", ["sum", "argmax"])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_of_more_rows_than_are_loaded_at_once(op, dtype):
    check_both(op, dtype, MANY_ROWS, 0, ...)


@pytest.mark.parametrize("op", REDUCTIONS)
def test_of_matrices_that_are_half_as_wide_as_a_block(op):
    """Nothing is joined: each thread has columns of its own, from the first row to the last."""
    check_both(op, "float16", HALF_BLOCKS, 1, ...)


def check_both(op: str, dtype: str, shape: tuple[int, ...], axis: int, cut: Any) -> None:
    held = values_of(shape, dtype)
    want = np.asarray(getattr(gk, op)(beside(held, 1)[cut], axis))
    got = np.asarray(getattr(gk, op)(beside(held, 0)[cut], axis))
    oracle.assert_same(got, want, "by vectors")
    oracle.assert_along(op, held[cut], axis, got)


@pytest.mark.parametrize("op", ["sum", "max", "argmax"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
@pytest.mark.parametrize("begin", [0, 1, 2, 4])
def test_results_anywhere(op, dtype, begin):
    """And nothing beside them is written: they may be no vectors where the elements are."""
    a = gk.to_device(values_of((2, 200_004), dtype))
    want = np.asarray(getattr(gk, op)(a, 0))
    oracle.assert_written_alone(lambda out: getattr(gk, op)(a, 0, out=out), want, begin)


@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8"])
def test_short_columns_of_a_turned_array(dtype):
    """Kept axes in the order of memory, whatever the lengths of their runs."""
    held = values_of((40, 37, 9, 4, 13), dtype)
    turned = held.transpose(0, 4, 2, 3, 1)
    for op in ("mean", "max", "argmin"):
        want = np.asarray(getattr(gk, op)(gk.to_device(np.ascontiguousarray(turned)), 2))
        got = getattr(gk, op)(gk.to_device(held).transpose(0, 4, 2, 3, 1), 2)
        oracle.assert_same(np.asarray(got), want, op)


@pytest.mark.parametrize("op", ["mean", "max"])
def test_narrow_runs_of_a_large_turned_array(op):
    """As above, of what is in no cache: also where a row is shorter than a block."""
    turned = gk.to_device(values_of((60, 300, 9, 3, 13), "float64")).transpose(0, 4, 2, 3, 1)
    got, want = (np.asarray(getattr(gk, op)(a, 2)) for a in (turned, turned.copy()))
    oracle.assert_same(got, want, op)
