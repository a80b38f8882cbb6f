"""Short rows of which a thread has several, one after another: the bits that other kernels have, of
rows of any length, and of the last ones, which are no whole vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, Array, beside, random, with_special
from fakes import NEEDS_FAKE

# Threads that an H200 has places for: of fewer rows for each the other kernels are as good.
THREADS = 132 * 4 * 256
LENGTHS = {1: (2, 3, 13), 2: (2, 3, 5), 4: (2, 3)}  # by bytes of an element
SHORT = [dtype for dtype in DTYPES if DTYPES[dtype].itemsize in LENGTHS]
FLOATS = [dtype for dtype in SHORT if "float" in dtype]


def values_of(length: int, dtype: str) -> Array:
    """The last thread has all rows but one. Floats have rows of zeros of one sign, and of both."""
    each = 16 // DTYPES[dtype].itemsize
    a = with_special(random((THREADS * each + each - 1, length), DTYPES[dtype], 7), 11, 300)
    if dtype in FLOATS:
        a[100:103], a[102, 0] = -0.0, 0.0
    return a


def with_a_gap(a: Array) -> Any:
    """The same on the device, but for an element behind each row: other kernels take it."""
    wide = np.zeros((a.shape[0], a.shape[1] + 1), a.dtype)
    wide[:, :-1] = a
    return gk.to_device(wide)[:, :-1]


@pytest.mark.costly(4)
@pytest.mark.parametrize(
    ("op", "dtype", "length"),
    [
        (op, dtype, length)
        for op in ("max", "min", "sum", "mean")
        for dtype in (SHORT if op in ("max", "min") else FLOATS)
        for length in LENGTHS[DTYPES[dtype].itemsize]
    ],
)
def test_rows(op, dtype, length):
    a, reduce = values_of(length, dtype), getattr(gk, op)
    got = np.asarray(reduce(gk.to_device(a), 1))
    if dtype != "bfloat16":
        oracle.assert_along(op, a, 1, got)
    oracle.assert_same(np.asarray(reduce(beside(a, 1), 1)), got, "between vectors")
    oracle.assert_same(np.asarray(reduce(with_a_gap(a), 1)), got, "another kernel's")


@NEEDS_FAKE
def test_which_rows_are_taken_so(right):
    """By the blocks that there are: one for as many rows as its threads have."""
    right(
        """
seen = (ctypes.c_uint * 7).in_dll(driver, "fake_seen_sides")
def is_taken(shape, of, op=gk.max, **given):
    a = gk.empty(shape, of)
    rows = a.size // shape[-1]
    op(a, len(shape) - 1, **given)
    return seen[0] == -(-rows * a.itemsize // (256 * 16))
many = 132 * 4 * 256 * 16
assert is_taken((many, 3), "uint8") and is_taken((many // 2, 5), "float16", gk.sum)
assert is_taken((many // 12, 3, 3), "float32", gk.mean)
out = gk.empty(many + 1, "uint8")
assert is_taken((many, 3), "uint8", out=out[:-1])
assert not is_taken((many, 3), "uint8", out=out[1:])
others = ((many - 1, 3), "uint8"), ((many, 16), "uint8"), ((many // 4, 5), "float32")
for shape, dtype in (*others, ((many // 2, 3), "float64")):
    assert not is_taken(shape, dtype), (shape, dtype)
assert not is_taken((many, 3), "uint8", gk.sum)
assert not is_taken((many // 2, 3), "float16", gk.sum, dtype="float32")
""",
        FAKE_KERNELS=0,
    )


@pytest.mark.parametrize(("dtype", "length"), [("uint8", 3), ("float16", 2)])
@pytest.mark.parametrize("begin", [0, 3, 16])
def test_nothing_beside_the_results_is_written(dtype, length, begin):
    a = gk.to_device(values_of(length, dtype))
    want = np.asarray(gk.max(a, 1))
    oracle.assert_written_alone(lambda out: gk.max(a, 1, out=out), want, begin)
