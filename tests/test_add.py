"""add: every variant on every nasty array, to the bit, with canaries around what is written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gpukern as gk
import oracle
from arrays import (
    DTYPES,
    DeviceView,
    c_strides,
    contents,
    dtypes_of,
    is_float,
    nasty,
    on_device,
    on_gpu,
    places,
    random,
    variants,
)
from gpukern import _core

ROWS = variants("add")
SHAPES = ((), (1,), (17,), (1037,), (33, 65), (3, 5, 7))
BROADCASTS = (
    *(((7, 5), (5,)), ((7, 5), (7, 1)), ((1, 5), (7, 1)), ((4,), ()), ((), (2, 3))),
    *(((2, 3, 4), (3, 1)), ((1, 1, 1), (2, 3, 4)), ((5, 1, 4, 1), (3, 1, 6)), ((1,), (1, 1))),
    *(((0, 3), (1,)), ((4, 1), (0,)), ((2, 1, 0), (5, 1))),
)


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_nasty_arrays_from_the_host(variant, dtype):
    for case, a in nasty(DTYPES[dtype]):
        b = random(a.shape, DTYPES[dtype], 3)
        oracle.assert_same(gk.add(a, b, variant=variant), oracle.add(a, b), f"{case} + random")
        oracle.assert_same(gk.add(b, a, variant=variant), oracle.add(b, a), f"random + {case}")


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_every_content_with_every_other(variant, dtype):
    named = list(contents(DTYPES[dtype], 1037))
    for left, a in named:
        for right, b in named:
            got = gk.add(a, b[::-1], variant=variant)
            oracle.assert_same(got, oracle.add(a, b[::-1]), f"{left} + {right} backwards")


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_places_on_the_device(variant, dtype, shape, balanced):
    a, b = (random(shape, DTYPES[dtype], seed) for seed in (4, 5))
    want = oracle.add(a, b)
    for case, place in places(shape, DTYPES[dtype]):
        for moved in ("a", "b", "out", "all"):
            there = {
                name: on_device(place if moved in (name, "all") else home(shape, dtype), values)
                for name, values in (("a", a), ("b", b), ("out", None))
            }
            out = there["out"].view
            label = f"{moved} {case}"
            got = gk.add(there["a"].view, there["b"].view, out=out, variant=variant)
            assert got is out, label
            assert there["out"].holds(want), f"{label}: wrong, or written outside of out"
            assert there["a"].holds(a), f"{label}: a was changed"
            assert there["b"].holds(b), f"{label}: b was changed"


def home(shape, dtype):
    return dict(places(shape, DTYPES[dtype]))["aligned"]


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_out_on_the_host_with_canaries(variant, dtype):
    for shape in SHAPES:
        a, b = (random(shape, DTYPES[dtype], seed) for seed in (4, 5))
        for case, place in places(shape, DTYPES[dtype]):
            block = place.block()
            out = place.view(block)
            assert gk.add(a, b, out=out, variant=variant) is out
            np.testing.assert_array_equal(block, place.block(oracle.add(a, b)), case)


@pytest.mark.parametrize("dtype", dtypes_of("add"))
@pytest.mark.parametrize("operands", ["host", "device", "mixed"])
@pytest.mark.parametrize(("left", "right"), BROADCASTS)
def test_broadcasting(dtype, operands, left, right):
    a, b = random(left, DTYPES[dtype], 1), random(right, DTYPES[dtype], 2)
    x = a if operands == "host" else gk.to_device(a)
    y = gk.to_device(b) if operands == "device" else b
    got = gk.add(x, y)
    assert isinstance(got, np.ndarray | np.generic if operands == "host" else gk.DeviceArray)
    oracle.assert_same(np.asarray(got), oracle.add(a, b), f"{left} + {right}")


@given(data=st.data(), dtype=st.sampled_from(dtypes_of("add")))
def test_any_shapes_that_broadcast(data, dtype):
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=6))
    arrays = [random(shape, DTYPES[dtype], seed) for seed, shape in enumerate(shapes.input_shapes)]
    a, b = (
        np.asarray(array[data.draw(hnp.basic_indices(array.shape, allow_newaxis=True))])
        for array in arrays
    )
    try:
        want = oracle.add(a, b)
    except ValueError:
        with pytest.raises(ValueError, match="add: operands could not be broadcast"):
            gk.add(a, b)
        return
    oracle.assert_same(gk.add(a, b), want, f"{np.shape(a)} + {np.shape(b)}")


@pytest.mark.parametrize("dtype", dtypes_of("add"))
@pytest.mark.parametrize("device", [False, True])
def test_python_scalars_take_the_dtype_of_the_array(dtype, device):
    a = random((5, 3), DTYPES[dtype])
    x = gk.to_device(a) if device else a
    scalars = [0, 1, 100, True] + ([-1.5, 3.25, float("inf")] if is_float(DTYPES[dtype]) else [])
    for scalar in scalars:
        want = oracle.add(a, DTYPES[dtype].type(scalar))
        oracle.assert_same(np.asarray(gk.add(x, scalar)), want, f"array + {scalar}")
        oracle.assert_same(np.asarray(gk.add(scalar, x)), want, f"{scalar} + array")


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
@pytest.mark.parametrize("device", [False, True])
def test_out_is_an_input(variant, dtype, device):
    a, b = (random(1037, DTYPES[dtype], seed) for seed in (4, 5))
    for pick in ("a", "b", "both"):
        x, y = (gk.to_device(a), gk.to_device(b)) if device else (a.copy(), b.copy())
        out = x if pick == "a" else y
        left, want = (y, oracle.add(b, b)) if pick == "both" else (x, oracle.add(a, b))
        assert gk.add(left, y, out=out, variant=variant) is out
        oracle.assert_same(np.asarray(out), want, pick)


OVERLAPS = [(0, 1, 2), (1, 0, 2), (2, 1, 0), (3, 3, 2), (2, 2, 3), (0, 8, 4), (8, 0, 1)]


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
@pytest.mark.parametrize("starts", OVERLAPS)
def test_out_overlaps_the_inputs(variant, dtype, starts):
    count, size = 1021, DTYPES[dtype].itemsize
    base = random(count + 8, DTYPES[dtype], 6)
    want = base.copy()
    a, b, out = (want[start : start + count] for start in starts)
    out[...] = oracle.add(a, b)

    host = base.copy()
    a, b, out = (host[start : start + count] for start in starts)
    gk.add(a, b, out=out, variant=variant)
    oracle.assert_same(host, want, "host")

    device = gk.to_device(base)
    place = home((count,), dtype)
    a, b, out = (DeviceView(device, shifted(place, start * size)) for start in starts)
    gk.add(a, b, out=out, variant=variant)
    oracle.assert_same(device.to_host(), want, "device")


def shifted(place, offset):
    return type(place)(place.shape, place.dtype, offset, place.strides, place.total)


@pytest.mark.parametrize("dtype", dtypes_of("add"))
def test_out_is_the_input_backwards_or_transposed(dtype):
    base = random((37, 37), DTYPES[dtype], 6)
    size = DTYPES[dtype].itemsize
    for case, strides, offset in (
        ("transposed", c_strides((37, 37), size)[::-1], 0),
        ("backwards", tuple(-s for s in c_strides((37, 37), size)), (37 * 37 - 1) * size),
    ):
        want = base.copy()
        view = np.ndarray(want.shape, want.dtype, want, offset, strides)
        view[...] = oracle.add(want, want)
        host = base.copy()
        gk.add(host, host, out=np.ndarray(host.shape, host.dtype, host, offset, strides))
        oracle.assert_same(host, want, f"host {case}")
        device = gk.to_device(base)
        place = home((37, 37), dtype)
        out = DeviceView(device, type(place)((37, 37), DTYPES[dtype], offset, strides, 0))
        gk.add(device, device, out=out)
        oracle.assert_same(device.to_host(), want, f"device {case}")


def ran(call):
    """The variant that `call` ran."""
    _core.profile_start()
    try:
        call()
    finally:
        records = _core.profile_stop()
    assert [record["op"] for record in records] == ["add"]
    return records[0]["variant"]


@pytest.mark.parametrize(
    ("dtype", "wide", "narrow"), [("float32", "f32x4", "f32"), ("float16", "f16x8_pack", "f16")]
)
def test_misaligned_pointers_take_a_narrower_variant(dtype, wide, narrow):
    shape = (1037,)
    a = random(shape, DTYPES[dtype])
    where = dict(places(shape, DTYPES[dtype]))
    aligned, moved = on_device(where["aligned"], a), on_device(where["one element off"], a)
    out = gk.empty(shape, dtype)
    for named in (None, wide):
        assert ran(lambda named=named: gk.add(a, a, variant=named)) == wide
        assert ran(lambda named=named: gk.add(aligned.view, a, out=out, variant=named)) == wide
        assert ran(lambda named=named: gk.add(moved.view, a, out=out, variant=named)) == narrow
        assert ran(lambda named=named: gk.add(a, a, out=moved.view, variant=named)) == narrow


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_a_large_array(variant, dtype):
    count = (1 << 26) + 157 if on_gpu() else (1 << 18) + 157
    a = np.resize(random(1 << 16, DTYPES[dtype], 7), count)
    b = np.resize(random(12345, DTYPES[dtype], 8), count)
    oracle.assert_same(gk.add(a, b, variant=variant), oracle.add(a, b), "large")


@pytest.mark.skipif(not on_gpu(), reason="4 GiB arrays take minutes on the simulator")
def test_more_than_four_gibi_elements():
    count = (1 << 32) + 13
    a = gk.to_device(np.resize(np.arange(251, dtype=np.uint8), count))
    gk.add(a, a, out=a)
    got = a.to_host()
    want = np.resize(np.arange(251, dtype=np.uint8) * np.uint8(2), count)
    assert np.array_equal(got, want)
