"""Copies of long rows that begin anywhere: what is set in a larger array, and taken out of one."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, ran, random

LEAST = 256  # bytes of such a row
LEAST_TAKEN_OUT = {"uint8": 192, "float16": 512}  # into one that is a run
ALL = {"uint8": 1 << 19, "float16": 1 << 20}  # bytes of all of them; words go by themselves


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("length", [LEAST, LEAST + 1, 333, 1021])
@pytest.mark.parametrize(("before", "behind"), [(1, 1), (0, 3), (5, 0), (16, 15)])
def test_rows_that_are_set(before, behind, length, dtype):
    each = DTYPES[dtype].itemsize
    length = -(-length // each)
    rows = ALL.get(dtype, 1 << 20) // (length * each) + 3
    want = random((rows + 2, before + length + behind), DTYPES[dtype], 1)
    for begin in (0, 1):
        a = random((rows, length + begin), DTYPES[dtype], 2)[:, begin:]
        whole = gk.to_device(want)
        place = whole[1:-1, before : before + length]
        source = gk.to_device(np.ascontiguousarray(a) if begin == 0 else a.base)[:, begin:]
        _, variants = ran(
            lambda place=place, source=source: gk.transpose(source, (0, 1), out=place)
        )
        expected = want.copy()
        expected[1:-1, before : before + length] = a
        oracle.assert_same(whole.to_host(), expected, f"{variants} {begin}")
        if before % (16 // each) or length * each % 16:
            assert (variants == ["rows"]) == (dtype in ALL), (before, behind, length, dtype)


@pytest.mark.parametrize("dtype", LEAST_TAKEN_OUT)
def test_rows_that_are_taken_out(dtype):
    """From any place within a vector, forwards and backwards, and what is short by another way."""
    size, least = DTYPES[dtype].itemsize, LEAST_TAKEN_OUT[dtype]
    for length in (least // size - 1, least // size, 1027 // size, 3001):
        rows = ALL[dtype] // (length * size) + 3
        a = random((rows, length + 9), DTYPES[dtype], length)
        there = gk.to_device(a)
        for begin in range(9):
            for step in (1, -1):
                part = np.s_[::step, begin : begin + length]
                got, variants = ran(partial(gk.transpose, there[part], (0, 1)))
                if length * size >= least:
                    assert variants == ["rows"], length
                oracle.assert_same(got.to_host(), np.ascontiguousarray(a[part]), f"{length} {part}")


def test_rows_of_several_axes():
    whole = gk.zeros((3, 160, 5, 700), "uint8")
    a = random((3, 160, 2, 600), DTYPES["uint8"], 4)
    place = whole[:, :, 1:4:2, 33:633]
    _, variants = ran(lambda: gk.transpose(gk.to_device(a), (0, 1, 2, 3), out=place))
    assert variants[-1] == "rows"
    expected = np.zeros(whole.shape, np.uint8)
    expected[:, :, 1:4:2, 33:633] = a
    oracle.assert_same(whole.to_host(), expected, "four axes")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_words(dtype):
    """Where they are set apart, and are many; side by side words go by themselves."""
    length = 515
    rows = (12 << 20) // (length * DTYPES[dtype].itemsize) + 1
    a = np.resize(random(1 << 16, DTYPES[dtype], 6), (rows, length))
    whole = gk.zeros((rows, length + 2), dtype)
    _, variants = ran(lambda: gk.transpose(gk.to_device(a), (0, 1), out=whole[:, 1:-1]))
    assert variants[-1] == "rows"
    got = whole.to_host()
    oracle.assert_same(got[:, 1:-1], a, "apart")
    assert not got[:, 0].any() and not got[:, -1].any()
    side, variants = ran(lambda: gk.transpose(whole[:, 1:-1], (0, 1)))
    assert variants[-1] == ("packed" if dtype == "float32" else "strided")
    oracle.assert_same(side.to_host(), a, "side by side")


def test_short_rows_and_few_elements_are_others():
    for rows, length in ((3000, LEAST_TAKEN_OUT["uint8"] - 1), (1700, 300)):
        whole = gk.zeros((rows, length + 3), "uint8")
        a = gk.to_device(random((rows, length), DTYPES["uint8"], 5))
        place = whole[:, 1:-2]
        _, variants = ran(lambda a=a, place=place: gk.transpose(a, (0, 1), out=place))
        assert variants != ["rows"]
        oracle.assert_same(place.to_host(), a.to_host(), f"{rows}x{length}")
