"""sum: every variant within the error bound of its own additions, and reproducible."""

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
    SAMPLED,
    WALKED,
    dtypes_of,
    nasty,
    on_device,
    on_gpu,
    places,
    random,
    variants,
)

# Of the other dtypes one of each kind; test_other_dtypes.py has the sums of all.
ROWS = [row for row in variants("sum") if row[1] in (*WALKED, *SAMPLED)]
FIXED = [(variant, dtype) for variant, dtype in ROWS if variant != "atomic"]
SHAPES = ((), (1,), (17,), (5003,), (33, 65), (3, 5, 7))


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_nasty_arrays_from_the_host(variant, dtype):
    for case, a in nasty(DTYPES[dtype]):
        oracle.assert_sum(gk.sum(a, variant=variant), a, variant, case)


@pytest.mark.costly(2)
@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_nasty_arrays_on_the_device(variant, dtype):
    for case, a in nasty(DTYPES[dtype]):
        got = gk.sum(gk.to_device(a), variant=variant)
        assert isinstance(got, gk.DeviceArray), case
        oracle.assert_sum(got.to_host(), a, variant, case)


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_places_on_the_device(variant, dtype, shape, balanced):
    a = random(shape, DTYPES[dtype], 4)
    for case, place in places(shape, DTYPES[dtype]):
        there = on_device(place, a)
        oracle.assert_sum(gk.sum(there.view, variant=variant).to_host(), a, variant, case)
        assert there.holds(a), f"{case}: the array was changed"


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_out(variant, dtype):
    a = random(5003, DTYPES[dtype], 4)
    to = oracle.sum_dtype(a.dtype)
    for x in (a, gk.to_device(a)):
        for case, place in places((), to):
            block = place.block()
            out = place.view(block)
            assert gk.sum(x, out=out, variant=variant) is out
            oracle.assert_sum(out.copy(), a, variant, f"host {case}")
            np.testing.assert_array_equal(block, place.block(out.copy()))

            there = on_device(place)
            assert gk.sum(x, out=there.view, variant=variant) is there.view
            got = place.view(there.parent.to_host()).copy()
            oracle.assert_sum(got, a, variant, f"device {case}")
            assert there.holds(got), f"{case}: written outside of out"


def test_out_inside_the_array():
    """The total may replace an element of what is added up."""
    for dtype in ("float32", "int64"):
        a = random(5003, DTYPES[dtype], 4)
        host = a.copy()
        gk.sum(host, out=host[7:8].reshape(()))
        want = a.copy()
        want[7] = gk.sum(a)
        oracle.assert_same(host, want, dtype)


@pytest.mark.parametrize("dtype", dtypes_of("sum"))
def test_what_comes_back(dtype):
    a = random((3, 4), DTYPES[dtype])
    got = gk.sum(a)
    assert isinstance(got, np.generic)
    assert got.dtype == oracle.sum_dtype(a.dtype)
    assert gk.sum(gk.to_device(a)).shape == ()


@pytest.mark.parametrize("axis", [None, (0, 1), (1, 0), (-1, 0)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_all_axes_by_name(axis, keepdims):
    a = random((3, 4), DTYPES["int32"])
    want = np.asarray(a.sum(axis=axis, keepdims=keepdims))
    oracle.assert_same(gk.sum(a, axis, keepdims=keepdims), want, "host")
    device = gk.to_device(a)
    oracle.assert_same(gk.sum(device, axis, keepdims=keepdims).to_host(), want, "device")
    out = np.zeros_like(want)
    assert gk.sum(a, axis=axis, dtype="int64", out=out, keepdims=keepdims) is out
    oracle.assert_same(out, want, "out")


def test_the_axis_of_a_vector():
    a = random(1000, DTYPES["int64"])
    assert gk.sum(a, axis=0) == gk.sum(a, axis=-1) == gk.sum(a, axis=(0,)) == a.sum()
    assert gk.sum(a[:5].reshape(5), 0, keepdims=True).shape == (1,)
    assert gk.sum(np.array(3, np.int64), axis=()) == 3


@pytest.mark.parametrize("dtype", dtypes_of("sum"))
def test_the_sum_of_nothing_is_zero(dtype):
    for shape in ((0,), (0, 3), (3, 0)):
        assert gk.sum(np.empty(shape, dtype=DTYPES[dtype])) == 0
        assert gk.sum(gk.empty(shape, DTYPES[dtype])).to_host() == 0


@pytest.mark.parametrize(("variant", "dtype"), FIXED)
def test_the_same_bits_every_time(variant, dtype):
    for size in (1, 1000, 4097, 70_001):
        a = random(size, DTYPES[dtype], size)
        first = gk.sum(a, variant=variant).tobytes()
        device = gk.to_device(a)
        for _ in range(5):
            assert gk.sum(a, variant=variant).tobytes() == first
            assert gk.sum(device, variant=variant).to_host().tobytes() == first
            assert gk.sum(a[::-1][::-1], variant=variant).tobytes() == first


SUMS = """
import sys
sys.path.insert(0, sys.argv[1])
from arrays import DTYPES, random, variants
import gpukern as gk
for variant, dtype in variants("sum"):
    if variant != "atomic":
        for size in (1, 1000, 4097, 70_001):
            total = gk.sum(random(size, DTYPES[dtype], size), variant=variant)
            print(variant, dtype, size, total.tobytes().hex())
"""


def test_the_same_bits_in_any_order_of_threads(script, request):
    here = str(request.path.parent)
    outputs = set()
    for seed in ("1", "2", "987654321"):
        run = script(SUMS, here, GPUKERN_SIM_SEED=seed)
        assert run.returncode == 0, run.stderr
        outputs.add(run.stdout)
    assert len(outputs) == 1
    rows = [variant for variant, _ in variants("sum") if variant != "atomic"]
    assert len(outputs.pop().splitlines()) == 4 * len(rows)


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_large_arrays(variant, dtype):
    """More partial sums than the finish has threads, and then several rounds of them."""
    sizes = [4096 * 1024 + 4097] if variant in ("shuffle", "compensated") else [300_007]
    if on_gpu():
        sizes += [(1 << 27) - 157]
    for size in sizes:
        a = np.resize(random(1 << 16, DTYPES[dtype], 7), size)
        oracle.assert_sum(gk.sum(a, variant=variant), a, variant, f"{size} elements")


def test_halves_are_carried_in_float32():
    """2049 ones: float16 itself stops counting at 2048."""
    for dtype in ("float16", "bfloat16"):
        ones = np.ones(10_000, DTYPES[dtype])
        assert float(gk.sum(ones)) == float(DTYPES[dtype].type(10_000))


def test_int32_is_carried_in_int64():
    a = np.full(1001, np.iinfo(np.int32).max)
    assert gk.sum(a.astype(np.int32)) == 1001 * np.iinfo(np.int32).max


@given(
    data=st.data(),
    row=st.sampled_from(ROWS),
    shape=hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=40),
)
def test_any_view_of_any_array(data, row, shape):
    variant, dtype = row
    a = random(shape, DTYPES[dtype], 9)[data.draw(hnp.basic_indices(shape, allow_newaxis=True))]
    a = np.asarray(a)
    oracle.assert_sum(gk.sum(a, variant=variant), a, variant, f"{a.shape} {a.strides}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_one_special_value_anywhere(dtype, special):
    for variant, name in ROWS:
        if name != dtype:
            continue
        for place in (0, 31, 32, 255, 256, 4095, 4096, 5000):
            a = random(5001, DTYPES[dtype], 1)
            a[place] = special
            oracle.assert_sum(gk.sum(a, variant=variant), a, variant, f"{special} at {place}")
