"""Every nasty array on its way to the device and back, and the tests' own tools."""

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
    ELEMENTWISE,
    LAYOUTS,
    REDUCTIONS,
    Array,
    nasty,
    on_device,
    places,
    random,
    served,
    variants,
)
from gpukern import _core

OPS = (*ELEMENTWISE, "matmul", "transpose", "dot", *REDUCTIONS)


@pytest.mark.parametrize("dtype", DTYPES)
def test_there_and_back(dtype, balanced):
    for case, a in nasty(DTYPES[dtype]):
        device = gk.to_device(a)
        assert (device.shape, device.dtype) == (a.shape, DTYPES[dtype]), case
        oracle.assert_same(device.to_host(), a, case)


@pytest.mark.parametrize("dtype", DTYPES)
def test_to_device_is_a_copy(dtype):
    a = random(100, DTYPES[dtype])
    device, kept = gk.to_device(a), a.copy()
    a[...] = 1
    oracle.assert_same(device.to_host(), kept, "from the host")
    again = gk.to_device(device)
    gk.add(device, device, out=device)
    oracle.assert_same(again.to_host(), kept, "from the device")


@pytest.mark.parametrize("dtype", DTYPES)
def test_back_into_an_array_with_canaries(dtype):
    for shape in ((), (1,), (257,), (33, 65), (3, 5, 7), (0, 3)):
        a = random(shape, DTYPES[dtype])
        device = gk.to_device(a)
        for case, place in places(shape, DTYPES[dtype]):
            block = place.block()
            out = place.view(block)
            assert device.to_host(out=out) is out
            np.testing.assert_array_equal(block, place.block(a), f"{case} {shape}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_back_into_the_other_byte_order(dtype):
    a = random(37, DTYPES[dtype])
    out = LAYOUTS["swapped"](np.zeros_like(a))
    gk.to_device(a).to_host(out=out)
    np.testing.assert_array_equal(out.astype(a.dtype), a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_views_of_device_memory_become_arrays(dtype, balanced):
    for shape in ((), (17,), (33, 65), (3, 5, 7)):
        a = random(shape, DTYPES[dtype])
        for case, place in places(shape, DTYPES[dtype]):
            there = on_device(place, a)
            oracle.assert_same(gk.to_device(there.view).to_host(), a, f"{case} {shape}")
            assert there.holds(a), f"{case} {shape}"


@given(
    data=st.data(),
    dtype=st.sampled_from(list(DTYPES)),
    shape=hnp.array_shapes(min_dims=0, max_dims=6, min_side=0, max_side=6),
)
def test_any_view_there_and_back(data, dtype, shape):
    a = random(shape, DTYPES[dtype])[data.draw(hnp.basic_indices(shape, allow_newaxis=True))]
    a = np.asarray(a)
    a = a.transpose(data.draw(st.permutations(range(a.ndim))))
    oracle.assert_same(gk.to_device(a).to_host(), a, f"{a.shape} {a.strides}")


@pytest.mark.parametrize("shape", [(2,) * 9, (1,) * 64, (2, 1) * 6, (1, 3, 1, 2, 1, 2, 1, 2, 1, 2)])
def test_many_dimensions(shape):
    """NumPy has up to 64; on the device what is one run counts as one axis."""
    a = random(shape, DTYPES["float32"])
    oracle.assert_same(gk.to_device(a).to_host(), a, "round trip")
    oracle.assert_same(gk.add(a, a), oracle.add(a, a), "add")
    oracle.assert_same(gk.add(a.T, a.T), oracle.add(a.T, a.T), "add transposed")
    row = a[(slice(0, 1),) * (a.ndim - 1)]
    oracle.assert_same(gk.add(a, row), oracle.add(a, row), "broadcast")


def test_broadcasting_over_more_axes_than_a_kernel_takes():
    a = random((2, 1) * 5, DTYPES["float32"], 1)
    b = random((1, 2) * 5, DTYPES["float32"], 2)
    oracle.assert_same(gk.add(a, b), oracle.add(a, b), "twelve runs")


def test_other_names_of_the_same_integers():
    for name, dtype in (("longlong", "int64"), ("long", "int64"), ("intc", "int32"), ("b", "int8")):
        a = random(100, DTYPES[dtype]).astype(name)
        got = gk.add(a, a)
        assert got.dtype == DTYPES[dtype]
        oracle.assert_same(got, oracle.add(a, a), name)
        out = np.zeros(100, name)
        assert gk.add(a, a, out=out) is out
        oracle.assert_same(out, oracle.add(a, a), f"out {name}")


def test_windows_that_overlap_in_memory():
    for dtype in DTYPES:
        a = np.lib.stride_tricks.sliding_window_view(random(100, DTYPES[dtype]), 7)
        oracle.assert_same(gk.to_device(a).to_host(), a, dtype)
        oracle.assert_same(gk.add(a, a), oracle.add(a, a), dtype)


# --- the tests' own tools ---------------------------------------------------------------------


def test_the_table_is_walked_whole():
    """What the tests walk is what the user is shown, every row of it."""
    shown = {(v.op, v.variant, v.dtype) for v in gk.variants()}
    rows = [row for row in _core.rows() if row["op"] in OPS]
    assert shown == {(row["op"], row["variant"], name) for row in rows for name in served(row)}
    for op in OPS:
        walked = set(variants(op)) | set(variants(op, runs=False))
        assert walked == {(v.variant, v.dtype) for v in gk.variants(op)}
        assert variants(op), f"no variant of {op} runs here"


def test_every_sum_variant_has_its_error_bound():
    for variant, dtype in variants("sum"):
        assert oracle.sum_depth(variant, 10_000, 4) > 0, (variant, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts_keep_the_values(dtype):
    for shape in ((), (5,), (3, 4), (2, 3, 4)):
        a = random(shape, DTYPES[dtype])
        for case, layout in LAYOUTS.items():
            if case != "repeated":
                oracle.assert_same(layout(a).astype(DTYPES[dtype]), a, case)


def test_places_do_not_share_bytes_with_their_canaries():
    for shape in ((), (7,), (3, 4), (2, 3, 4)):
        for case, place in places(shape, DTYPES["float32"]):
            block = place.block()
            place.view(block).view(np.uint32)[...] = 0xFFFFFFFF
            count = int(np.prod(shape)) * 4
            assert (block == 0xFF).sum() == count, case
            changed = np.flatnonzero(block != place.block())
            assert len(changed) == count, case
            assert changed.min(initial=64) >= 64
            assert changed.max(initial=0) < place.total - 64


def test_the_oracle_notices_a_wrong_bit():
    a = random(100, DTYPES["float32"])
    wrong = a.copy()
    wrong[50] = np.nextafter(wrong[50], np.float32(9))
    with pytest.raises(AssertionError, match=r"1 differ, first at \(50,\)"):
        oracle.assert_same(wrong, a, "one bit")
    with pytest.raises(AssertionError):
        oracle.assert_same(np.array([0.0]), np.array([-0.0]), "sign of zero")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_the_oracle_notices_a_lost_or_doubled_element(dtype):
    a = np.abs(random(3000, DTYPES[dtype]))
    if dtype == "bfloat16":
        a = a[:100]
    total = a.astype(np.float64).sum()
    oracle.assert_sum(DTYPES[dtype].type(total), a, "default", "right")
    for wrong in (total - a[-1].astype(float) - 8, total + 8):
        with pytest.raises(AssertionError, match="error bound"):
            oracle.assert_sum(DTYPES[dtype].type(wrong), a, "default", "wrong")


def test_the_oracle_notices_a_wrong_product():
    a, b = random((9, 300), DTYPES["float32"], 1), random((300, 8), DTYPES["float32"], 2)
    right = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    oracle.assert_matmul(right, a, b, "tiled", "right")
    right[8, 7] += 1e-2
    with pytest.raises(AssertionError, match=r"at \(8, 7\)"):
        oracle.assert_matmul(right, a, b, "tiled", "wrong")


@pytest.mark.parametrize("op", ["sum", "max", "argmax", "transpose"])
def test_an_array_that_is_resized_as_its_axis_is_read(op):
    """NumPy gives its memory back at once, with `refcheck=False`."""

    class Axis:
        def __init__(self, array: Array) -> None:
            self.array = array

        def __index__(self) -> int:
            self.array.resize((1, 1), refcheck=False)
            return 0

    a = np.ones((3000, 1000), np.float32)
    axis = Axis(a) if op != "transpose" else (Axis(a), 1)
    with pytest.raises(ValueError, match=rf"^{op}: a was resized while the other arguments"):
        getattr(gk, op)(a, axis)
    assert gk.sum(np.ones(10, np.float32)) == 10
