"""Columns of little matrices, of which a block brings several to shared memory: the bits that
other kernels have, of matrices as they lie, with gaps, turned, and between vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import (
    DTYPES,
    WAYS_TO_REDUCE,
    Array,
    beside,
    is_float,
    limits,
    random,
    with_special,
)
from fakes import NEEDS_FAKE

# What holds the array, how it is cut out of that, and the order of its axes; the last but one is
# reduced, or of two the last.
CASES: dict[str, tuple[tuple[int, ...], Any, tuple[int, ...]]] = {
    "runs": ((30_001, 70, 2), np.s_[:], (0, 1, 2)),
    "runs of a single lane": ((80_001, 17, 3), np.s_[:], (0, 1, 2)),
    "every second column": ((12_007, 65, 4), np.s_[:, :, ::2], (0, 1, 2)),
    "every second row": ((9_001, 100, 3), np.s_[:, ::2], (0, 1, 2)),
    "every second element": ((40_003, 58), np.s_[:, 1::2], (0, 1)),
    "turned": ((15_001, 3, 70), np.s_[:], (0, 2, 1)),
    "every second matrix": ((18_002, 60, 3), np.s_[::2], (0, 1, 2)),
    "in bundles": ((120, 211, 45, 3), np.s_[:, 1:201], (0, 1, 2, 3)),
    "long": ((6_001, 130, 20), np.s_[:], (0, 1, 2)),
    "large": ((38_001, 33, 7), np.s_[:], (0, 1, 2)),
}


def taken(array: Any, case: str) -> Any:
    _, cut, order = CASES[case]
    return array[cut].transpose(order)


def axis_of(case: str) -> int:
    return max(len(CASES[case][0]) - 2, 1)


def values_of(case: str, dtype: str) -> Array:
    """Random ones, and in some matrices NaN, infinities, zeros of both signs and subnormals. Halves
    are of many magnitudes: sums of others are exact in float32, in any order."""
    shape = CASES[case][0]
    if DTYPES[dtype].itemsize == 8:  # as many bytes as of words
        shape = (shape[0] // 2, *shape[1:])
    a = random(shape, DTYPES[dtype], 5)
    if dtype == "float16":
        a = (a * np.exp2(2 * random(shape, DTYPES["float32"], 1))).astype(a.dtype)
    return with_special(a, 11, 300)


def reduction(op: str, dtype: str) -> Callable[[Any, int], Any]:
    """Of halves with the digits that a sum is carried in, or a rounding hides its order."""
    if (op, dtype) == ("sum", "float16"):
        return lambda a, axis: gk.sum(a, axis, dtype="float32")
    return getattr(gk, op)


def with_rows_apart(a: Array, axis: int) -> Any:
    """The same on the device, where rows of a matrix lie far apart: other kernels take these."""
    first = gk.to_device(np.ascontiguousarray(np.moveaxis(a, axis, 0)))
    order = list(range(1, a.ndim))
    order.insert(axis, 0)
    return first.transpose(tuple(order))


# Those that other operations and dtypes of other sizes have, too: each other lie is found in the
# same way.
FEW_CASES = ("runs", "in bundles", "long")
ALL_CASES = ("sum", "argmax")
OTHERS = [(op, "float32") for op in WAYS_TO_REDUCE if op not in ALL_CASES]
OTHERS += [(op, dtype) for op in ("sum", "argmax") for dtype in ("float16", "float64", "uint8")]


@pytest.mark.costly(4)
@pytest.mark.parametrize(
    ("op", "dtype", "case"),
    [(op, "float32", case) for op in ALL_CASES for case in CASES]
    + [(*other, case) for other in OTHERS for case in FEW_CASES],
)
def test_columns_of_little_matrices(op, dtype, case, by_vectors):
    held, axis = values_of(case, dtype), axis_of(case)
    reduce = reduction(op, dtype)
    got = np.asarray(reduce(taken(beside(held, 0), case), axis))
    between = np.asarray(reduce(taken(beside(held, 1), case), axis))
    oracle.assert_same(between, got, "between vectors")
    far = np.asarray(reduce(with_rows_apart(taken(held, case), axis), axis))
    oracle.assert_same(got, far, "another kernel's")
    oracle.assert_along(op, taken(held, case), axis, got)


# Rows that are no whole vectors, each a matrix of one column, of more memory than the caches hold.
ROWS = {
    "float32": (260_001, 33),
    "float64": (85_001, 51),
    "float16": (520_001, 35),
    "uint8": (320_001, 110),
    "int8": (132_001, 257),
    "int16": (520_001, 37),
    "bool": (320_001, 109),
}


@pytest.mark.costly(3)
@pytest.mark.parametrize("dtype", ROWS)
@pytest.mark.parametrize("op", ["sum", "min", "argmax"])
def test_rows_that_are_no_vectors(op, dtype):
    a = with_special(random(ROWS[dtype], DTYPES[dtype], 5), 11, 300)
    reduce = reduction(op, dtype)
    got = np.asarray(reduce(gk.to_device(a), 1))
    oracle.assert_same(np.asarray(reduce(beside(a, 1), 1)), got, "between vectors")
    wide = np.zeros((a.shape[0], a.shape[1] + 40), a.dtype)
    wide[:, :-40] = a
    oracle.assert_same(np.asarray(reduce(gk.to_device(wide)[:, :-40], 1)), got, "with gaps")
    groups = np.zeros((a.shape[0] // 5, 6, a.shape[1]), a.dtype)
    groups[:, :5] = a[: len(groups) * 5].reshape(-1, 5, a.shape[1])
    of_groups = np.asarray(reduce(gk.to_device(groups)[:, :5], 2))
    oracle.assert_same(of_groups.ravel(), got[: of_groups.size], "in groups")
    oracle.assert_along(op, a, 1, got)


# The last of these rows of bytes are brought one by one, as many would begin in the same bank.
@pytest.mark.parametrize(
    ("dtype", "length"),
    [("float16", 35), ("uint8", 41), ("uint8", 110), ("int8", 257), ("int16", 37), ("bool", 255)],
)
def test_the_first_of_many_that_are_alike(dtype, length):
    """Nothing beside a row is found in its place, though it is as low as all values can be."""
    kind = DTYPES[dtype]
    lowest = -2 if is_float(kind) else limits(kind)[0]
    a = np.full((36_000_000 // length // kind.itemsize, length), lowest, kind)
    place = np.arange(len(a)) * 7 % (length + 1)
    higher = place < length
    a[np.flatnonzero(higher), place[higher]] = lowest + 1
    want = np.where(higher, place, 0)
    assert (np.asarray(gk.argmax(gk.to_device(a), 1)) == want).all()
    assert (np.asarray(gk.argmax(beside(a, 1), 1)) == want).all(), "between vectors"


# What rows are cut out of, of which a warp would read many in one bank, or which other kernels
# would find one by one without a gap.
OUT_OF = {
    "all but the last of 32": ("float32", 32, np.s_[:-1]),
    "all but the first of 32": ("float32", 32, np.s_[1:]),
    "all but the last of 16": ("float64", 16, np.s_[:-1]),
    "all but the last of 64 halves": ("float16", 64, np.s_[:-1]),
    "all but the first of 128 bytes": ("uint8", 128, np.s_[1:]),
    "every second of 128 bytes": ("uint8", 128, np.s_[::2]),
    "every second of 64 halves": ("float16", 64, np.s_[::2]),
    "every second of 30": ("float32", 30, np.s_[1::2]),
    "15 of 16": ("float32", 16, np.s_[:-1]),
    "20 of 21": ("int32", 21, np.s_[:-1]),
    "three of four": ("float32", 4, np.s_[:-1]),
    "13 of 14 halves": ("float16", 14, np.s_[1:]),
    "whole vectors": ("float16", 256, np.s_[:]),
    "whole vectors of words": ("float32", 128, np.s_[:]),
}


@pytest.mark.costly(2)
@pytest.mark.parametrize("case", OUT_OF)
@pytest.mark.parametrize("op", ["sum", "max", "argmax"])
def test_rows_that_are_cut(op, case):
    """Wherever they begin, the bits of rows of an array of their own."""
    dtype, columns, cut = OUT_OF[case]
    kind = DTYPES[dtype]
    rows = (38 << 20) // columns // kind.itemsize | 1
    held = with_special(random((rows, columns), kind, 5), 11, 300)
    a, reduce = np.ascontiguousarray(held[:, cut]), reduction(op, dtype)
    got = np.asarray(reduce(gk.to_device(held)[:, cut], 1))
    oracle.assert_same(np.asarray(reduce(beside(held, 1)[:, cut], 1)), got, "between vectors")
    oracle.assert_same(np.asarray(reduce(gk.to_device(a), 1)), got, "of their own")
    oracle.assert_along(op, a, 1, got)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("begin", [0, 3])
def test_nothing_beside_the_results_is_written(dtype, begin):
    a = gk.to_device(values_of("runs", dtype))
    want = np.asarray(gk.max(a, 1))
    oracle.assert_written_alone(lambda out: gk.max(a, 1, out=out), want, begin)


@NEEDS_FAKE
def test_which_arrays_are_taken_so(right):
    """By their shared memory; not those of few rows, of long ones, and few matrices."""
    right(
        """
seen = (ctypes.c_uint * 7).in_dll(driver, "fake_seen_sides")
def is_taken(a, axis, op=gk.sum):
    op(a, axis)
    return seen[6] == 32768
a = gk.empty((20_001, 100, 3))
second = gk.empty((12_007, 65, 4))[:, :, ::2]
bundles = gk.empty((120, 211, 45, 3))[:, 1:201]
for number, one in enumerate((a, a[1:], second, gk.empty((38_001, 33, 7)))):
    assert is_taken(one, 1, gk.max), number
sums = gk.empty((80_001, 17, 3)), second, gk.empty((160_003, 58))[:, 1::2]
for number, one in enumerate((*sums, gk.empty((80_001, 17, 3), "float16"))):
    assert is_taken(one, 1), number
assert is_taken(a, 1, gk.argmax) and is_taken(bundles, 2, gk.max)
others = gk.empty((300_001, 4, 3)), gk.empty((5_001, 40, 60)), gk.empty((3, 400_000, 3))
for number, one in enumerate((a[:100], a, *others)):
    assert not is_taken(one, 1), number
long = gk.empty((2_571, 120, 9), "float16"), gk.empty((6_001, 130, 20), "uint8")
few = gk.empty((1_100, 120, 9)), gk.empty((20_001, 33, 3))
for number, one in enumerate((*long, few[0], gk.empty((40_001, 50, 3), "uint8"))):
    assert is_taken(one, 1, gk.max), number
for number, one in enumerate((gk.empty((5_001, 120, 9)), few[1], gk.empty((38_001, 33, 9)))):
    assert not is_taken(one, 1, gk.max), number
rows = gk.empty((260_001, 33)), gk.empty((130_001, 155)), gk.empty((40_001, 603))
for number, one in enumerate((rows[0], rows[0][1:], gk.empty((520_001, 66), "uint8"))):
    assert is_taken(one, 1, gk.argmax), number
assert is_taken(gk.empty((1_000_001, 35), "float16"), 1) and is_taken(gk.empty((520_001, 33)), 1)
assert not is_taken(rows[1], 1), "between vectors"
short = gk.empty((2_400_001, 17), "uint8"), gk.empty((1_200_001, 15), "float16")
for number, one in enumerate((*short, gk.empty((40_001, 999), "bfloat16"))):
    assert is_taken(one, 1, gk.argmax), number
assert not is_taken(gk.empty((2_400_001, 16), "uint8"), 1, gk.argmax)
others = rows[0][:100_000], rows[2], gk.empty((260_001, 36)), gk.empty((520_001, 30), "float16")
for number, one in enumerate(others):
    assert not is_taken(one, 1, gk.argmax), number
second = gk.empty((390_001, 2, 93), "uint8")[:, 0], gk.empty((260_001, 2, 33))[:, 0]
for number, one in enumerate((*second, gk.empty((390_001, 2, 66), "float16")[:, 0])):
    assert is_taken(one, 1, gk.argmax), number
groups = gk.empty((390_001, 3, 93), "uint8")[:, :2], gk.empty((390_001, 3, 56), "uint8")[:, :2]
assert is_taken(groups[0], 2, gk.max) and not is_taken(groups[1], 2, gk.max)
del a, others, groups, short
cut = gk.empty((700_001, 75), "uint8")[:, 3:67], gk.empty((700_001, 80), "uint8")[:, 3:67]
assert is_taken(cut[0], 1, gk.argmax) and not is_taken(cut[1], 1, gk.argmax)
for number, one in enumerate((second[1], gk.empty((260_001, 2, 36))[:, 0], cut[0][:, :32])):
    assert not is_taken(one, 1), number
""",
        FAKE_KERNELS=0,
    )
