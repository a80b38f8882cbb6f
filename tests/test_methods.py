"""The methods of a DeviceArray that are operations, and transpose, which gives a view."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import gpukern as gk
from arrays import random, settled

METHODS = ("sum", "mean", "prod", "max", "min", "argmax", "argmin", "dot", "clip")


@pytest.mark.parametrize("name", METHODS)
def test_a_method_takes_what_the_function_takes(name):
    method = inspect.signature(getattr(gk.DeviceArray, name)).parameters
    function = inspect.signature(getattr(gk, name)).parameters
    assert list(method)[1:] == list(function)[1:]
    assert [p.default for p in method.values()] == [p.default for p in function.values()]
    assert [p.kind for p in method.values()] == [p.kind for p in function.values()]


def test_methods_give_what_the_functions_give(balanced):
    d = gk.to_device(random((5, 7), np.dtype("float32")))
    for name in METHODS[:7]:
        for given in ({}, {"axis": 0}, {"axis": -1, "keepdims": True}):
            got = getattr(d, name)(**given)
            assert isinstance(got, gk.DeviceArray)
            assert got.tolist() == getattr(gk, name)(d, **given).tolist(), name
    assert d.sum(0, "float64").dtype == np.float64
    assert d.mean((0, 1), variant=None).shape == ()
    out = gk.empty(7)
    assert d.max(0, out) is out
    assert d[0].dot(d[1]).item() == gk.dot(d[0], d[1]).item()
    assert d.clip(-0.5, max=0.5).tolist() == gk.clip(d, -0.5, 0.5).tolist()
    del d, got, out


def test_what_is_wrong_is_said():
    d = gk.empty((2, 3))
    with pytest.raises(
        TypeError, match=r"^sum: takes at most 4 positional arguments and was given 5"
    ):
        d.sum(1, 2, 3, 4, 5)
    with pytest.raises(TypeError, match=r"^sum: has no argument 'a'"):
        d.sum(a=d)
    with pytest.raises(TypeError, match=r"^dot: needs its argument 'b'"):
        d.dot()
    with pytest.raises(ValueError, match="max: axis 2 does not fit"):
        d.max(2)
    before = settled()
    for i in range(10):
        with pytest.raises(TypeError):
            d.sum(*range(100 * i, 100 * i + 60))
    assert settled() == before


def test_transpose_is_a_view():
    a = random((2, 3, 4), np.dtype("float32"))
    d = gk.to_device(a)
    for axes in ((), (None,), (2, 0, 1), ((2, 0, 1),), ([0, -1, 1],), (np.array([1, 2, 0]),)):
        view, want = d.transpose(*axes), a.transpose(*axes)
        assert view.shape == want.shape
        assert view.tolist() == want.tolist()
        assert view.__cuda_array_interface__["data"] == d.__cuda_array_interface__["data"]
    for axes in ((0, 1), (0, 0, 1), (0, 1, 3), (0, 1, 2**70), (0, 1, -4), (1,)):
        with pytest.raises(ValueError, match=r"transpose: axes .* have to name each of the 3 axes"):
            d.transpose(*axes)
    with pytest.raises(TypeError, match="transpose: "):
        d.transpose("a", 1, 2)
    assert gk.transpose(d, np.array([1, 2, 0])).shape == (3, 4, 2)
    assert gk.empty(()).transpose().shape == ()
