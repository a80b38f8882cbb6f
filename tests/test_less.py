"""less: its results are of another size than its operands, so alignment and tails count twice."""

from __future__ import annotations

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import (
    DTYPES,
    LAYOUTS,
    SIZES,
    WALKED,
    DeviceView,
    contents,
    dtypes_of,
    is_float,
    on_device,
    places,
    random,
    variants,
)

BOOL = np.dtype(bool)
COMPARED = dtypes_of("less")
# Large products walk every variant of these dtypes, and the default of the others.
ROWS = [row for row in variants("less") if row[1] in WALKED]
ROWS += [(None, dtype) for dtype in COMPARED if dtype not in WALKED]


def operands(shape, dtype, seed=1):
    """Two arrays that are equal here and there."""
    a, b = (random(shape, DTYPES[dtype], seed + i) for i in (0, 1))
    same = np.arange(a.size).reshape(a.shape) % 3 == 1
    return a, np.where(same, a, b).astype(a.dtype)


def numpys(a, b):
    with np.errstate(invalid="ignore"):
        return np.asarray(np.less(a, b))


@pytest.mark.parametrize("dtype", COMPARED)
def test_every_content_with_every_other(dtype):
    """Of floats: NaN is below nothing and above nothing, and -0.0 is not below 0.0."""
    named = list(contents(DTYPES[dtype], 257))
    for left, a in named:
        for right, b in named:
            for x, y in ((a, b), (a, b[::-1]), (gk.to_device(a), b)):
                got = np.asarray(gk.less(x, y))
                oracle.assert_same(got, numpys(a, np.asarray(y)), f"{left} < {right}")


@pytest.mark.parametrize("dtype", [name for name in COMPARED if is_float(DTYPES[name])])
def test_nan_and_zeros(dtype):
    values = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, oracle.tiniest(DTYPES[dtype])]
    column = np.array(values).astype(DTYPES[dtype])[:, None]
    got = gk.less(column, column.T)
    oracle.assert_same(got, numpys(column, column.T), "each with each")
    assert not got[:2].any() and not got[:, :2].any()
    assert not got[4, 5] and not got[5, 4] and got[5, 7]


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_tails_of_every_length(variant, dtype):
    """A vector of results is narrower than one of operands, and none is written behind the end."""
    for size in SIZES:
        a, b = operands(size, dtype)
        want = numpys(a, b)
        oracle.assert_same(gk.less(a, b, variant=variant), want, f"host {size}")
        place = dict(places((size,), BOOL))["aligned"]
        out = on_device(place)
        gk.less(gk.to_device(a), gk.to_device(b), out=out.view, variant=variant)
        assert out.holds(want), size


@pytest.mark.parametrize("dtype", COMPARED)
def test_any_alignment_of_the_result(dtype):
    """Every byte of a word, and of the vectors that the kernels write."""
    a, b = operands(1037, dtype)
    x, y = gk.to_device(a), gk.to_device(b)
    for start in range(64, 64 + 33):
        place = dict(places(a.shape, BOOL))["aligned"]
        place.offset, place.total = start, start + 1037 + 64
        out = on_device(place)
        gk.less(x, y, out=out.view)
        assert out.holds(numpys(a, b)), start
    for start in range(1, 17):
        out = on_device(dict(places((1037 - start,), BOOL))["aligned"])
        gk.less(x[start:], y[:-start], out=out.view)
        assert out.holds(numpys(a[start:], b[:-start])), start


@pytest.mark.parametrize("dtype", COMPARED)
def test_out_on_the_host_with_canaries(dtype):
    for shape in ((), (1,), (1037,), (33, 65), (3, 5, 7)):
        a, b = operands(shape, dtype)
        for case, place in places(shape, BOOL):
            block = place.block()
            out = place.view(block)
            assert gk.less(a, b, out=out) is out
            np.testing.assert_array_equal(block, place.block(numpys(a, b)), f"{case} {shape}")


@pytest.mark.parametrize("dtype", COMPARED)
def test_layouts_and_broadcasting(dtype):
    for case, layout in LAYOUTS.items():
        a, b = operands((5, 7, 16), dtype)
        x = layout(a)
        for y in (b, layout(b), b[0], b[:, :1], b[0, 0, 0], a[:1, :1, :1]):
            oracle.assert_same(gk.less(x, y), numpys(x, y), case)
            got = gk.less(gk.to_device(y), gk.to_device(x)).to_host()
            oracle.assert_same(got, numpys(y, x), case)
    with pytest.raises(ValueError, match="less: operands could not be broadcast"):
        gk.less(a, a[:, :3])


@pytest.mark.parametrize("dtype", COMPARED)
def test_scalars(dtype):
    a = random((5, 33), DTYPES[dtype])
    scalars = [False, True] if dtype == "bool" else [0, 1, 100, True]
    scalars += [-0.5, float("inf"), float("nan")] if is_float(a.dtype) else []
    for scalar in scalars:
        for x in (a, gk.to_device(a)):
            full = np.full(a.shape, scalar).astype(a.dtype)
            oracle.assert_same(np.asarray(gk.less(x, scalar)), numpys(a, full), f"< {scalar}")
            oracle.assert_same(np.asarray(gk.less(scalar, x)), numpys(full, a), f"{scalar} <")
        own = a.dtype.type(scalar)
        oracle.assert_same(gk.less(a, own), numpys(a, own), "a scalar of NumPy")


@pytest.mark.parametrize("dtype", COMPARED)
def test_mapped_and_in_chunks(dtype):
    counts = (1, 7, 4097, 32_769, 200_003) + ((1_299_709,) if dtype in ("float32", "int8") else ())
    for count in counts:
        a, b = (np.resize(x, count) for x in operands(min(count, 50_021), dtype))
        want = numpys(a, b)
        for limit in (0, 512 << 10):
            with gk.limits(mapped_call=limit):
                oracle.assert_same(gk.less(a, b), want, f"{count} under {limit}")
                out = np.zeros(3 * count, bool)
                gk.less(a, b, out=out[::3])
                oracle.assert_same(out[::3].copy(), want, "elements apart")
                assert not out[1::3].any() and not out[2::3].any()
        large = np.resize(a, 2 * count)
        with gk.limits(mapped_call=0):
            oracle.assert_same(gk.less(large[::2], b), numpys(large[::2], b), "packed")


def test_out_has_to_be_bool():
    a = np.ones(3, np.float32)
    for out in (np.ones(3, np.float32), np.ones(3, np.uint8), gk.empty(3), gk.empty(3, "int8")):
        with pytest.raises(TypeError, match=r"less: out has dtype \w+, and the result is bool"):
            gk.less(a, a, out=out)


@pytest.mark.parametrize("dtype", COMPARED)
@pytest.mark.parametrize("start", [0, 1, 5, 16])
def test_out_in_the_memory_of_an_operand(dtype, start):
    """Results lie where operands do that are not read yet: a bool array among their bytes."""
    a, b = operands(2053, dtype)
    want = a.copy()
    count = a.nbytes - start if a.itemsize == 1 else a.size
    a_part, b_part = a[:count], b[:count]
    want.view(np.uint8)[start : start + count] = numpys(a_part, b_part)

    host = a.copy()
    gk.less(host[:count], b_part, out=host.view(bool)[start : start + count])
    np.testing.assert_array_equal(host.view(np.uint8), want.view(np.uint8))

    device = gk.to_device(a)
    place = dict(places((count,), BOOL))["aligned"]
    place.offset = start
    gk.less(device[:count], b_part, out=DeviceView(device, place))
    got = device.to_host()
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


def test_bool_in_place():
    a, b = operands(1037, "bool")
    for x, y in ((a.copy(), b), (gk.to_device(a), gk.to_device(b))):
        assert gk.less(x, y, out=x) is x
        oracle.assert_same(np.asarray(x), numpys(a, b), "in place")


def test_its_results_are_operands_again():
    a, b = operands((33, 65), "float32")
    x, y = gk.to_device(a), gk.to_device(b)
    both = gk.multiply(gk.less(x, y), gk.less(x, 0.5))
    want = (a < b) & (a < np.float32(0.5))
    oracle.assert_same(both.to_host(), want, "and")
    assert gk.sum(both).to_host() == want.sum()
    np.testing.assert_array_equal(gk.sum(both, 0).to_host(), want.sum(0))
    np.testing.assert_array_equal(gk.max(both, 1).to_host(), want.any(1))
