"""What comes again and is found once: the order of a picture's pixels in each of its rows, as they
are flipped, and a row that is added to all rows of an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, beside, ran, random
from fakes import NEEDS_FAKE

# copies -----------------------------------------------------------------------------------------

BYTES = 5 << 20  # of a copy for which threads have several words each
Cut = Callable[[Any], Any]

# A shape but for its first length, and what is copied of it.
VIEWS: dict[str, tuple[tuple[int, ...], Cut]] = {
    "channels turned about": ((41, 3), lambda a: a[..., ::-1]),
    "rows flipped": ((641, 3), lambda a: a[:, ::-1]),
    "rows without their first bytes": ((150,), lambda a: a[:, 1:]),
    "three channels of four": ((4,), lambda a: a[:, :3]),
    "every third column": ((1001,), lambda a: a[:, ::3]),
    "from the last to the first": ((), lambda a: a[::-1]),
    "each second": ((), lambda a: a[::2]),
    "near axes exchanged": ((3, 5), lambda a: a.transpose(0, 2, 1)),
    "cut in all axes": ((7, 9, 11), lambda a: a[1:, :6, 1:, ::2]),
}


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
@pytest.mark.parametrize("view", VIEWS)
def test_elements_that_recur(view, dtype):
    behind, cut = VIEWS[view]
    whole = np.empty((2, *behind), DTYPES[dtype])
    shape = (2 * BYTES // cut(whole).nbytes + 3, *behind)
    a = random(shape, DTYPES[dtype], 3)
    there = cut(gk.to_device(a))
    got, variants = ran(lambda: gk.transpose(there, range(there.ndim)))
    assert variants == ["recurring"], view
    oracle.assert_same(got.to_host(), np.ascontiguousarray(cut(a)), view)


@pytest.mark.parametrize("left", range(4))
def test_the_last_word_may_be_less_than_one(left):
    a = random((BYTES + left, 3), np.dtype("uint8"), 5)
    there = gk.to_device(a)[:, :1]
    got, variants = ran(lambda: gk.transpose(there, (0, 1)))
    assert variants == ["recurring"]
    oracle.assert_same(got.to_host(), np.ascontiguousarray(a[:, :1]), f"{left} bytes")


def test_what_is_written_elsewhere_stays():
    """A result that does not begin on a word is another kernel's; nothing around it changes."""
    a = gk.to_device(random((BYTES // 3, 3), np.dtype("uint8"), 6))[:, ::-1]
    for begin, wanted in ((0, True), (4, True), (1, False), (2, False)):
        around = gk.full((a.size + 16,), 77, "uint8")
        out = around[begin : begin + a.size].reshape(a.shape)
        _, variants = ran(lambda out=out: gk.transpose(a, (0, 1), out=out))
        assert (variants == ["recurring"]) == wanted, begin
        host = around.to_host()
        oracle.assert_same(host[begin : begin + a.size].reshape(a.shape), a.to_host(), begin)
        assert (host[:begin] == 77).all() and (host[begin + a.size :] == 77).all()


@pytest.mark.parametrize(
    ("shape", "cut"),
    [
        ((1000, 3), lambda a: a[:, ::-1]),  # little
        ((3, BYTES), lambda a: a[:, ::-1]),  # no more than three parts
        ((BYTES // 64, 64), lambda a: a.transpose(1, 0)),  # neighbours that lie far apart
        ((BYTES // 4, 2, 2), lambda a: a[:, :1]),  # what is moved two bytes at a time, and not far
    ],
)
def test_others_are_others(shape, cut):
    a = random(shape, np.dtype("uint8"), 8)
    there = cut(gk.to_device(a))
    got, variants = ran(lambda: gk.transpose(there, range(there.ndim)))
    assert variants != ["recurring"]
    oracle.assert_same(got.to_host(), np.ascontiguousarray(cut(a)), str(shape))


# operands ---------------------------------------------------------------------------------------

VECTORS = 2 * 3 << 16  # of which a thread has two, at least


def first_length(behind: tuple[int, ...], dtype: str) -> int:
    each = 16 // DTYPES[dtype].itemsize
    return VECTORS * each // int(np.prod(behind)) + 5


@pytest.mark.costly(3)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
@pytest.mark.parametrize(
    ("behind", "row"),
    [
        ((175,), (175,)),
        ((10,), (10,)),
        ((3,), (3,)),
        ((5, 7, 7), (5, 1, 1)),  # one for each channel
        ((6, 7, 3), (6, 1, 3)),
        ((9001,), (9001,)),
    ],
)
def test_a_row_that_is_added_to_all_rows(behind, row, dtype):
    a = random((first_length(behind, dtype), *behind), DTYPES[dtype], 1)
    b = random(row, DTYPES[dtype], 2)
    for there in (gk.to_device(a), beside(a, 1)):
        oracle.assert_same(np.asarray(gk.add(there, gk.to_device(b))), a + b, f"{behind} {dtype}")
    oracle.assert_same(np.asarray(gk.less(gk.to_device(b), gk.to_device(a))), b < a, "booleans")


def test_rows_of_two_lengths():
    """One comes again in the other, or it does not."""
    behind = (4, 30, 7)
    many = random((first_length(behind, "int16"), *behind), np.dtype("int16"), 5)
    for inner, outer in (((7,), (30, 7)), ((1, 7), (30, 1)), ((30, 1), (4, 1, 7))):
        one, other = random(inner, np.dtype("int16"), 3), random(outer, np.dtype("int16"), 4)
        got = gk.scale_add(gk.to_device(one), gk.to_device(many), gk.to_device(other))
        oracle.assert_same(got.to_host(), one * many + other, f"{inner} {outer}")


@NEEDS_FAKE
def test_how_many_threads_have_them(right):
    """As many fewer as each has vectors, if these are enough for all of a device."""
    right(
        """
seen = (ctypes.c_uint * 7).in_dll(driver, "fake_seen_sides")
def blocks(rows, columns, of="uint8", row=None):
    a, out = gk.empty((rows, columns), of), gk.empty((rows, columns), of)
    gk.add(a, gk.empty(row or (columns,), of), out=out)
    return seen[0]
many = 3 << 16
assert blocks(16 * many * 8 // 175 + 176, 175) < many * 2 // 256
assert blocks(16 * many // 175, 175) >= many // 256  # one each
assert blocks(16 * many * 8 // 176, 176) >= many * 8 // 256 // 4  # whole vectors
"""
    )
