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
# So few rows that threads have four columns of words each, the last ones less.
FEWEST_ROWS = {"rows": ((2, 200_003), 0), "runs of matrices": ((5, 2, 43_007), 1)}
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


@pytest.mark.parametrize("case", FEWEST_ROWS)
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint32"])
def test_of_two_rows_of_words(dtype, case):
    """Of two elements there is one order; also with states that leave no registers for more."""
    shape, axis = FEWEST_ROWS[case]
    held = random(shape, DTYPES[dtype], 11)
    wide = held.astype("float64" if dtype == "float32" else "int64")
    there, which = gk.to_device(held), f"{dtype} {shape}"
    for op, given, want in (
        ("sum", {}, held.sum(axis)),
        ("sum", {"dtype": "float64"}, wide.sum(axis).astype("float64")),
        ("mean", {}, wide.mean(axis).astype("float32" if dtype == "float32" else "float64")),
        ("prod", {}, held.prod(axis)),
        ("max", {}, held.max(axis)),
        ("min", {}, held.min(axis)),
        ("argmax", {}, held.argmax(axis)),
    ):
        got = getattr(gk, op)(there, axis, **given).to_host()
        oracle.assert_same(got, want.astype(got.dtype), f"{op} of {which}")
    norm = gk.norm(there, axis).to_host()
    np.testing.assert_allclose(norm, np.sqrt((wide.astype("float64") ** 2).sum(axis)), 1e-6)


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


# Columns of bytes and halves that begin anywhere, as many as threads take several of by the aligned
# vectors between which they lie; in pieces along the axis `by` each is taken by itself. The last
# vector of a row goes on in the next one, in few warps, or in all.
BETWEEN: dict[str, tuple[tuple[int, ...], Any, Any, int]] = {
    "rows": ((3, 1_100_003), 0, ..., 1),
    "of two rows, cut": ((2, 1_100_016), 0, (slice(None), slice(3, -6)), 1),
    "matrices": ((1409, 3, 777), 1, ..., 0),
    "of short rows": ((65_543, 2, 17), 1, ..., 0),
    "of rows shorter than a thread's": ((160_003, 2, 7), 1, ..., 0),
    "of many rows": ((2053, 7, 519), 1, ..., 0),
    "upside down": ((1031, 3, 1021), 1, (slice(None, None, -1), slice(None, None, -1)), 0),
    "with gaps": ((53, 40, 4, 530), 2, (slice(None), slice(1, 40), slice(0, 3), slice(1, 527)), 0),
}
PIECES = 40
BYTES_AND_HALVES = ("uint8", "float16", "bool", "bfloat16", "int16", "int8")


@pytest.mark.costly(3)
@pytest.mark.parametrize("case", BETWEEN)
@pytest.mark.parametrize("op", [*WAYS_TO_REDUCE, "norm"])
@pytest.mark.parametrize("dtype", BYTES_AND_HALVES[:2])
def test_between_vectors(op, dtype, case):
    check_pieces(op, dtype, *BETWEEN[case])


@pytest.mark.parametrize("op", ["mean", "max", "argmin"])
@pytest.mark.parametrize("dtype", BYTES_AND_HALVES[2:])
def test_between_vectors_of_other_dtypes(op, dtype):
    check_pieces(op, dtype, *BETWEEN["matrices"])


@pytest.mark.parametrize(("dtype", "result"), [("float16", "float32"), ("uint8", "float64")])
def test_results_of_other_dtypes_of_columns_between_vectors(dtype, result):
    check_pieces("sum", dtype, *BETWEEN["matrices"], given={"dtype": result})


@pytest.mark.parametrize("shape", [(3, 700, 2, 1511), (2, 2, 1_100_003)])
def test_between_vectors_along_two_axes(shape):
    check_pieces("max", "float16", shape, (0, -2), ..., 1 if len(shape) == 4 else 2)


@pytest.mark.parametrize("op", ["sum", "max", "argmax"])
@pytest.mark.parametrize("begin", [0, 1, 4])
def test_results_anywhere_of_columns_between_vectors(op, begin):
    a = beside(values_of((2, 1_100_003), "float16"), 1)
    want = np.asarray(getattr(gk, op)(a, 0))
    oracle.assert_written_alone(lambda out: getattr(gk, op)(a, 0, out=out), want, begin)


@pytest.mark.parametrize(
    ("shape", "axis", "by"), [((2, 4_300_003), 0, 1), ((16_411, 2, 257), 1, 0)]
)
def test_two_vectors_of_a_thread(shape, axis, by):
    """Of so many columns that each thread has several, with results that are wider."""
    check_pieces("argmax", "float16", shape, axis, ..., by)


def check_pieces(
    op: str, dtype: str, shape: tuple[int, ...], axis: Any, cut: Any, by: int, given: Any = None
) -> None:
    """At once, at every place of a word, and in pieces that are too few for that."""
    held, given = values_of(shape, dtype), given or {}
    pieces = np.array_split(held[cut], PIECES, axis=by)
    found = [np.asarray(getattr(gk, op)(gk.to_device(piece), axis, **given)) for piece in pieces]
    along = by - sum(a < by for a in np.atleast_1d(axis) % held.ndim)
    want = np.concatenate(found, axis=along)
    for begin in (0, 1, 3):
        got = np.asarray(getattr(gk, op)(beside(held, begin)[cut], axis, **given))
        oracle.assert_same(got, want, f"{op} of {dtype}, {begin} behind a vector")
    if isinstance(axis, int) and not given and dtype != "bfloat16":  # NumPy warns of its NaN
        oracle.assert_along(op, held[cut], axis, want)
