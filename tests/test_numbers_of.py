"""A DeviceArray of one element as a Python number: float(), int(), bool(), item() and the rest."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gpukern as gk
from arrays import DTYPES, is_float, limits

CONVERSIONS = {"float": float, "int": int, "complex": complex, "round": round}


def values(dtype):
    if is_float(DTYPES[dtype]):
        return [0.0, -0.0, 1.5, -2.75, math.inf, -math.inf, math.nan]
    return [*limits(DTYPES[dtype]), 0, 1]


def same(got, want):
    return type(got) is type(want) and repr(got) == repr(want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_conversion_of_every_dtype(dtype, balanced):
    for value in values(dtype):
        for shape in ((), (1,), (1, 1, 1)):
            host = np.full(shape, value).astype(DTYPES[dtype])
            device, want = gk.to_device(host), host.item()
            assert same(device.item(), want), value
            assert same(float(device), float(want)), value
            assert bool(device) is bool(want), value
            assert f"{device:>9}" == f"{want:>9}"
            if not is_float(DTYPES[dtype]) or math.isfinite(value):
                assert same(int(device), int(want)), value
                assert same(round(device), round(want)), value
                assert same(round(device, 1), round(want, 1)), value
                assert same(round(device, None), round(want)), value
                assert complex(device) == complex(want), value
    del device


def test_what_has_no_whole_number_says_so():
    for value, error in ((math.nan, ValueError), (math.inf, OverflowError)):
        d = gk.to_device(np.float32(value))
        for convert in (int, round):
            with pytest.raises(error):
                convert(d)


def test_reductions_become_numbers():
    a = np.array([[3, 1, 4], [1, 5, 9]], np.float32)
    d = gk.to_device(a)
    assert float(gk.sum(d)) == 23.0
    assert f"{gk.mean(d):.3f}" == "3.833"
    assert math.sqrt(gk.max(d)) == 3.0
    assert round(gk.mean(d), 2) == 3.83
    assert int(gk.argmax(d)) == 5
    if gk.max(d) > 8:
        return
    pytest.fail("9 is above 8")


def test_an_index():
    a = np.array([3, 1, 4, 1, 5], np.float32)
    d, words = gk.to_device(a), list("abcde")
    at = gk.argmax(d)
    assert words[at] == "e"
    assert d[at].item() == 5
    assert d[gk.argmin(d) :].tolist() == [1, 4, 1, 5]
    assert a[at] == 5
    assert list(range(gk.argmin(d))) == [0]
    assert gk.sum(gk.to_device(np.ones((2, 3), np.float32)), axis=gk.argmin(d)).shape == (2,)


@pytest.mark.parametrize(
    "a",
    [np.float32(1)[...], np.bool_(True)[...], np.array([1]), np.array([0, 1]), np.ones((0,), int)],
)
def test_no_index(a):
    d = gk.to_device(a)
    with pytest.raises(TypeError, match=rf"dtype {a.dtype} and shape \({a.size if a.ndim else ''}"):
        [0, 1][d]
    with pytest.raises(IndexError, match="only integers"):
        gk.empty(3)[d]


@pytest.mark.parametrize("shape", [(2,), (0,), (3, 0), (1, 2, 1)])
@pytest.mark.parametrize(
    "convert", [float, int, complex, round, gk.DeviceArray.item, "{:.3f}".format]
)
def test_several_elements_are_no_number(shape, convert):
    d = gk.empty(shape)
    text = str(shape).replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(TypeError, match=rf"one element.*shape {text}.*reduce it.*to_host"):
        convert(d)
    with pytest.raises(ValueError, match=rf"shape {text}, is ambiguous; reduce it"):
        bool(d)


def test_what_the_number_refuses_names_the_call():
    d = gk.full((), 1.5)
    with pytest.raises(TypeError, match=r"^round: .*'str'"):
        round(d, "x")
    with pytest.raises(TypeError, match="round: takes at most 1 argument and was given 2"):
        d.__round__(1, 2)
    with pytest.raises(ValueError, match=r"^format: "):
        f"{d:zz}"


def test_format_without_a_format():
    d = gk.to_device(np.array([1, 2], np.float32))
    assert f"{d}" == str(d)
    with pytest.raises(TypeError, match=r"^format: takes a text, not <class 'int'>"):
        d.__format__(3)


def test_tolist():
    for a in (np.arange(6.0).reshape(2, 3), np.float32(3)[...], np.ones((0, 2)), np.arange(3) > 1):
        assert gk.to_device(a).tolist() == a.tolist()
    assert gk.to_device(np.arange(6.0).reshape(2, 3)).T.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_iteration_gives_views(balanced):
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    d = gk.to_device(a)
    assert [row.tolist() for row in d] == a.tolist()
    assert [float(x) for x in d[0]] == [0, 1, 2]
    first, second = d
    gk.add(first, 1, out=first)
    assert d.tolist() == [[1, 2, 3], [3, 4, 5]]
    assert list(gk.empty((0, 3))) == []
    for name in (iter, len):
        with pytest.raises(TypeError, match="0-d"):
            name(gk.empty(()))
    del d, first, second


def test_in():
    d = gk.to_device(np.array([[1, np.nan], [3, 4]], np.float32))
    assert 3.0 in d
    assert 3 in d
    assert 2.0 not in d
    assert DTYPES["float32"].type("nan") not in d
    assert np.array([3, 9], np.float32) in d
    assert 1.0 not in d[:0]
    with pytest.raises(TypeError, match="equal: "):
        assert "x" in d
