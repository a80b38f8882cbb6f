"""Columns of bytes and halves whose rows begin anywhere in a word, so that threads begin ahead of
them: the bits that these columns have where rows begin at vectors. And sums of whole numbers in 32
bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, Array, beside, random, with_special
from fakes import NEEDS_FAKE

NARROW = [dtype for dtype in DTYPES if DTYPES[dtype].itemsize <= 2]
# More elements than are taken one by one, and more columns than go by rows side by side: several
# blocks across, segments, one block and a bit, and several matrices of a block.
SHAPES = [(2101, 509), (1050, 1013), (4200, 257), (300, 60, 67)]
CASES = [(SHAPES[0], dtype) for dtype in NARROW]
CASES += [(shape, dtype) for shape in SHAPES[1:] for dtype in ("uint8", "float16")]
OPS = ("sum", "max", "argmax")


def at_vectors(a: Array) -> Any:
    """The same on the device, each row at a vector."""
    each = 16 // a.itemsize
    wide = np.zeros((*a.shape[:-1], -(-a.shape[-1] // each) * each + each), a.dtype)
    wide[..., : a.shape[-1]] = a
    return gk.to_device(wide)[..., : a.shape[-1]]


@pytest.mark.parametrize(("shape", "dtype"), CASES)
def test_rows_that_begin_anywhere(shape, dtype):
    a = with_special(random(shape, DTYPES[dtype], 3), 11, 300)
    axis = len(shape) - 2
    for op in OPS:
        reduce = getattr(gk, op)
        want = np.asarray(reduce(at_vectors(a), axis))
        if dtype != "bfloat16":
            oracle.assert_along(op, a, axis, want)
        for begin in (0, 3):
            got = np.asarray(reduce(beside(a, begin), axis))
            oracle.assert_same(got, want, f"{op} {begin} elements on")


@pytest.mark.parametrize(("dtype", "columns"), [("uint8", 530_003), ("float16", 270_001)])
def test_few_rows_of_wide_blocks(dtype, columns):
    """A thread's rows begin at several places of a word there, so that none is shifted."""
    a = random((9, columns), DTYPES[dtype], 6)
    for op in ("sum", "max"):
        want = np.asarray(getattr(gk, op)(at_vectors(a), 0))
        oracle.assert_along(op, a, 0, want)
        oracle.assert_same(np.asarray(getattr(gk, op)(beside(a, 1), 0)), want, op)


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
def test_no_column_beside_them_has_a_say(dtype):
    """Greater values in front of the first row, behind the last one, and between."""
    held = np.full((40, 203), DTYPES[dtype].type(99))
    held[3:-3, 5:-7] = random((34, 191), DTYPES[dtype], 1) % DTYPES[dtype].type(7)
    for rows in (np.s_[3:-3, 5:-7], np.s_[3:-3, 5:-8], np.s_[3:-3, 6:-7]):
        a = held[rows]
        oracle.assert_same(np.asarray(gk.max(gk.to_device(held)[rows], 0)), a.max(0), str(rows))


# The least and the greatest of a dtype, which are the most that a sum in 32 bits has to hold.
@pytest.mark.parametrize("dtype", [d for d in NARROW if "float" not in d])
@pytest.mark.parametrize(
    ("shape", "axis"), [((140_001, 33), 0), ((70_001, 8), 0), ((8, 70_001), 1)]
)
def test_sums_of_the_greatest(shape, axis, dtype):
    info = np.iinfo(dtype) if dtype != "bool" else None
    for value in (info.min, info.max) if info else (True,):
        a = np.full(shape, value, dtype)
        for there in (gk.to_device(a), gk.to_device(np.ascontiguousarray(a.T)).T):
            np.testing.assert_array_equal(np.asarray(gk.sum(there, axis)), a.sum(axis))
    assert int(gk.sum(a)) == int(a.sum())


def test_any_byte_but_0_is_true():
    """Booleans that came as other bytes count once each."""
    a = np.arange(300_006, dtype=np.uint8).reshape(-1, 7)[:, :5]
    b = gk.to_device(np.ascontiguousarray(a).view(np.bool_))
    for axis in (0, 1, None):
        np.testing.assert_array_equal(np.asarray(gk.sum(b, axis)), (a != 0).sum(axis))


@NEEDS_FAKE
def test_which_columns_are_taken_so(right):
    """By the blocks, which have as many columns less each as a word holds then."""
    right(
        """
seen = (ctypes.c_uint * 7).in_dll(driver, "fake_seen_sides")
def blocks(rows, columns, of="uint8"):
    gk.max(gk.empty((rows, columns), of), 0)
    return seen[0]
many, wide = 1 << 18, 32 * 16
assert blocks(100, many) == many // wide
assert blocks(100, many + 1) == -(-(many + 1) // (wide - 4))
assert blocks(100, many + 4) == -(-(many + 4) // wide)
assert blocks(100, many + 1, "float16") == -(-(many + 1) // (wide - 2))
"""
    )
