"""Copies between arrays whose axes lie in two orders, by boxes that have runs on both sides; of
long runs see test_worded.py."""

from __future__ import annotations

import random as chance

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, limited, on_device, places, ran, random
from gpukern import _core

LEAST = 1 << 20  # bytes

# Shapes and orders of so many: skinny matrices both ways, few and many axes, and lengths that are
# no multiple of a box's.
MOVES = (
    ("float64", (27_348, 3, 7), (2, 0, 1)),
    ("float32", (90_001, 5), (1, 0)),
    ("uint8", (60_001, 3, 7), (2, 1, 0)),
    ("float16", (60_013, 5, 3), (2, 1, 0)),
    ("int32", (2, 10, 15, 9, 101), (4, 2, 3, 1, 0)),
    ("float16", (25, 457, 3, 4, 6), (4, 0, 2, 3, 1)),
    ("float32", (2, 12, 151, 21, 2, 2), (3, 4, 5, 2, 0, 1)),
    ("uint8", (7, 1, 1009, 5, 37), (4, 3, 2, 1, 0)),
    ("float64", (300, 7, 40, 2), (2, 1, 3, 0)),
    ("float32", (3, 2, 5, 301, 3, 3, 7), (6, 4, 2, 1, 0, 5, 3)),
)
VIEWS = {
    "whole": lambda a: a,
    "every second element": lambda a: a[..., ::2],
    "from 1 on": lambda a: a[..., 1:],
    "backwards": lambda a: a[..., ::-1],
    "first axis backwards": lambda a: a[::-1],
}


@pytest.fixture(autouse=True)
def of_less_bytes():
    """Boxes for arrays that take no minutes on the simulator, also where tiles are as good."""
    with limited(boxed_copy=LEAST, tiled_copy=1 << 30):
        yield


@pytest.mark.parametrize(("dtype", "shape", "axes"), MOVES)
def test_any_order_of_axes(dtype, shape, axes):
    a = random(shape, DTYPES[dtype], 1)
    there = gk.to_device(a)
    for case, view in VIEWS.items():
        got = gk.transpose(view(there), axes).to_host()
        oracle.assert_same(got, np.ascontiguousarray(view(a).transpose(axes)), case)
    assert ran(lambda: gk.transpose(there, axes))[1] in (["boxed"], ["worded"])


@pytest.mark.parametrize("shape", [(260_003, 3, 11), (450_003, 4, 5)])
def test_several_boxes_of_a_block(shape):
    a = np.resize(random(1 << 16, DTYPES["uint8"], 8), shape)
    oracle.assert_same(gk.transpose(gk.to_device(a)).to_host(), np.ascontiguousarray(a.T), "moved")


def test_which_copies_go_by_boxes():
    """Where what shares a sector is far apart in the result; matrices have tiles that they fill."""
    _core.limit("tiled_copy", 1 << 18)
    for shape, axes, variants in (
        ((90_001, 5), (1, 0), ["worded"]),
        ((20_001, 3), (1, 0), ["strided"]),  # of little others are sooner through with it
        ((220_001, 3), (1, 0), ["worded"]),
        ((5, 90_001), (1, 0), ["strided"]),  # every sixth element does
        ((1000, 600, 1), (1, 0, 2), ["vectorized_wide"]),
        ((1000, 300, 1), (1, 0, 2), ["tiled_padded"]),  # few tiles are small
        ((300, 32, 64), (0, 2, 1), ["vectorized_wide"]),
        ((1776, 25, 9), (0, 2, 1), ["packed"]),  # a tile would be empty for the most part
        ((30, 90, 101), (1, 0, 2), ["packed"]),
        ((30, 90, 100), (1, 0, 2), ["strided"]),  # by vectors
        ((91, 5), (1, 0), ["strided"]),
    ):
        there = gk.empty(shape, "float32")
        assert ran(lambda: gk.transpose(there, axes))[1] == variants, shape  # noqa: B023


def test_which_small_elements_go_by_boxes():
    """Where few of a sector are read at a time, and the others late."""
    for dtype, shape, axes, variants in (
        ("uint8", (120_001, 4, 3), (2, 1, 0), ["worded"]),  # whose runs are long
        ("float16", (25, 457, 3, 4, 6), (4, 0, 2, 3, 1), ["worded"]),
        ("float16", (120_001, 5), (1, 0), ["worded"]),
        ("float16", (43_001, 3), (1, 0), ["strided"]),  # every third
        ("float16", (101, 3, 601), (0, 2, 1), ["strided"]),  # the others come soon
    ):
        there = gk.empty(shape, dtype)
        assert ran(lambda: gk.transpose(there, axes))[1] == variants, shape  # noqa: B023


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_nothing_around_the_result_is_written(dtype):
    long = LEAST // (60 * DTYPES[dtype].itemsize) + 2
    a = random((3, long, 5, 4), DTYPES[dtype], 2)
    axes = (3, 2, 0, 1)
    for case, place in places((4, 5, 3, long), a.dtype):
        out = on_device(place)
        gk.transpose(gk.to_device(a), axes, out=out.view)
        assert out.holds(a.transpose(axes)), case


def test_chance_draws_of_three_to_six_axes():
    """Of which a few neighbours are taken: what is read has short runs."""
    draws, gone = chance.Random(7), set()
    for _ in range(25):
        ndim = draws.randint(3, 6)
        dtype = draws.choice(["uint8", "float16", "float32", "float64"])
        least = LEAST // DTYPES[dtype].itemsize
        shape = [draws.randint(1, 9) for _ in range(ndim)]
        shape[-1] = draws.randint(2, 4)
        longest = draws.randrange(ndim - 1)
        shape[longest] = least * shape[longest] // int(np.prod(shape)) + draws.randint(1, 5)
        axes = tuple(draws.sample(range(ndim), ndim))
        held = random((*shape[:-1], shape[-1] + 4), DTYPES[dtype], 3)
        a, there = held[..., 1 : shape[-1] + 1], gk.to_device(held)[..., 1 : shape[-1] + 1]
        got = gk.transpose(there, axes).to_host()
        oracle.assert_same(got, np.ascontiguousarray(a.transpose(axes)), f"{shape} {axes} {dtype}")
        gone.add((dtype, *ran(lambda: gk.transpose(there, axes))[1]))  # noqa: B023
    assert gone >= {(dtype, "boxed") for dtype in ("uint8", "float16", "float32", "float64")}


def test_more_axes_than_a_kernel_takes():
    shape = (2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 40)
    a = random(shape, DTYPES["float32"], 4)
    axes = tuple(reversed(range(len(shape))))
    got = gk.transpose(gk.to_device(a), axes).to_host()
    oracle.assert_same(got, np.ascontiguousarray(a.transpose(axes)), "eleven axes")


def test_one_element_for_all_of_an_axis():
    row = random((1, 300, 3), DTYPES["float32"], 5)
    wide = np.broadcast_to(row, (400, 300, 3))
    there = gk.empty((3, 400, 300), "float32")
    there[...] = gk.transpose(gk.to_device(row), (2, 0, 1))
    oracle.assert_same(there.to_host(), np.ascontiguousarray(wide.transpose(2, 0, 1)), "broadcast")


def test_an_assignment_and_a_reduction_of_turned_axes():
    a = random((300, 301, 5), DTYPES["float32"], 6)
    there = gk.to_device(a)
    into = gk.zeros((5, 301, 300), "float32")
    into[...] = there.T
    oracle.assert_same(into.to_host(), np.ascontiguousarray(a.T), "assigned")
    want = gk.sum(gk.to_device(np.ascontiguousarray(a.T)), 0).to_host()
    oracle.assert_same(gk.sum(there.T, 0).to_host(), want, "the bits of a sum")
