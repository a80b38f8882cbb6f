"""Sums of floats of arrays whose axes are turned in memory: they have the bits of a contiguous
array, in whatever order kernels come by the elements."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gpukern as gk
from arrays import DTYPES, ran, random, same_bits

# Shapes of more than a megabyte whose axes are turned. Rows by tiles or side by side: long and
# short ones, a single one and many, of one segment, of some and of more than a warp has lanes; axes
# behind the nearest one of few elements and of many. Columns that are runs then: of vectors and
# not, few and many, with as many rows as a vector has elements and with more.
TURNED_SUMS = (
    ((3, 90, 1231), (0, 1, 2), "float32"),
    ((45, 7, 2, 613), (0, 1, 2, 3), "float16"),
    ((9001, 2, 16), (0, 1, 2), "float32"),
    ((17_003, 2, 16), (0, 1, 2), "float16"),
    ((37, 70, 131), (1, 2), "float32"),
    ((9, 33001, 2), (1, 2), "bfloat16"),
    ((1451, 3, 700), (1, 2), "float32"),
    ((41_000, 5, 67), (1, 2), "float16"),
    ((12_000, 9, 31), (1, 2), "bfloat16"),
    ((19, 70, 131), (0, 2), "float64"),
    ((700, 2101), (1,), "float32"),
    ((5, 130_001), (1,), "float32"),
    ((5, 600_001), (1,), "float16"),
    ((21, 70_003), (1,), "float16"),
    ((123, 3001), (1,), "float64"),
    ((20_003, 29), (1,), "float64"),
    ((9001, 150), (1,), "bfloat16"),
    ((2001, 531), (0,), "float32"),
    ((901, 700), (0,), "float64"),
    ((2003, 531), (0,), "float16"),
    ((4, 700, 513), (1,), "bfloat16"),
    ((60_001, 12), (0,), "float32"),
    ((120_001, 6), (0,), "float64"),
    ((70, 9001), (0,), "float32"),
)


@pytest.mark.costly(3)
@pytest.mark.parametrize(("shape", "axes", "dtype"), TURNED_SUMS)
@pytest.mark.parametrize("op", ["sum", "mean"])
def test_sums_of_turned_axes(shape, axes, dtype, op):
    """In any order of the axes in memory they have the bits of a contiguous array."""
    a = random(shape, DTYPES[dtype], 5)
    want = getattr(gk, op)(gk.to_device(a), axes).to_host()
    for order in list(itertools.permutations(range(len(shape))))[1:]:
        there = gk.to_device(np.ascontiguousarray(a.transpose(order)))
        turned = there.transpose(tuple(int(i) for i in np.argsort(order)))
        same_bits(getattr(gk, op)(turned, axes).to_host(), want, f"{op} {shape} {axes} {order}")


# How arrays are held, the order of their axes, and those that are reduced: of columns whose
# neighbours are near one another, or whose next rows are, though an axis lies out of its order.
NEAR_COLUMNS = (
    ((30, 100, 2, 100), (0, 3, 2, 1), (0, 1), "float64"),
    ((100, 200, 2, 16), (2, 1, 3, 0), (1, 2), "float64"),
    ((8, 200, 64, 16), (2, 1, 0, 3), (1, 2), "float32"),
)


@pytest.mark.parametrize(("held", "order", "axes", "dtype"), NEAR_COLUMNS)
def test_columns_whose_rows_lie_near(held, order, axes, dtype):
    a = random(held, DTYPES[dtype], 9)
    there = gk.to_device(a).transpose(order)
    want = gk.sum(np.ascontiguousarray(a.transpose(order)), axes)
    got, variants = ran(lambda: gk.sum(there, axes))
    assert len(variants) == 1, "nothing is put in order first"
    same_bits(got.to_host(), want, f"{held} {order} {axes}")


# Columns of few rows of which neighbours in the order of the results lie far apart, as they do in
# memory: along one axis that is reduced and along two, which come in an order of their own.
FAR_COLUMNS = (
    ((16, 6, 155, 345), (0,), (3, 1, 0, 2), "bfloat16"),
    ((64, 128, 600), (0,), (2, 0, 1), "float32"),
    ((3, 7, 90, 12, 219), (0,), (4, 1, 3, 0, 2), "float16"),
    ((5, 8, 17, 800, 9), (0, 1), (3, 1, 4, 0, 2), "float16"),
    ((2, 14, 841, 211), (0, 1), (1, 3, 0, 2), "float16"),
    ((8, 2, 9, 32, 1000), (0, 1), (0, 1, 4, 3, 2), "float32"),
    ((3, 6, 16, 9001), (0, 1), (1, 3, 0, 2), "float64"),
)


@pytest.mark.parametrize(("shape", "axes", "lies", "dtype"), FAR_COLUMNS)
@pytest.mark.parametrize("op", ["sum", "prod"])
def test_columns_of_few_rows_that_lie_far_apart(shape, axes, lies, dtype, op):
    a = random(shape, DTYPES[dtype], 13)
    want = getattr(gk, op)(gk.to_device(a), axes).to_host()
    there = gk.to_device(np.ascontiguousarray(a.transpose(lies)))
    got = getattr(gk, op)(there.transpose(tuple(int(i) for i in np.argsort(lies))), axes)
    same_bits(got.to_host(), want, f"{op} {shape} {axes} {lies}")


# Columns that are runs. Those that are fetched for a thread each or for several, in one piece and
# in some, also where a block has twice as many; and those along which threads load, with more
# loads than are under way at a time and with fewer; of one segment and of several, of which a
# block has one, or all of some columns, of a column in one turn, and in two and joined at two
# levels; from a vector on and not. And so few that they are narrow: of halves an odd number, which
# come by vectors, and an even one, and of floats. Columns in the array, the first one and how many,
# and the rows from one on.
ALONG = (
    ((52_000, 64), (0, 52_000), (0, 64), "float32"),
    ((53_001, 65), (1, 53_000), (1, 62), "float32"),
    ((20_002, 400), (0, 20_001), (3, 391), "float16"),
    ((30_001, 293), (0, 30_000), (1, 292), "bfloat16"),
    ((17_000, 66), (0, 17_000), (0, 66), "float32"),
    ((17_000, 67), (1, 16_998), (0, 67), "float64"),
    ((3000, 1024), (0, 3000), (0, 1024), "float32"),
    ((2999, 1030), (1, 2990), (5, 1025), "float32"),
    ((4097, 700), (0, 4097), (2, 697), "float16"),
    ((511, 4099), (0, 511), (0, 4099), "bfloat16"),
    ((40, 50_003), (0, 40), (1, 50_002), "float32"),
    ((9, 70_001), (0, 9), (0, 70_001), "float64"),
    ((700, 1300), (0, 700), (7, 1290), "float64"),
    ((90_001, 131), (0, 90_001), (0, 131), "float16"),
    ((25_301, 1003), (1, 25_300), (2, 1001), "bfloat16"),
    ((67, 9140), (1, 66), (3, 9136), "float32"),
    ((174, 24_643), (0, 174), (0, 24_643), "float16"),
    ((134, 37_004), (1, 133), (1, 37_001), "bfloat16"),
    ((35, 25_073), (1, 33), (1, 25_072), "float32"),
    ((2, 70_001), (0, 2), (1, 69_999), "float64"),
    ((3, 600_007), (1, 2), (0, 600_007), "float64"),
    ((51, 22_017), (1, 50), (1, 22_015), "float16"),
    ((13, 300_001), (0, 13), (0, 300_001), "bfloat16"),
    ((63, 40_003), (0, 63), (3, 40_000), "float32"),
    ((5, 100_003), (1, 3), (2, 100_001), "float16"),
)


@pytest.mark.costly(2)
@pytest.mark.parametrize(("held", "columns", "rows", "dtype"), ALONG)
def test_sums_along_columns_that_are_runs(held, columns, rows, dtype):
    """The bits of columns side by side, and no element beside them."""
    a = random(held, DTYPES[dtype], 11)
    cut = np.s_[columns[0] : sum(columns), rows[0] : sum(rows)]
    a[: columns[0]] = a[sum(columns) :] = a[:, : rows[0]] = a[:, sum(rows) :] = np.nan
    turned, packed = gk.to_device(a)[cut].T, gk.to_device(np.ascontiguousarray(a[cut].T))
    # Of plain float32 the last bits tell which elements were added to which.
    for variant in (None, "single_launch") if dtype == "float32" else (None,):
        got, want = (gk.sum(x, 0, variant=variant).to_host() for x in (turned, packed))
        assert np.isfinite(want.astype("f8")).all()
        same_bits(got, want, f"{held} {columns} {rows} {variant}")


def test_sums_along_columns_of_several_matrices():
    for shape, dtype in (
        ((5, 900, 700), "float32"),
        ((700, 70, 64), "float16"),
        ((4, 13, 30_001), "bfloat16"),
    ):
        a = random(shape, DTYPES[dtype], 12)
        want = gk.mean(gk.to_device(np.ascontiguousarray(a.transpose(0, 2, 1))), 1).to_host()
        got = gk.mean(gk.to_device(a).transpose(0, 2, 1), 1).to_host()
        same_bits(got, want, f"{shape}")


# More than 32 MB of rows side by side, or 4 MB of halves: of few lanes and of a warp's, a block's
# each, of more than a vector, and such as are no whole vectors, or do not begin on them.
BESIDE = (
    ((264_192, 32), "float32", 0),
    ((262_160, 64), "float16", 0),
    ((4360, 2001), "float32", 0),
    ((132, 64_000), "float32", 0),
    ((1056, 4000), "float64", 0),
    ((8704, 2001), "bfloat16", 8),
    ((4358, 2001), "float32", 0),
    ((4360, 2001), "float32", 1),
    ((4096, 601), "float16", 0),
    ((4098, 601), "bfloat16", 0),
)


@pytest.mark.costly(2)
@pytest.mark.parametrize(("shape", "dtype", "begin"), BESIDE)
def test_sums_of_many_rows_side_by_side(shape, dtype, begin):
    rows, length = shape
    held = random((length, rows + 8 * (begin > 0)), DTYPES[dtype], 5)
    a = held[:, begin : begin + rows].T
    want = gk.sum(gk.to_device(np.ascontiguousarray(a)), 1).to_host()
    there = gk.to_device(held)[:, begin : begin + rows].T
    same_bits(gk.sum(there, 1).to_host(), want, "a matrix")
    matrices = gk.to_device(held.reshape(2, length, -1)).transpose(0, 2, 1)
    want = gk.sum(matrices.copy(), 2).to_host()
    same_bits(gk.sum(matrices, 2).to_host(), want, "two")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_down_columns_that_are_runs(dtype):
    """By tiles, since what is not a sum is gone along by no thread."""
    a = (1 + random((1300, 2101), DTYPES[dtype], 13) / 1000).astype(DTYPES[dtype])
    want = gk.prod(gk.to_device(np.ascontiguousarray(a.T)), 0).to_host()
    assert np.isfinite(want).all()
    assert len(np.unique(want)) > len(want) // 2
    same_bits(gk.prod(gk.to_device(a).T, 0).to_host(), want, dtype)
