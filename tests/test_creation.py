"""zeros, ones, full, arange, asarray, their likes, and empty: shapes, dtypes, values, streams."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, on_gpu, random

SHAPES = ((), (1,), (7,), (3, 4), (2, 3, 4), (0,), (3, 0), 5, [2, 2])


@pytest.mark.parametrize("dtype", [None, *DTYPES])
def test_zeros_ones_and_full(dtype, balanced):
    name = dtype or "float32"
    for shape in SHAPES:
        for make, want in ((gk.zeros, np.zeros), (gk.ones, np.ones)):
            for given in ({"dtype": dtype}, {} if dtype is None else {"dtype": DTYPES[dtype]}):
                got = make(shape, **given)
                oracle.assert_same(got.to_host(), want(shape, DTYPES[name]), f"{shape}")
        got = gk.full(shape, 1, name)
        oracle.assert_same(got.to_host(), np.ones(shape, DTYPES[name]), f"full {shape}")
    del got


@pytest.mark.parametrize("value", [3, -2.5, True, np.int8(-7), np.float16(0.5), [1, 2, 3]])
def test_full_has_the_dtype_of_its_value(value):
    got = gk.full((2, 3), value)
    oracle.assert_same(got.to_host(), np.full((2, 3), value), "full")
    d = gk.to_device(np.asarray(value))
    oracle.assert_same(gk.full((2, 3), d).to_host(), np.full((2, 3), value), "of a device array")


@pytest.mark.parametrize(
    "given",
    [(5,), (0,), (-3,), (2, 9), (9, 2, -3), (5, 0, -1), (0, 1, 0.1), (5.0,), (1, 4, 1, "int8")],
)
def test_arange_is_numpys(given):
    oracle.assert_same(gk.arange(*given).to_host(), np.arange(*given), "arange")
    oracle.assert_same(
        gk.arange(3, dtype="bfloat16").to_host(), np.arange(3).astype(DTYPES["bfloat16"]), "bf16"
    )


@pytest.mark.parametrize(
    "value",
    [
        3,
        2.5,
        True,
        [1, 2],
        [[1.5, 2], [3, 4]],
        (),
        [True, False],
        np.float32(3),
        range(4),
        [[], []],
    ],
)
def test_asarray_takes_what_numpy_takes(value):
    oracle.assert_same(gk.asarray(value).to_host(), np.asarray(value), f"{value}")
    for dtype in ("float32", np.int64, "bfloat16"):
        want = np.asarray(value).astype(
            DTYPES[np.dtype(dtype).name if dtype != "bfloat16" else dtype]
        )
        oracle.assert_same(gk.asarray(value, dtype).to_host(), want, f"{value} {dtype}")


def test_asarray_gives_a_device_array_back():
    d = gk.to_device(np.arange(5, dtype=np.float32))
    assert gk.asarray(d) is d
    assert gk.asarray(d, "float32") is d
    assert gk.asarray(d, np.int8).dtype == np.int8
    for a in (np.arange(6, dtype=">i4"), np.arange(6)[::-2], np.arange(6.0).reshape(2, 3).T):
        oracle.assert_same(gk.asarray(a).to_host(), a.astype(a.dtype.newbyteorder("=")), "host")

    class Lent:
        __cuda_array_interface__ = d.__cuda_array_interface__

    got = gk.asarray(Lent(), "float64")
    oracle.assert_same(got.to_host(), np.arange(5.0), "another library's")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "int64"])
def test_likes(dtype):
    a = random((3, 4), DTYPES[dtype])
    for like in (a, gk.to_device(a), gk.to_device(a).T.T, a.tolist() if dtype == "int64" else a):
        assert (gk.empty_like(like).shape, gk.empty_like(like).dtype) == (a.shape, a.dtype)
        oracle.assert_same(gk.zeros_like(like).to_host(), np.zeros_like(a), "zeros")
        oracle.assert_same(gk.ones_like(like).to_host(), np.ones_like(a), "ones")
        oracle.assert_same(gk.full_like(like, 1).to_host(), np.full_like(a, 1), "full")
        assert gk.zeros_like(like, "int8").dtype == np.int8
    assert gk.zeros_like(np.zeros(3, ">f4")).dtype == np.float32


def test_none_is_the_default_dtype():
    assert gk.empty(2, None).dtype == np.float32
    assert gk.empty(2, dtype=None).dtype == np.float32
    assert gk.zeros(2, None).dtype == gk.ones(2, dtype=None).dtype == np.float32


@pytest.mark.skipif(on_gpu(), reason="there it is taken")
def test_memory_of_a_gpu_is_no_business_of_numpys():
    """Not even managed memory, which NumPy could read: it is refused here by what takes DLPack."""

    class Managed:
        def __dlpack_device__(self):
            return 13, 0

        def __dlpack__(self, **named):
            raise AssertionError("asked for its memory")

    with pytest.raises(BufferError, match=r"^asarray: a is on device 0 of DLPack's kind 13"):
        gk.asarray(Managed())


def test_nothing_is_taken_for_a_number_in_silence():
    """NumPy takes None for NaN, texts for numbers, and a masked array for its data."""
    masked = np.ma.array(np.ones(3, np.float32), mask=[0, 1, 0])
    for value in (None, "1.5", masked, np.array([1, None], object), 1j, np.ndarray):
        for make in (gk.asarray, lambda value, dtype: gk.full(3, value, dtype)):
            with pytest.raises(TypeError, match=r"masked array|, which is not supported"):
                make(value, "float32")
    for value in (2**70, [2**70, 1], np.array([1, 2.5], object)):
        want = np.asarray(value, "float32")
        oracle.assert_same(gk.asarray(value, "float32").to_host(), want, f"{value}")


def test_what_is_wrong_is_said():
    with pytest.raises(TypeError, match="not supported; use float32"):
        gk.zeros(3, "complex64")
    with pytest.raises(TypeError, match="dtype <U1, which is not supported"):
        gk.asarray("a")
    with pytest.raises(TypeError, match="dtype object"):
        gk.asarray(None)
    with pytest.raises(ValueError, match="inhomogeneous"):
        gk.asarray([[1], [1, 2]])
    with pytest.raises(OverflowError):
        gk.asarray([300], "uint8")
    for value in (float("nan"), [1.0, float("nan")]):
        with pytest.raises(ValueError, match=r"^full: fill_value does not fit the dtype: .* NaN"):
            gk.full(2, value, "int32")
    for shape in (10**25, (3, 1 << 63), -(10**25)):
        with pytest.raises(ValueError, match=rf"^empty: shape {re.escape(str(shape))} has a len"):
            gk.empty(shape)
    for shape in ((10**25,), (3, -(10**25)), (-1, 1 << 64)):
        with pytest.raises(ValueError, match=r"^reshape: cannot reshape array of size 4 into sh"):
            gk.empty(4).reshape(shape)
    with pytest.raises(ValueError, match="negative length"):
        gk.ones(-1)
    with pytest.raises(ValueError, match="does not broadcast"):
        gk.full((2,), [1, 2, 3])
    for make in (gk.empty, gk.zeros, gk.asarray, gk.arange):
        with pytest.raises(TypeError, match="stream has to be None"):
            make(3, stream="x")


@pytest.mark.parametrize(
    "shape", [(0, 2**62, 2**62), (2**62, 0, 2**62), (2**62, 2**62, 0), (0, 2**61)]
)
def test_lengths_beside_a_zero_have_to_fit_too(shape):
    """Strides are their products, which nothing counts that is longer than an address."""
    for make in (gk.empty, gk.zeros):
        with pytest.raises(MemoryError, match="more bytes than an address counts"):
            make(shape)
    with pytest.raises(ValueError, match="cannot reshape array of size 0"):
        gk.empty(0).reshape(shape)
    row, column = gk.empty((2**40, 1, 0)), gk.empty((2**40, 0))
    with pytest.raises(MemoryError, match="add: a result of shape"):
        gk.add(row, column)


def test_streams():
    for stream in (0, 1, 2) if on_gpu() else (0, 1):
        d = gk.zeros(5, stream=stream)
        d = gk.add(d, gk.ones(5, stream=stream), stream=stream)
        assert (d + gk.full(5, 2, "float32", stream=stream)).tolist() == [3] * 5
        assert gk.arange(3, stream=stream).tolist() == [0, 1, 2]
        assert gk.asarray([1, 2], "int8", stream=stream).tolist() == [1, 2]
