"""Elementwise operations of operands that run along other axes than their result, by tiles that
change sides: they have the bits of operands that lie in order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import gpukern as gk
from arrays import (
    DTYPES,
    ELEMENTWISE,
    SAMPLED,
    WALKED,
    Place,
    dtypes_of,
    on_device,
    ran,
    random,
    result_dtype,
    same_bits,
)

# Of one, two and three operands, and with a result of another size than its operands.
OPERATIONS = ("abs", "add", "less", "scale_add")
EACH = [(op, dtype) for op in OPERATIONS for dtype in dtypes_of(op) if dtype in (*WALKED, *SAMPLED)]
SIZES = ("uint8", "float16", "float32", "float64")
# Shapes in memory, and the order of their axes: whole tiles and parts of some, one axis along a
# side and several, matrices by themselves and many; short lines, of which tiles have several below
# one another, with and without some that are left.
EVEN = (
    ((512, 384), (1, 0)),
    ((140, 1000), (1, 0)),
    ((1500, 92), (1, 0)),
    ((3, 60, 8, 132), (0, 3, 2, 1)),
    ((5, 4, 72, 100), (3, 0, 2, 1)),
    ((7, 96, 12, 60), (1, 3, 0, 2)),
    ((1500, 12, 8), (2, 1, 0)),
    ((31_200, 12), (1, 0)),
    ((5, 13_204, 8), (0, 2, 1)),
)
# The same of lengths that make no words of bytes and halves.
RAGGED = (
    ((367, 359), (1, 0)),
    ((131, 1003), (1, 0)),
    ((5, 7, 61, 67), (0, 3, 1, 2)),
    ((701, 7, 27), (2, 1, 0)),
    ((18_013, 19), (1, 0)),
    ((3, 40_000, 6), (2, 0, 1)),
)


def turned(a: np.ndarray, order: Sequence[int]) -> tuple[Any, np.ndarray]:
    """The array with its axes in another order, on the device and here."""
    return gk.to_device(a).transpose(tuple(order)), a.transpose(order)


def in_order(op: str, *operands: Any) -> np.ndarray:
    """What comes of arrays of one shape that lie in its order (`test_elementwise.py`)."""
    there = [gk.to_device(np.array(one, order="C")) for one in np.broadcast_arrays(*operands)]
    return getattr(gk, op)(*there).to_host()


def check(op: str, there: Sequence[Any], here: Sequence[Any], case: str) -> None:
    """Tiles give that, and another launch what they may leave."""
    got, variants = ran(lambda: getattr(gk, op)(*there))
    assert variants == ["turned"], f"{case}: {variants}"
    same_bits(got.to_host(), in_order(op, *here), case)


@pytest.mark.parametrize("dtype", SIZES)
def test_shapes_and_orders(dtype):
    kind = DTYPES[dtype]
    for number, (held, order) in enumerate(EVEN):
        x, a = turned(random(held, kind, number), order)
        b = random(a.shape, kind, number + 10)
        check("add", [gk.to_device(b), x], [b, a], f"{a.shape}")


@pytest.mark.costly(2)
@pytest.mark.parametrize(("op", "dtype"), EACH)
def test_operands_that_are_turned(op, dtype):
    """Each of them in turn, all of them, and beside rows, columns and numbers."""
    kind, count = DTYPES[dtype], ELEMENTWISE[op]
    held, order = EVEN[0]
    x, a = turned(random(held, kind, 1), order)
    b = random(a.shape, kind, 2)
    y = gk.to_device(b)
    for place in range(count):
        there, here = [y] * count, [b] * count
        there[place], here[place] = x, a
        check(op, there, here, f"operand {place}")
    check(op, [x] * count, [a] * count, "all of them")
    for row in (b[:1], b[:, :1], b.flat[3]) if count > 1 else ():
        beside = [row if row.ndim == 0 else gk.to_device(row)] * (count - 1)
        check(op, [x, *beside], [a, *[row] * (count - 1)], f"beside {row.shape}")


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int64"])
def test_lengths_that_are_no_words(dtype):
    """Halves one by one, and elements that are no less than a word; whole arrays, and cut ones."""
    kind = DTYPES[dtype]
    for number, (held, order) in enumerate(RAGGED):
        whole = random(tuple(n + 3 for n in held), kind, number)
        for cut in (np.s_[:], tuple(slice(1, 1 + n) for n in held)):
            x, a = gk.to_device(whole)[cut].transpose(order), whole[cut].transpose(order)
            b = random(a.shape, kind, 7)
            check("add", [x, gk.to_device(b)], [a, b], f"{a.shape}, the first")
            check("add", [gk.to_device(b), x], [b, a], f"{a.shape}, the second")


# Bytes in short rows that are no whole words, and halves of which few in a sector are near one
# another in the result: large arrays, which are put in order before kernels take them.
PUT_IN_ORDER = (
    ("uint8", (7, 1_250_003), (1, 0)),
    ("uint8", (14, 768, 801), (1, 2, 0)),
    ("int8", (5, 901, 31, 67), (1, 3, 2, 0)),
    ("float16", (6000, 400, 2), (1, 0, 2)),
)


@pytest.mark.parametrize(("dtype", "held", "order"), PUT_IN_ORDER)
def test_operands_that_are_put_in_order_first(dtype, held, order):
    kind = DTYPES[dtype]
    x, a = turned(random(held, kind, 1), order)
    in_its_order = gk.to_device(np.ascontiguousarray(a))
    for shape in (a.shape, (*a.shape[:-1], 1), (1,) * a.ndim):
        b = random(shape, kind, 2)
        y = gk.to_device(b)
        got, variants = ran(lambda y=y: gk.subtract(y, x))
        want, expected = ran(lambda y=y: gk.subtract(y, in_its_order))
        assert variants == expected, f"{a.shape}, {shape}"
        same_bits(got.to_host(), want.to_host(), f"{a.shape}, {shape}")


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("op", ["add", "less"])
def test_what_lies_around_a_result_stays(op, dtype):
    """Rows that are apart, and begin behind others' bytes."""
    kind = DTYPES[dtype]
    to = result_dtype(op, kind)
    for rows, columns in ((380, 388), (132, 1036)):
        x, a = turned(random((columns, rows), kind, 1), (1, 0))
        b = random(a.shape, kind, 2)
        y, want = gk.to_device(b), in_order(op, a, b)
        for pitch, begin in ((columns, 64), (columns + 4, 64 + 4 * to.itemsize)):
            strides = (pitch * to.itemsize, to.itemsize)
            place = Place(a.shape, to, begin, strides, begin + rows * strides[0] + 64)
            out = on_device(place)
            _, variants = ran(partial(getattr(gk, op), x, y, out=out.view))
            assert variants == ["turned"], variants
            assert out.holds(want), f"{a.shape}, {pitch} apart"


@pytest.mark.parametrize("dtype", SIZES)
def test_steps_and_backwards(dtype):
    """Every second element of lines, and lines or elements the other way round."""
    kind = DTYPES[dtype]
    whole, b = random((402, 804), kind, 3), random((400, 400), kind, 4)
    there, y = gk.to_device(whole), gk.to_device(b)
    for view in (np.s_[400:0:-1, :400], np.s_[:400, 400:0:-1], np.s_[1:401, :800:2]):
        got = gk.add(there[view].T, y).to_host()
        same_bits(got, in_order("add", whole[view].T, b), f"{view}")


@pytest.mark.parametrize("dtype", SIZES)
def test_operands_that_are_turned_differently(dtype):
    """Tiles are along the one; the other is copied first, or read as it lies."""
    kind = DTYPES[dtype]
    x, a = turned(random((64, 68, 260), kind, 5), (2, 1, 0))
    y, b = turned(random((68, 260, 64), kind, 6), (1, 0, 2))
    z, c = turned(random((68, 64, 260), kind, 6), (2, 0, 1))
    for other, beside in ((y, b), (z, c)):
        for there, here in (((x, other), (a, beside)), ((other, x), (beside, a))):
            got, variants = ran(partial(gk.add, *there))
            assert "turned" in variants, variants
            same_bits(got.to_host(), in_order("add", *here), f"{here[0].strides}")


@pytest.mark.parametrize("dtype", SIZES)
def test_into_an_operand(dtype):
    """A tile is read before it is written; what others have to read is not written."""
    kind = DTYPES[dtype]
    a, b = random((388, 388), kind, 7), random((388, 388), kind, 8)
    x, y = gk.to_device(a), gk.to_device(b)
    x += y.T
    both = in_order("add", a, b.T)
    same_bits(x.to_host(), both, "another's")
    y += y.T
    same_bits(y.to_host(), in_order("add", b, b.T), "its own")
    gk.maximum(x.T, kind.type(1), out=x)
    same_bits(x.to_host(), in_order("maximum", both.T, kind.type(1)), "all of it")
