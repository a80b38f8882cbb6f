"""clip: bounds of every kind, against NumPy. That every kernel of it is right in every layout and
place, and writes nowhere else, test_elementwise.py walks with those of the other operations."""

from __future__ import annotations

import enum
import re

import ml_dtypes
import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import (
    DTYPES,
    WALKED,
    contents,
    dtypes_of,
    is_float,
    limits,
    on_device,
    places,
    random,
    variants,
)

CLIPPED = dtypes_of("clip")
# Large products walk every variant of these dtypes, and the default of the others.
ROWS = [row for row in variants("clip") if row[1] in WALKED]
ROWS += [(None, dtype) for dtype in CLIPPED if dtype not in WALKED]
BEYOND = 1 << 70


def bounds(dtype):
    """(min, max) pairs: none, one, both, crossed, and at the ends of the dtype."""
    low, high = oracle.bounds(dtype)
    yield from [(None, None), (low, None), (None, high), (low, high), (high, low), (low, low)]
    if not is_float(dtype):
        least, greatest = limits(dtype)
        yield from [(least, greatest), (least, least), (greatest, None), (greatest, least)]
        yield from [(False, True), (1, None), (None, 0)]
        return
    finite, tiny = float(ml_dtypes.finfo(dtype).max), oracle.tiniest(dtype)
    yield from [(-np.inf, np.inf), (np.inf, None), (None, -np.inf), (np.inf, -np.inf)]
    yield from [(-finite, finite), (finite, None), (-3 * tiny, 2 * tiny), (tiny, None)]
    yield from [(np.nan, high), (low, np.nan), (np.nan, np.nan), (np.nan, None), (None, np.nan)]
    yield from [(0.0, 0.0), (-0.0, None), (None, 0), (True, 1), (-1, 2)]


def numpys(a, low, high):
    """np.clip's own answer; zeros of either sign as one, since NumPy takes one as its CPU likes."""
    if a.dtype != DTYPES["bfloat16"]:
        return without_sign(np.clip(a, low, high))
    with np.errstate(invalid="ignore"):
        return without_sign(oracle.clip(a, low, high))


def without_sign(values):
    zero = values.dtype.type(0)
    return np.where(values == zero, zero, values) if is_float(values.dtype) else values


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_every_content_with_every_bound(variant, dtype):
    for case, a in contents(DTYPES[dtype], 61):
        for low, high in bounds(DTYPES[dtype]):
            got = gk.clip(a, low, high, variant=variant)
            oracle.assert_same(without_sign(got), numpys(a, low, high), f"{case} {low} {high}")


@pytest.mark.parametrize("dtype", CLIPPED)
def test_on_the_device_bounds_are_the_same(dtype):
    a = random((7, 33), DTYPES[dtype], 3)
    device = gk.to_device(a)
    for low, high in bounds(DTYPES[dtype]):
        for x, y in ((device, a), (device[::2, 1:], a[::2, 1:]), (device.T, a.T)):
            got = gk.clip(x, max=high, min=low)
            assert isinstance(got, gk.DeviceArray)
            oracle.assert_same(without_sign(got.to_host()), numpys(y, low, high), f"{low} {high}")


@pytest.mark.parametrize("dtype", [name for name in CLIPPED if not is_float(DTYPES[name])])
def test_bounds_beyond_integers_bound_nothing_or_are_refused(dtype):
    a = random(100, DTYPES[dtype], 4)
    least, greatest = limits(DTYPES[dtype])
    middle = least + (greatest - least) // 2
    for below, above in ((least - 1, greatest + 1), (-BEYOND, BEYOND), (-(1 << 63) - 1, 1 << 64)):
        oracle.assert_same(gk.clip(a, below, above), a, "neither bounds")
        oracle.assert_same(gk.clip(a, below, middle), np.minimum(a, a.dtype.type(middle)), "max")
        oracle.assert_same(gk.clip(a, middle, above), np.maximum(a, a.dtype.type(middle)), "min")
        ends = np.full_like(a, least), np.full_like(a, greatest)
        for number, end in zip((least, greatest), ends, strict=True):
            oracle.assert_same(gk.clip(a, number, number), end, "the dtype's own ends")
        for low, high, name in ((above, None, "min"), (None, below, "max"), (above, below, "min")):
            for x in (a, gk.to_device(a)):
                with pytest.raises(ValueError, match=rf"^clip: {name} .*{dtype}.*astype"):
                    gk.clip(x, low, high)


@pytest.mark.parametrize("dtype", CLIPPED)
def test_scalars_of_numpy_have_the_dtype_of_the_array(dtype):
    a = random(100, DTYPES[dtype], 5)
    low, high = (a.dtype.type(bound) for bound in oracle.bounds(a.dtype))
    oracle.assert_same(gk.clip(a, low, high), oracle.clip(a, low, high), "its own")
    oracle.assert_same(gk.clip(gk.to_device(a), low).to_host(), oracle.clip(a, low, None), "one")
    other = "float64" if dtype != "float64" else "float32"
    for wrong in (np.dtype(other).type(1), np.bool_(True)):
        given = {"max": wrong}
        with pytest.raises(TypeError, match=rf"^clip: max .*{wrong.dtype}.*{dtype}.*convert"):
            gk.clip(a, low, **given)


class Level(enum.IntEnum):
    LOW = 2


def test_numbers_of_other_classes():
    a = np.arange(10, dtype=np.int16)
    assert gk.clip(a, Level.LOW, True).tolist() == [1] * 10
    assert gk.clip(a, Level.LOW).tolist() == [2, 2, 2, *range(3, 10)]
    assert gk.clip(a.astype(np.float32), Level.LOW)[0] == 2


WRONG = {
    "a float beside integers": (np.int32, 1.5, "min .*float.*1.5.*int32.*convert"),
    "a whole float": (np.uint64, 2.0, "min .*float.*2.0.*uint64.*convert"),
    "a complex number": (np.float32, 1j, "min .*complex.*float32.*convert"),
    "an array": (np.float32, np.ones(3, np.float32), "min .*ndarray.*gpukern.minimum"),
    "an array of no axes": (np.int8, np.array(3, np.int8), "min .*ndarray.*gpukern.minimum"),
    "a list": (np.float32, [1.0], "min .*list.*gpukern.minimum"),
    "text": (np.float32, "1", "min has to be a number or None.*str"),
    "bytes": (np.int32, b"1", "min has to be a number or None.*bytes"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_bound_that_is_none(case):
    dtype, bound, words = WRONG[case]
    a = np.arange(3).astype(dtype)
    for x in (a, gk.to_device(a)):
        with pytest.raises(TypeError, match=f"^clip: {words}"):
            gk.clip(x, bound)
        with pytest.raises(TypeError, match=f"^clip: {words.replace('min ', 'max ', 1)}"):
            gk.clip(x, None, bound)
    with pytest.raises(TypeError, match=r"^clip: min .*DeviceArray"):
        gk.clip(a, gk.to_device(a))
    assert gk.clip(a, 1).tolist() == [1, 1, 2]


def test_what_it_does_not_take():
    with pytest.raises(TypeError, match=r"^clip: no kernel for bool; .*uint64.*astype"):
        gk.clip(np.ones(3, bool), False, True)
    with pytest.raises(TypeError, match=r"^clip: a has to be a NumPy array"):
        gk.clip(3, 1, 2)
    with pytest.raises(TypeError, match=re.escape("clip: needs its argument 'a'")):
        gk.clip(min=1)
    with pytest.raises(OverflowError, match="clip: "):
        gk.clip(np.ones(3, np.float32), 10**400)


@pytest.mark.parametrize("dtype", CLIPPED)
@pytest.mark.parametrize("device", [False, True])
def test_out_and_in_place(dtype, device):
    a = random((9, 37), DTYPES[dtype], 6)
    low, high = oracle.bounds(a.dtype)
    want = oracle.clip(a, low, high)
    x = gk.to_device(a) if device else a.copy()
    assert gk.clip(x, low, high, x) is x
    oracle.assert_same(np.asarray(x), want, "in place")
    # Nothing but the window changes, and each of its elements once.
    whole = np.tile(a, (2, 1))
    y = gk.to_device(whole) if device else whole.copy()
    gk.clip(y[1:-1:2], low, high, out=y[1:-1:2])
    whole[1:-1:2] = oracle.clip(whole[1:-1:2], low, high)
    oracle.assert_same(np.asarray(y), whole, "a view in place")
    for case, place in places(a.shape, a.dtype):
        if device:
            out = on_device(place)
            gk.clip(gk.to_device(a), low, high, out=out.view)
            assert out.holds(want), case
        else:
            block = place.block()
            gk.clip(a, low, high, out=place.view(block))
            np.testing.assert_array_equal(block, place.block(want), case)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64"])
def test_in_chunks(dtype):
    low, high = oracle.bounds(DTYPES[dtype])
    with gk.limits(mapped_call=0):
        for count in (1, 32_769, 1_000_003):
            a = np.resize(random(70_001, DTYPES[dtype], 7), count)
            for x in (a, np.resize(a, 2 * count)[::2], a[::-1]):
                got = gk.clip(x, low, high)
                oracle.assert_same(got, oracle.clip(np.ascontiguousarray(x), low, high), "chunks")
            whole = gk.clip(a, None, high, out=np.empty_like(a))
            oracle.assert_same(whole, oracle.clip(a, None, high), "into out")
            gk.clip(a, low, out=a)
            assert (a >= a.dtype.type(low)).all()


def test_nothing_and_one():
    for x in (np.empty((0, 3), np.int16), gk.empty((0, 3), "int16")):
        assert gk.clip(x, 1, 2).shape == (0, 3)
        with pytest.raises(ValueError, match="clip: min"):
            gk.clip(x, BEYOND)
    got = gk.clip(np.float32(3), 0, 1)
    assert isinstance(got, np.float32)
    assert got == 1
    assert gk.clip(gk.to_device(np.array(3, np.uint8)), 0, 1).to_host() == 1
