"""astype, and copies: every pair of dtypes against NumPy's own conversion."""

from __future__ import annotations

import contextlib
import copy

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpukern as gk
from arrays import DTYPES, is_float, limits, on_gpu, random, settled
from gpukern import _core

PAIRS = [(source, target) for source in DTYPES for target in DTYPES]


def assert_bits(got, want, what):
    """The same dtype, shape and bits; of NaNs whether they are."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape), what
    if is_float(want.dtype):
        nan = np.isnan(want.astype(np.float64))
        np.testing.assert_array_equal(np.isnan(got.astype(np.float64)), nan, what)
        got, want = got[~nan], want[~nan]
    np.testing.assert_array_equal(
        np.atleast_1d(got).view(np.uint8), np.atleast_1d(want).view(np.uint8), what
    )


def range_of(dtype):
    if not is_float(dtype):
        return limits(dtype)
    highest = float(ml_dtypes.finfo(dtype).max)
    return -highest, highest


def values(source, target):
    """What both can hold, in `source`, and what lies at the edges of rounding."""
    source, target = DTYPES[source], DTYPES[target]
    points = [0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.999, -2.999, 100.7, -100.7, 255.5, 65504, 65519.9]
    points += [
        65520,
        2.0**24 + 1,
        2.0**53 + 2,
        2.0**-24,
        2.0**-25,
        2.0**-25 * (1 + 2.0**-40),
        1e-40,
    ]
    points += [1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11 - 2.0**-40, 1e300, 5e-324, 1e38]
    points += [*limits(DTYPES["int32"]), 2**31, 2**32 - 1, -(2**63), 2**62, 127, 128, -128, 32767]
    low, high = range_of(source)
    with np.errstate(all="ignore"):
        a = np.array([p for p in points if low <= p <= high]).astype(source)
        a = np.concatenate([a, random(997, source, 3), random(97, source, 4) * source.type(1)])
        if is_float(source):
            a = np.concatenate([a, np.array([np.nan, np.inf, -np.inf, -0.0]).astype(source)])
            wide = np.trunc(a.astype(np.float64))
            fits = np.isfinite(wide) & (wide < 2.0**63)
            if target.kind in "iu":
                least, greatest = limits(target)
                fits &= (wide >= least) & (wide <= greatest) & (wide < float(greatest) + 1)
                a = a[fits & (wide != 2.0**63)]
    return a


def numpys(a, dtype):
    with np.errstate(all="ignore"):
        return a.astype(dtype)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_pair(source, target, balanced):
    a = values(source, target)
    d = gk.to_device(a)
    assert_bits(d.astype(target).to_host(), numpys(a, DTYPES[target]), "contiguous")
    strided, want = d[::-3], a[::-3]
    assert_bits(strided.astype(DTYPES[target]).to_host(), numpys(want, DTYPES[target]), "strided")
    square = a[:841].reshape(29, 29)
    for view, want in ((d[:841].reshape(29, 29).T, square.T), (d[7], a[7]), (d[:0], a[:0])):
        got = view.astype(target)
        assert got.__cuda_array_interface__["strides"] is None
        assert_bits(got.to_host(), numpys(want, DTYPES[target]).copy(order="C"), "view")
    del d, strided, view, got


@pytest.mark.parametrize("target", ["float16", "float32", "int8", "uint64", "bool"])
@pytest.mark.parametrize("source", ["float64", "float16", "int64", "uint8", "bool"])
def test_large_and_many_axes(source, target):
    n = 50_000_017 if on_gpu() else 400_009
    a = (np.arange(n) % 101).astype(DTYPES[source])
    d = gk.to_device(a)
    assert_bits(d.astype(target).to_host(), numpys(a, DTYPES[target]), "large")
    shape = (2, 3) * 5
    many = d[: 6**5].reshape(shape)
    view = many.T[..., ::-1, ::-1]
    want = numpys(a[: 6**5].reshape(shape).T[..., ::-1, ::-1], DTYPES[target])
    assert_bits(view.astype(target).to_host(), np.ascontiguousarray(want), "ten axes")


@pytest.mark.parametrize("source", DTYPES)
def test_long_runs_of_every_pair(source):
    """By vectors, with elements that are left behind them."""
    for target in DTYPES:
        a = np.resize(values(source, target), 131_075)
        d = gk.to_device(a)
        assert_bits(d.astype(target).to_host(), numpys(a, DTYPES[target]), f"to {target}")
    assert_bits(d[1:].astype(target).to_host(), numpys(a[1:], DTYPES[target]), "between vectors")


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_into_long_runs(dtype):
    """And into nothing around them."""
    x, want = gk.zeros(140_005, dtype), np.zeros(140_005, DTYPES[dtype])
    no, yes = (False, True) if dtype == "bool" else (0, 1)
    x[4:-2] = want[4:-2] = yes
    assert_bits(x.to_host(), want, "on vectors")
    x[7:-1] = want[7:-1] = no
    assert_bits(x.to_host(), want, "between them")


# Of which the source is smaller, or larger, or neither.
TURNED = (("uint8", "float32"), ("float64", "float16"), ("int16", "float32"), ("float32", "int32"))


@pytest.mark.parametrize(("source", "target"), TURNED)
def test_turned_arrays(source, target):
    for held, order in (
        ((1031, 1027), (1, 0)),
        ((3, 601, 611), (0, 2, 1)),
        ((521, 701, 3), (2, 0, 1)),
    ):
        a = np.resize(values(source, target), held)
        d = gk.to_device(a).transpose(order)
        want = np.ascontiguousarray(numpys(a.transpose(order), DTYPES[target]))
        assert_bits(d.astype(target).to_host(), want, f"{want.shape}")
    if np.can_cast(source, target):
        out = gk.zeros((3, 521, 703), target)
        out[..., 1:-1] = d
        assert_bits(out.to_host()[..., 1:-1].copy(), want, "into a view")
        assert not out.to_host()[..., ::702].any()


@given(st.lists(st.floats(width=64, allow_nan=False), min_size=1, max_size=50))
def test_float64_is_rounded_once(numbers):
    a = np.array(numbers)
    for target in ("float16", "float32"):
        assert_bits(gk.to_device(a).astype(target).to_host(), numpys(a, DTYPES[target]), target)


def test_float64_beside_every_midpoint_of_float16():
    """Where a float32 between would be the midpoint itself."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    middle = (halves[:-1] + halves[1:]) / 2
    beside = [middle, np.nextafter(middle, np.inf), np.nextafter(middle, 0)]
    a = np.concatenate([*beside, *(-each for each in beside)])
    assert_bits(gk.to_device(a).astype("float16").to_host(), a.astype(np.float16), "midpoints")


def test_a_byte_of_any_value_but_0_is_true():
    """What another library calls bool may hold more than 0 and 1."""
    a = np.array([0, 1, 2, 255], np.uint8).view(bool)
    for target in ("int8", "float32", "bool", "uint64"):
        assert gk.to_device(a).astype(target).to_host().astype(int).tolist() == [0, 1, 1, 1]


def test_copy_is_a_question_of_need():
    d = gk.to_device(np.arange(5, dtype=np.float32))
    assert d.astype("float32", copy=False) is d
    assert d.astype("float32") is not d
    assert d.astype("float64", False).dtype == np.float64
    assert d.astype("int32", copy=False).dtype == np.int32
    others = d.copy(), d.astype("float32"), d.flatten(), copy.copy(d), copy.deepcopy([d])[0]
    for other in others:
        other.fill(7)
        assert d.tolist() == [0, 1, 2, 3, 4]
    flat = d.reshape(5, 1).ravel()
    flat += 1
    assert d.tolist() == [1, 2, 3, 4, 5]
    assert d[::-2].ravel().tolist() == d[::-2].flatten().tolist() == [5, 3, 1]
    assert d[::-2].copy().__cuda_array_interface__["strides"] is None


def test_what_is_wrong_is_said():
    d = gk.empty(3)
    for dtype in ("complex64", ">f4", "datetime64[s]", object):
        with pytest.raises(TypeError, match=r"astype: dtype .* is not supported; use float32"):
            d.astype(dtype)
    with pytest.raises(TypeError, match="needs its argument 'dtype'"):
        d.astype()
    with pytest.raises(TypeError, match=r"^astype: has no argument 'order'"):
        d.astype("int32", order="C")


def test_a_failure_leaves_nothing_behind():
    d = gk.to_device(np.arange(1000, dtype=np.float32))[::2]
    before = settled()
    for number in range(1, 30):
        _core.fail_call(number)
        with contextlib.suppress(MemoryError, gk.CudaError):
            d.astype("int8")
        if not _core.fail_call(0):
            break
        assert settled() == before
    else:
        pytest.fail("no call came through")
    assert number > 2
    assert d.astype("int8").shape == (500,)


def test_profile_shows_it():
    d = gk.to_device(np.ones(1000, np.float32))
    with gk.profile() as p:
        d.astype("int32")
        d[:5] = 3
    assert [call.op for call in p.calls] == ["astype", "setitem"]
