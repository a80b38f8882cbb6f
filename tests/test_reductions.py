"""Reductions over any axes: NumPy's shapes, dtypes, special values and errors, and results as near
to the exact ones as the accumulation promises."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gpukern as gk
import oracle
from arrays import (
    DTYPES,
    LAYOUTS,
    REDUCTIONS,
    WALKED,
    Array,
    contents,
    dtypes_of,
    is_float,
    limits,
    on_device,
    on_gpu,
    places,
    random,
    same_bits,
    variants,
)
from gpukern import _core

LONG = oracle.LONG
EXTREMES = ("max", "min", "argmax", "argmin")
ACCURATE = ("float32", "float64")

# Little arrays; rows, short rows, columns, several segments of each, and axes that alternate.
SHAPES: tuple[tuple[tuple[int, ...], Any], ...] = (
    ((), None),
    ((), ()),
    ((17,), None),
    ((17,), ()),
    ((5003,), -1),
    ((3, 4, 5), 0),
    ((3, 4, 5), 1),
    ((3, 4, 5), 2),
    ((3, 4, 5), (0, 2)),
    ((3, 4, 5), (-3, 1)),
    ((3, 4, 5), (2, 1, 0)),
    ((2, 3, 4, 5, 6), (1, 3)),
    ((1, 7, 1), 1),
    ((257, 1), 1),
    ((257, 1), 0),
    ((3, 17_001), 1),
    ((17_001, 3), 0),
    ((3001, 33), 0),
    ((2, 701, 65), 1),
    ((301, 64), -1),
    ((8193, 3), 1),
    ((35_000, 2), 1),
    ((2101, 33), 1),
    ((1100, 64), -1),
    ((9, 8101), 0),
    ((7, 11, 40, 23), (1, 3)),
)


def wide_sum(x: Array, axis: Any) -> tuple[Array, Array]:
    """The sum and the sum of the absolute values, in more than any accumulator has."""
    wide = np.asarray(x).astype(LONG)
    return np.asarray(wide.sum(axis=axis)), np.asarray(np.abs(wide).sum(axis=axis))


def bound_of(op: str, a: Array, exact: Array, magnitude: Array, count: int) -> Array:
    """How far a sum of `count` terms, or what is made of it, may be off."""
    to = result_dtype(op, a.dtype)
    carried = oracle.roundoff(oracle.accumulator(to))
    relative = oracle.gamma(count + 1, carried)
    if to.name in ACCURATE:
        relative = relative**2
    relative += oracle.gamma(count + 1, oracle.roundoff(LONG))
    bound = relative * magnitude
    return bound + 2 * oracle.roundoff(to) * (np.abs(exact) + bound) + oracle.tiniest(to)


def result_dtype(op: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """NumPy's, but for sums and products of unsigned integers, which NumPy has in uint64."""
    dtype = dtype.newbyteorder("=")
    if op.startswith("arg"):
        return DTYPES["int64"]
    if is_float(dtype) or op in ("max", "min", "dot"):
        return dtype
    return oracle.sum_dtype(dtype) if op in ("sum", "prod") else DTYPES["float64"]


def assert_reduced(
    op: str, got: Any, a: Array, axis: Any, case: str, keepdims: bool = False
) -> None:
    """`got` is what NumPy would give, or within the bound of the exact result."""
    got = np.asarray(got)
    reduced = np.zeros(a.shape, np.int8).sum(axis=axis, keepdims=keepdims)
    assert got.shape == np.shape(reduced), f"{case}: shape {got.shape}"
    assert got.dtype == result_dtype(op, a.dtype), f"{case}: {got.dtype}"
    if keepdims:
        got = got.reshape(np.zeros(a.shape, np.int8).sum(axis=axis).shape)
    count = a.size // max(got.size, 1)
    with np.errstate(all="ignore"):
        if op in EXTREMES:
            want = np.asarray(getattr(np, op)(a.astype(a.dtype.newbyteorder("=")), axis=axis))
            assert np.array_equal(got, want, equal_nan=is_float(got.dtype)), f"{case}: {got} {want}"
        elif op == "prod":
            assert_product(got, a, axis, case)
        elif not is_float(got.dtype):
            np.testing.assert_array_equal(got, a.sum(axis, dtype=got.dtype), case)
        else:
            wide = a.astype(LONG)
            exact, magnitude = wide_sum(wide**2 if op == "norm" else wide, axis)
            if op == "mean":
                exact, magnitude = exact / max(count, 1), magnitude / max(count, 1)
            bound = bound_of(op, a, exact, magnitude, count)
            if op == "norm":
                exact, bound = (
                    np.sqrt(exact),
                    bound_of(op, a, np.sqrt(exact), np.sqrt(exact), count),
                )
            assert np.all(np.abs(got.astype(LONG) - exact) <= bound), f"{case}: {got} {exact}"


def assert_product(got: Array, a: Array, axis: Any, case: str) -> None:
    if not is_float(a.dtype):
        np.testing.assert_array_equal(got, a.prod(axis, dtype=got.dtype), case)
        return
    carried = oracle.accumulator(a.dtype)
    exact = a.astype(LONG).prod(axis=axis)
    count = a.size // max(got.size, 1)
    relative = oracle.gamma(count, oracle.roundoff(carried)) + oracle.roundoff(got.dtype) * 2
    relative += oracle.gamma(count, oracle.roundoff(LONG))
    assert np.all(np.abs(got.astype(LONG) - exact) <= relative * np.abs(exact)), case


def values_for(op: str, shape: tuple[int, ...], dtype: str, seed: int = 3) -> Array:
    """Values whose reduction neither overflows nor vanishes."""
    if op == "prod" and is_float(DTYPES[dtype]):
        return np.exp2(random(shape, DTYPES["float64"], seed) / 64).astype(DTYPES[dtype])
    values = random(shape, DTYPES[dtype], seed)
    if op in ("mean", "norm") and DTYPES[dtype].kind in "iu" and values.itemsize == 8:
        values >>= 12  # so that float64 holds them
    return values


# Columns of which a row is no even number of vectors, in single arrays and stacked ones, of
# several kept and reduced axes.
NARROW = (
    ((3001, 7), 0),
    ((4, 901, 24), 1),
    ((777, 4, 25), 0),
    ((211, 9, 13), (0, 1)),
    ((23, 9, 11, 6), (0, 1, 2)),
    ((2, 1201, 3, 11), 1),
    ((10_007, 2), 0),
)


@pytest.mark.costly(2)
@pytest.mark.usefixtures("by_vectors")
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8", "int32"])
@pytest.mark.parametrize(("shape", "axes"), NARROW)
@pytest.mark.parametrize("op", ["sum", "mean", "max", "argmin"])
def test_narrow_columns_wherever_they_lie(shape, axes, dtype, op):
    """Right, and with the same bits in any order of the axes in memory and apart."""
    if op == "argmin" and not isinstance(axes, int):
        pytest.skip("one axis or None")
    a = random(shape, DTYPES[dtype], 5)
    want = getattr(gk, op)(gk.to_device(a), axes).to_host()
    assert_reduced(op, want, a, axes, f"{op} {shape} {axes}")
    ways = [(order, slice(None)) for order in itertools.permutations(range(len(shape)))]
    for order, cut in [*ways, (tuple(range(len(shape))), slice(None, None, 2))]:
        held = np.repeat(a, 2 if cut.step else 1, axis=-1).transpose(order)
        there = gk.to_device(np.ascontiguousarray(held))
        there = there.transpose(tuple(int(i) for i in np.argsort(order)))[..., cut]
        same_bits(getattr(gk, op)(there, axes).to_host(), want, f"{op} {shape} {axes} {order}")


# Matrices of few columns, so many that a block has several: with threads left over and without.
MATRICES = (
    ("float16", (11_303, 103, 3)),
    ("float16", (801, 173, 25)),
    ("int16", (5_003, 180, 4)),
)
# So many columns that a block has all rows of some, and some for which each would have too many.
SHARED_OUT = (
    ("float32", (1, 601, 2_003)),
    ("float32", (1, 1_800, 1_203)),
    ("float64", (3, 301, 1_101)),
    ("uint8", (2, 1_500, 1_701)),
)


@pytest.mark.costly(2)
@pytest.mark.parametrize(("dtype", "shape"), (*MATRICES, *SHARED_OUT))
@pytest.mark.parametrize("op", ["sum", "max", "argmin"])
def test_columns_of_matrices(op, dtype, shape):
    """The same where they lie apart, and where so do their rows."""
    a = random(shape, DTYPES[dtype], 5)
    got = getattr(gk, op)(gk.to_device(a), 1).to_host()
    assert_reduced(op, got, a, 1, f"{op} {shape}")
    for more in ((1, 1, 0), (0, 0, 1)):
        held = gk.zeros(np.add(shape, more), dtype)
        view = held[more[0] :, more[1] :, more[2] :]
        view[...] = a
        oracle.assert_same(getattr(gk, op)(view, 1).to_host(), got, f"{op} {shape} {more}")


@pytest.mark.costly(5)
@pytest.mark.usefixtures("walks")
@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("dtype", WALKED)  # test_other_dtypes.py has the others
def test_axes(op, dtype, balanced):
    for shape, axis in SHAPES:
        if op.startswith("arg") and isinstance(axis, tuple):
            continue
        a = values_for(op, shape, dtype)
        for place, x in (("host", a), ("device", gk.to_device(a))):
            got = np.asarray(getattr(gk, op)(x, axis=axis))
            assert_reduced(op, got, a, axis, f"{place} {shape} {axis}")


@pytest.mark.parametrize("op", ["sum", "argmin"])
@pytest.mark.parametrize("shape", [(8, 140_001), (15, 70_002), (3, 131_074)])
def test_many_columns_that_are_short(op, shape):
    a = values_for(op, shape, "float64")
    assert_reduced(op, getattr(gk, op)(gk.to_device(a), 0).to_host(), a, 0, f"{shape}")


@pytest.mark.costly(2)
@pytest.mark.parametrize("op", ["sum", "max", "argmin"])
@pytest.mark.parametrize(("dtype", "length"), [("uint8", 21), ("float16", 11), ("int32", 9)])
def test_millions_of_short_rows(op, dtype, length):
    """Ragged, with space behind each, with gaps, and with kept axes in the order of memory."""
    a = values_for(op, (421, 4_300_000 // 421 // length, 2 * length), dtype, 7)
    there = gk.to_device(a)
    for cut in (slice(length), slice(0, length - 1), slice(None, None, 2)):
        of = a[..., cut]
        want = np.asarray(getattr(gk, op)(np.ascontiguousarray(of), -1))
        assert_reduced(op, want, of, -1, f"{of.shape}")
        oracle.assert_same(getattr(gk, op)(there[..., cut], -1).to_host(), want, "a view")
        turned = getattr(gk, op)(there.transpose(1, 0, 2)[..., cut], -1).to_host()
        oracle.assert_same(turned, want.T, "turned")


@pytest.mark.parametrize("op", REDUCTIONS)
def test_keepdims(op):
    for shape, axis in (((3, 4, 5), 1), ((3, 4, 5), None), ((4, 5), -1), ((2, 3, 4), (0, 2))):
        if op.startswith("arg") and isinstance(axis, tuple):
            continue
        a = values_for(op, shape, "float32")
        got = getattr(gk, op)(a, axis, keepdims=True)
        assert_reduced(op, got, a, axis, f"{shape} {axis}", keepdims=True)
        out = np.empty_like(got)
        assert getattr(gk, op)(gk.to_device(a), axis, out=out, keepdims=True) is out
        oracle.assert_same(out, got, "out")


@pytest.mark.costly(3)
@pytest.mark.usefixtures("walks")
@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_layouts(op, dtype):
    """Every layout has the bits of the contiguous array, on the host and on the device."""
    for shape, axis in itertools.product(((21, 33), (2101, 33)), (0, 1, None)):
        a = values_for(op, shape, dtype)
        want = np.asarray(getattr(gk, op)(a, axis))
        for case, layout in LAYOUTS.items():
            x = layout(a)
            of_it = want
            if case == "repeated":  # which alone holds other values
                of_it = np.asarray(getattr(gk, op)(np.ascontiguousarray(x), axis))
            oracle.assert_same(getattr(gk, op)(x, axis), of_it, f"{case} {axis}")
        for case, place in places(a.shape, a.dtype):
            there = on_device(place, a)
            got = getattr(gk, op)(there.view, axis).to_host()
            oracle.assert_same(got, want, f"device {case} {axis}")
            assert there.holds(a), f"{case}: the array was changed"


@pytest.mark.parametrize("op", REDUCTIONS)
def test_out(op):
    a = values_for(op, (33, 257), "float32")
    for axis in (0, 1):
        want = np.asarray(getattr(gk, op)(a, axis))
        for case, place in places(want.shape, want.dtype):
            block = place.block()
            out = place.view(block)
            assert getattr(gk, op)(a, axis, out=out) is out
            np.testing.assert_array_equal(block, place.block(want), case)
            there = on_device(place)
            assert getattr(gk, op)(gk.to_device(a), axis, out=there.view) is there.view
            assert there.holds(want), f"{case}: wrong, or written outside of out"


def test_out_inside_the_array():
    a = random((40, 50), DTYPES["float32"], 4)
    want = gk.sum(a, 0)
    device = gk.to_device(a)
    gk.sum(device, 0, out=on_rows(device))
    oracle.assert_same(device.to_host()[7], want, "a row of the operand")


def on_rows(device: gk.DeviceArray) -> Any:
    """Row 7 of a device array, as another library would hand it over."""

    class Row:
        def __init__(self):
            whole = device.__cuda_array_interface__
            address = whole["data"][0] + 7 * device.itemsize * device.shape[1]
            changes = {"shape": device.shape[1:], "strides": None, "data": (address, False)}
            self.__cuda_array_interface__ = {**whole, **changes}

    return Row()


# --- dtypes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "of", "to"),
    [
        *(
            ("sum", of, to)
            for of in ("int8", "uint8", "int32", "int64")
            for to in ("int8", "int64")
        ),
        *(("sum", of, "float64") for of in ("int8", "int64", "float16", "bfloat16", "float32")),
        *(("mean", of, "float64") for of in ("int8", "float16", "bfloat16", "float32")),
        *((op, of, "float32") for op in ("sum", "mean", "prod") for of in ("float16", "bfloat16")),
        *(("prod", of, to) for of in ("int8", "uint8") for to in ("uint8", "int32")),
    ],
)
def test_dtype(op, of, to):
    a = values_for(op, (50, 401), of)
    for axis in (None, 0, 1):
        got = np.asarray(getattr(gk, op)(a, axis, dtype=to))
        assert got.dtype == DTYPES[to]
        with np.errstate(all="ignore"):
            want = np.asarray(getattr(np, op)(a.astype(DTYPES[to]), axis=axis, dtype=DTYPES[to]))
        if is_float(got.dtype):
            np.testing.assert_allclose(
                got, want, rtol=1e-5 if to == "float32" else 1e-13, atol=1e-4
            )
        else:
            np.testing.assert_array_equal(got, want)


def test_a_sum_in_float64_does_not_overflow_in_float32():
    a = np.full(20_000, 3e38, np.float32)
    assert gk.sum(a) == np.inf
    assert gk.sum(a, dtype="float64") == 20_000 * float(a[0])


@pytest.mark.parametrize("dtype", [name for name in DTYPES if not is_float(DTYPES[name])])
def test_integers_wrap_around(dtype):
    for value in limits(DTYPES[dtype]):
        a = np.full((40, 70), value, dtype)
        for axis in (None, 0, 1):
            with np.errstate(over="ignore"):
                want = a.prod(axis=axis, dtype=oracle.sum_dtype(a.dtype))
                total = a.sum(axis=axis, dtype=oracle.sum_dtype(a.dtype))
            np.testing.assert_array_equal(gk.prod(a, axis), want)
            np.testing.assert_array_equal(gk.sum(a, axis), total)
        with np.errstate(over="ignore"):
            assert gk.dot(a[0], a[1]) == np.dot(a[0], a[1])


# --- special values ---------------------------------------------------------------------------


@pytest.mark.usefixtures("walks")
@pytest.mark.parametrize("op", [op for op in REDUCTIONS if op != "prod"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(op, dtype):
    """NaN and infinity as NumPy has them, whatever they stand beside."""
    for case, flat in contents(DTYPES[dtype], 1036):
        if "overflow" in case or (dtype in ("int64", "uint64") and op in ("mean", "norm")):
            continue
        a = flat.reshape(37, 28)
        for axis in (None, 0, 1):
            got = np.asarray(getattr(gk, op)(a, axis))
            with np.errstate(all="ignore"):
                wide = a.astype(LONG)
                if op in EXTREMES:
                    want = np.asarray(getattr(np, op)(a, axis=axis))
                    assert np.array_equal(got, want, equal_nan=is_float(got.dtype)), case
                    continue
                want = np.asarray(
                    np.sqrt((wide**2).sum(axis=axis))
                    if op == "norm"
                    else getattr(np, op)(wide, axis=axis)
                )
            special = ~np.isfinite(want)
            np.testing.assert_array_equal(
                got[special].astype(LONG), want[special], f"{case} {axis}"
            )


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_one_special_value_anywhere(dtype):
    for special in (np.nan, np.inf, -np.inf):
        for at in (0, 31, 255, 4095, 4096, 16_384, 20_000):
            a = np.abs(random(20_001, DTYPES[dtype], 1)) + DTYPES[dtype].type(1)
            a[at] = special
            want = np.float64(special)
            assert np.array_equal(float(gk.sum(a)), want, equal_nan=True), (special, at)
            assert np.array_equal(float(gk.mean(a)), want, equal_nan=True), (special, at)
            assert np.array_equal(float(gk.norm(a)), np.abs(want), equal_nan=True), (special, at)
            greatest = float(a[np.isfinite(a.astype(float))].max()) if special < 0 else want
            assert np.array_equal(float(gk.max(a)), greatest, equal_nan=True), (special, at)
            assert gk.argmax(a) == np.argmax(a.astype(np.float32)), (special, at)
            assert gk.argmin(a) == np.argmin(a.astype(np.float32)), (special, at)


@pytest.mark.costly(2)
@pytest.mark.usefixtures("walks")
@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", WALKED)  # test_other_dtypes.py has the others
def test_the_first_of_several(op, dtype):
    """Also where every element is the worst that there is."""
    lowest, highest = (-np.inf, np.inf) if is_float(DTYPES[dtype]) else limits(DTYPES[dtype])
    for fill in (lowest, highest, 1):
        a = np.full((3, 20_011), fill, DTYPES[dtype])
        for axis in (None, 0, 1):
            assert not np.any(getattr(gk, op)(a, axis)), (fill, axis)
    rng = np.random.default_rng(5)
    a = rng.integers(0, 3, (70, 20_011)).astype(DTYPES[dtype])
    for axis in (None, 0, 1):
        np.testing.assert_array_equal(getattr(gk, op)(a, axis), getattr(np, op)(a, axis=axis))


def test_the_first_nan():
    a = np.zeros((5, 40_000), np.float32)
    a[:, 39_000] = np.inf
    a[1, 30_000:] = np.nan
    a[3, [7, 20_000]] = np.nan
    np.testing.assert_array_equal(gk.argmax(a, 1), np.argmax(a, 1))
    np.testing.assert_array_equal(gk.argmin(a, 0), np.argmin(a, 0))
    assert gk.argmax(a) == np.argmax(a)


# Outer, length and inner: what is taken element by element where any order does, and what is not,
# in the kinds that the plan tells apart (csrc/ops/reduce_plan.c).
ANY_ORDER = [
    (1, 256, 2001),
    (1, 2048, 257),
    (7, 100, 33),
    (1, 130, 4099),
    (3, 4096, 150),
    (1, 127, 5000),
]
ANY_ORDER += [(3001, 100, 1), (5300, 100, 1), (1, 140, 16_385), (1, 4097, 17), (1, 2100, 2100)]


@pytest.mark.costly(4)
@pytest.mark.usefixtures("walks")
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float64"])
@pytest.mark.parametrize("shape", ANY_ORDER)
def test_what_needs_no_order(shape, dtype):
    """The first of many that are the same; NaN; along the axis as it lies, and turned."""
    rng = np.random.default_rng(9)
    a = rng.integers(0, 90, shape).astype(DTYPES[dtype])
    if is_float(DTYPES[dtype]):
        a[0, 50, :: shape[2] // 3 + 1] = np.nan
        a[0, 70] = np.nan
    held = gk.to_device(a)
    turned = gk.to_device(np.ascontiguousarray(a.transpose(2, 1, 0))).transpose(2, 1, 0)
    for op in ("argmax", "argmin", "max", "min", *(() if is_float(DTYPES[dtype]) else ("sum",))):
        want = np.asarray(getattr(np, op)(a, axis=1))
        if op == "sum":
            want = want.astype(oracle.sum_dtype(a.dtype))
        for there in (held, turned):
            oracle.assert_same(getattr(gk, op)(there, 1).to_host(), want, f"{op} {shape}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_elements(dtype):
    for shape, axis in (
        *(((0,), None), ((3, 0), 1), ((0, 3), 0), ((0, 3), 1), ((2, 0, 3), (0, 1))),
        *(((2, 0, 5), 1), ((70, 0, 64), 1), ((3, 0, 3, 40), 1), ((9000, 0, 2), 1)),
    ):
        a = np.empty(shape, DTYPES[dtype])
        for x in (a, gk.to_device(a)):
            for op, fill in (("sum", 0), ("prod", 1), ("norm", 0), ("mean", np.nan)):
                got = np.asarray(getattr(gk, op)(x, axis))
                assert got.shape == np.shape(np.sum(np.empty(shape), axis=axis)), (op, shape)
                assert np.array_equal(got.astype(float), np.full(got.shape, fill), equal_nan=True)
    nothing = np.empty((0, 3), DTYPES[dtype])
    for op in EXTREMES:
        assert getattr(gk, op)(nothing, 1).shape == (0,)
    vector = np.empty(0, DTYPES[dtype])
    assert gk.dot(vector, vector) == 0


def test_the_sign_of_zero():
    for shape in ((3,), (40_000,)):
        for dtype in ("float32", "float64", "float16"):
            a = np.full(shape, -0.0, dtype)
            assert not np.signbit(gk.sum(a)), "as NumPy's"
            assert not np.signbit(gk.sum(np.tile(a[:100], (9, 1)), 0)).any()
            assert not np.signbit(gk.sum(gk.to_device(a[:, None]), 1).to_host()).any()


@pytest.mark.usefixtures("walks")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_two_zeros_are_equal_to_an_index(dtype):
    for first in (-0.0, 0.0):
        a = np.full((2003, 9), -first, DTYPES[dtype])
        a[0] = first
        there = gk.to_device(a)
        for op in (gk.argmax, gk.argmin):
            assert not op(there, 0).to_host().any()
            assert op(there).to_host() == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("count", [2, 1003, 40_001])
def test_the_greater_of_two_zeros(dtype, count):
    """NumPy leaves open which one it is; here it does not depend on the order."""
    for first in (-0.0, 0.0):
        a = np.full(count, -first, DTYPES[dtype])
        a[0] = first
        assert not np.signbit(np.float64(gk.max(a))) and np.signbit(np.float64(gk.min(a)))
        both = np.stack((a, a[::-1]))
        assert not np.signbit(gk.max(both, 0).astype(np.float64))[[0, -1]].any()
        assert np.signbit(gk.min(both, 0).astype(np.float64))[[0, -1]].all()
    assert np.signbit(np.float64(gk.max(np.full(count, -0.0, DTYPES[dtype]))))


@pytest.mark.parametrize("op", ["sum", "prod", "mean", "max", "min", "argmax", "norm"])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint64", "bool", "float16", "float32"])
def test_axes_of_a_single_element(op, dtype):
    """What is one element is only converted, wherever it lies."""
    if op == "prod" and dtype == "bool":
        dtype = "int8"
    a = values_for(op, (37, 1, 50, 1), dtype)
    there = gk.to_device(a)
    axes: tuple[Any, ...] = (1, 3) if op == "argmax" else (1, 3, (1, 3))
    for axis in axes:
        for case, part in (("all", np.s_[:]), ("steps", np.s_[::-2, :, 1::3]), ("one", np.s_[:1])):
            for keepdims in (False, True) if op != "argmax" else (False,):
                named = {"keepdims": True} if keepdims else {}
                got = getattr(gk, op)(there[part], axis, **named).to_host()
                assert_reduced(op, got, a[part], axis, f"{case} {axis}", keepdims=keepdims)
    assert np.asarray(gk.sum(gk.to_device(a[:1, :, :1]))).item() == a[0, 0, 0, 0]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_the_norm_of_a_single_float(dtype):
    """Its absolute value, also where its square is no float of its size."""
    kind = DTYPES[dtype]
    most, least = np.finfo(kind).max, np.finfo(kind).smallest_subnormal
    a = np.array([most, -most, least, -least, -0.0, -np.inf, np.nan, -3.3], kind)
    for lying in (gk.to_device(a[:, None]), gk.to_device(np.stack((a, a), 1))[:, 1:]):
        oracle.assert_same(np.asarray(gk.norm(lying, 1)), np.abs(a), "a row each")
    oracle.assert_same(gk.norm(a[None], 0), np.abs(a), "a NumPy array")
    many = np.resize(a, (3_000_001, 1))
    oracle.assert_same(gk.norm(many, 1), np.abs(many[:, 0]), "one that comes in chunks")


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "uint8"])
def test_extremes_of_turned_arrays(op, dtype):
    """As they lie: which value is the greatest does not depend on the order, nor does NaN."""
    a = np.random.default_rng(5).standard_normal((7, 33, 130)) * 50
    if dtype != "uint8":
        a[3, 4, 5] = a[0, 0, 129] = np.nan
    a = np.abs(a).astype(dtype)
    for order in ((2, 0, 1), (1, 2, 0), (2, 1, 0)):
        for axes in (None, (0, 1, 2), (0, 2), 1, (1, 2)):
            turned = a.transpose(order)
            got = getattr(gk, op)(gk.to_device(a).transpose(order), axes)
            assert np.array_equal(
                np.asarray(got), getattr(turned, op)(axes), equal_nan=dtype != "uint8"
            ), (order, axes)


# --- accuracy ---------------------------------------------------------------------------------


def cancelling(count: int) -> Array:
    """1e8 and -1e8 among many tiny values of both signs, each of them lost beside 1e8."""
    a = np.where(np.arange(count) % 2, -1e-8, 3e-8).astype(np.float32)
    # Up to 32 times 1e8 is a float32 exactly: their own sum costs nothing.
    places = np.random.default_rng(8).permutation(count)[:60]
    a[places[::2]], a[places[1::2]] = 1e8, -1e8
    return a


def ulp(x: float, dtype: str) -> float:
    return float(np.spacing(np.abs(DTYPES[dtype].type(x))))


def test_cancellation():
    for count in (30_003, 500_003):
        a = cancelling(count)
        exact = math.fsum(a.tolist())
        for x in (a, gk.to_device(a)):
            assert abs(float(np.asarray(gk.sum(x))) - exact) <= ulp(exact, "float32")
        for variant in [v.variant for v in gk.variants("sum", "float32")][:-1]:
            assert abs(float(gk.sum(a, variant=variant)) - exact) > 0.5 * exact, variant


@pytest.mark.parametrize("dtype", ACCURATE)
@pytest.mark.parametrize("count", [1, 3, 1000, 16_384, 16_385, 200_003])
def test_a_sum_is_rounded_once(dtype, count):
    """Against math.fsum, which is exact: half a unit in the last place, plus a rounding squared."""
    for condition in (0, 6, 12):
        rng = np.random.default_rng(count)
        a = rng.standard_normal(count) * 10.0 ** rng.uniform(-condition, condition, count)
        a = np.concatenate([a, -a[: count // 2] * (1 + 1e-6)]).astype(dtype)
        rng.shuffle(a)
        exact = math.fsum(a.tolist())
        u = oracle.roundoff(DTYPES[dtype])
        bound = 0.5 * ulp(exact, dtype) + (300 * u) ** 2 * float(np.abs(a).sum(dtype=np.float64))
        assert abs(Fraction(float(gk.sum(a))) - Fraction(exact)) <= bound * 1.0001
        mean = exact / a.size
        assert abs(float(gk.mean(a)) - mean) <= 1.01 * ulp(mean, dtype) + 2 * bound / a.size
        rows = np.tile(a, (3, 1))
        for got in (*gk.sum(rows, 1), *gk.sum(np.ascontiguousarray(rows.T), 0)):
            assert abs(float(got) - exact) <= 2 * bound


@pytest.mark.usefixtures("walks")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_means_are_quotients_rounded_once(dtype):
    """Of numbers of all magnitudes, and of none: the other elements are zeros."""
    rng = np.random.default_rng(11)
    limit = 1022 if dtype == "float64" else 126
    numbers = rng.uniform(1, 2, 3000) * np.exp2(rng.integers(-limit, limit, 3000))
    numbers[:9] = [0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -3e-310, 1.7e308, 1e-45]
    with np.errstate(over="ignore"):
        numbers = numbers.astype(dtype)
    for length in (1, 3, 7, 11, 49, 97, 1000):
        a = np.zeros((length, numbers.size), dtype)
        a[length // 2] = numbers
        with np.errstate(under="ignore"):
            want = ((numbers.astype(np.float64) + 0.0) / length).astype(dtype)
        for x, axis in ((gk.to_device(a), 0), (gk.to_device(np.ascontiguousarray(a.T)), 1)):
            oracle.assert_same(gk.mean(x, axis).to_host(), want, f"{dtype} {length}")


def test_a_mean_is_divided_before_it_is_rounded():
    """Rounded to float32 the sum is 2^24, a fifth of which is another number."""
    a = np.array([2**24, 1, 0, 0, 0], np.float32)
    assert gk.mean(a) == np.float32((2**24 + 1) / 5) != np.float32(2**24 / 5)


@pytest.mark.parametrize("dtype", dtypes_of("dot"))
@pytest.mark.parametrize("count", [0, 1, 17, 4097, 16_385, 140_001])
def test_dot(dtype, count):
    a, b = (random(count, DTYPES[dtype], seed) for seed in (1, 2))
    if not is_float(DTYPES[dtype]):
        with np.errstate(over="ignore"):
            want = np.dot(a, b)
        for got in (gk.dot(a, b), gk.dot(gk.to_device(a), b).to_host(), gk.dot(a[::-1], b[::-1])):
            oracle.assert_same(np.asarray(got), np.asarray(want), "integers")
        return
    products = a.astype(LONG) * b.astype(LONG)
    exact, magnitude = wide_sum(products, None)
    bound = bound_of("dot", a, exact, magnitude, count)
    got = gk.dot(a, b)
    assert got.dtype == DTYPES[dtype]
    assert abs(LONG.type(got) - exact) <= bound
    for x, y in ((gk.to_device(a), gk.to_device(b)), (a, gk.to_device(b))):
        oracle.assert_same(gk.dot(x, y).to_host(), np.asarray(got), "device")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_dot_of_vectors_at_any_two_places(dtype):
    """One may be aligned for wide loads where the other one is not."""
    a, b = (random(5003, DTYPES[dtype], seed) for seed in (1, 2))
    want = np.asarray(gk.dot(a, b))
    for one, place in places(a.shape, a.dtype):
        for other, beside in places(b.shape, b.dtype):
            got = gk.dot(on_device(place, a).view, on_device(beside, b).view)
            oracle.assert_same(got.to_host(), want, f"{one} and {other}")


def test_dot_is_rounded_once():
    a, b = random(70_001, DTYPES["float32"], 1), random(70_001, DTYPES["float32"], 2)
    a[:35_000], b[:35_000] = a[-35_000:] * np.float32(-1), b[-35_000:]
    exact = math.fsum((a.astype(float) * b.astype(float)).tolist())
    assert abs(float(gk.dot(a, b)) - exact) <= 0.501 * ulp(exact, "float32") + 1e-8


@pytest.mark.parametrize(("dtype", "digits"), [("float32", 24), ("float64", 53)])
def test_what_products_lose_is_part_of_a_dot(dtype, digits):
    """The first half of the products lose the same half unit, and the others are exact."""
    a, b = (1 + 2.0**-n for n in (digits // 2, digits - digits // 2))
    left = np.repeat([a, 1.0], 5000).astype(dtype)
    right = np.repeat([b, -(a + b - 1)], 5000).astype(dtype)
    assert float(gk.dot(left, right)) == 5000 * 2.0**-digits


def test_norm_overflows_as_numpy():
    for dtype in ACCURATE:
        a = np.full(10, np.finfo(dtype).max / 2, dtype)
        with np.errstate(over="ignore"):
            assert gk.norm(a) == np.linalg.norm(a) == np.inf


# --- what there is ----------------------------------------------------------------------------


def test_every_dtype_has_every_reduction():
    for op in (*REDUCTIONS, "dot"):
        assert set(dtypes_of(op)) == set(DTYPES), op


@pytest.mark.parametrize(("variant", "dtype"), variants("sum"))
def test_variants_over_an_axis(variant, dtype):
    """Those that finish in one launch; the steps before them say that they cannot."""
    a = random((70, 65), DTYPES[dtype])
    if variant in ("single_launch", "compensated"):
        for axis in (0, 1):
            got = gk.sum(a, axis, variant=variant)
            if not is_float(a.dtype):
                np.testing.assert_array_equal(got, a.sum(axis, dtype=oracle.sum_dtype(a.dtype)))
                continue
            wide = np.abs(a.astype(float)).sum(axis=axis)
            np.testing.assert_allclose(
                got.astype(float), a.astype(float).sum(axis=axis), rtol=0, atol=1e-2 * wide.max()
            )
        return
    with pytest.raises(ValueError, match=f"sum: variant '{variant}'"):
        gk.sum(a, 0, variant=variant)


def test_an_array_that_does_not_fit_on_the_device():
    """By panels of kept axes, with the bits of the whole; the limit holds whatever the length."""
    for shape, axis in (
        ((300, 1001), 1),
        ((1001, 300), 0),
        ((9, 200, 70), 1),
        ((9, 70, 200), (0, 2)),
    ):
        a = random(shape, DTYPES["float32"], 6)
        for op in ("sum", "argmax") if not isinstance(axis, tuple) else ("sum", "max"):
            want = np.asarray(getattr(gk, op)(gk.to_device(a), axis))
            with gk.limits(device_memory=a.nbytes // 7, mapped_call=0):
                oracle.assert_same(getattr(gk, op)(a, axis), want, f"{op} {shape}")
                oracle.assert_same(getattr(gk, op)(a[::-1, ::-1][::-1, ::-1], axis), want, "view")


@pytest.mark.skipif(not on_gpu(), reason="large arrays need a GPU")
def test_large_arrays():
    rng = np.random.default_rng(1)
    for shape, axis in (
        ((64, 1 << 20), 0),
        ((64, 1 << 20), 1),
        ((1 << 20, 64), 0),
        ((1 << 20, 64), 1),
    ):
        a = rng.standard_normal(shape, np.float32)
        got = gk.sum(gk.to_device(a), axis).to_host()
        want = a.astype(np.float64).sum(axis=axis)
        bound = 0.51 * np.spacing(np.abs(want).astype(np.float32)) + 1e-9 * np.abs(a).sum(axis=axis)
        assert (np.abs(got - want) <= bound).all(), (shape, axis)
        np.testing.assert_array_equal(gk.argmax(gk.to_device(a), axis).to_host(), a.argmax(axis))


@given(
    data=st.data(),
    op=st.sampled_from(REDUCTIONS),
    dtype=st.sampled_from(sorted(DTYPES)),
    shape=hnp.array_shapes(min_dims=0, max_dims=5, min_side=1, max_side=9),
)
def test_any_axes_of_any_view(data, op, dtype, shape):
    view = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    a = np.asarray(values_for(op, shape, dtype, 9)[view])
    if a.size == 0:
        return
    axes = st.integers(-a.ndim, a.ndim - 1) if a.ndim else st.none()
    if not op.startswith("arg"):
        axes = st.one_of(axes, st.sets(st.integers(0, a.ndim - 1)).map(tuple)) if a.ndim else axes
    axis = data.draw(st.one_of(st.none(), axes))
    x = gk.to_device(a) if data.draw(st.booleans()) else a
    assert_reduced(op, np.asarray(getattr(gk, op)(x, axis)), a, axis, f"{a.shape} {axis}")


def test_the_names_of_internal_rows_stay_inside():
    assert {row["op"] for row in _core.rows()} > {"sum", "sum_short", "sum_columns", "sum_wide"}
    assert all(hasattr(gk, v.op) for v in gk.variants())
    assert ml_dtypes.bfloat16 in {DTYPES[v.dtype].type for v in gk.variants("mean")}


@pytest.mark.parametrize("axis", [None, 0, -1, (), np.int8(0)])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_of_no_axes_any_that_numpy_takes(op, axis):
    if isinstance(axis, tuple) and op.startswith("arg"):
        pytest.skip("one axis or None")
    a = np.float32(-3)[...]
    want = {"norm": 3, "argmax": 0, "argmin": 0}.get(op, -3)
    for x in (a, gk.to_device(a)):
        for keepdims in (False, True):
            got = np.asarray(getattr(gk, op)(x, axis, keepdims=keepdims))
            assert got.shape == ()
            assert got == want, (op, axis)


def test_of_no_axes_none_that_numpy_refuses():
    a = np.float32(3)[...]
    for axis in (1, -2, (0,), (-1,), 2**70):
        with pytest.raises(ValueError, match=r"sum: axis .* does not fit a 0-d array"):
            gk.sum(a, axis)


# More than 4 MiB, of which a launch takes a short axis first, where a copy would have to be made.
SHORT_STAGES = (
    ((2, 337, 3, 701), (0, 2)),
    ((3, 384, 100, 1, 3, 10), (0, 4)),
    ((2, 90, 2, 7001), (0, 2)),
)


@pytest.mark.costly(2)
@pytest.mark.parametrize(("shape", "axis"), SHORT_STAGES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_short_axes_that_alternate(shape, axis, dtype):
    a = random(shape, DTYPES[dtype], 6)
    held = random((*shape[:-1], shape[-1] + 1), DTYPES[dtype], 6)
    for op in ("sum", "max", "mean"):
        got = np.asarray(getattr(gk, op)(gk.to_device(a), axis))
        assert_reduced(op, got, a, axis, f"{shape} {axis}")
        cut, packed = gk.to_device(held)[..., 1:], gk.to_device(np.ascontiguousarray(held[..., 1:]))
        oracle.assert_same(*(getattr(gk, op)(x, axis).to_host() for x in (cut, packed)), op)


# Axes that stay between reduced ones and behind these: columns whose rows lie in several places.
# More elements than a single launch finds; threads go down columns of 64 rows or fewer alone, along
# two axes or along a list of rows.
SCATTERED = (
    ((6, 48, 4, 480), (0, 2)),
    ((2, 45, 3, 90, 101), (0, 2)),
    ((2, 31, 3, 30, 4, 50), (0, 2, 4)),
    ((9, 15, 13, 320, 1), (0, 2, 4)),  # more rows
    ((2, 330, 3, 7, 2, 15), (0, 2, 4)),  # in runs of half a sector
    ((5, 13, 3, 60, 2, 104), (0, 2, 4)),
    ((2, 45, 3, 95, 2, 50), (0, 2, 4)),
    ((5, 37, 2, 2907, 1), (0, 2, 4)),
)


@pytest.mark.costly(3)
@pytest.mark.parametrize(
    ("shape", "axis", "dtype"),
    [
        *((*case, dtype) for case in SCATTERED for dtype in ("float16", "float32")),
        *((*case, dtype) for case in SCATTERED[:3] for dtype in ("float64", "uint8", "int32")),
    ],
)
def test_columns_whose_rows_are_scattered(shape, axis, dtype):
    """The same however they lie, on the device and where they come from the host in pieces."""
    a = random(shape, DTYPES[dtype], 7)
    cut = tuple(slice(1, None) for _ in shape)
    second = (..., slice(1, None, 2))
    views = {"turned": gk.to_device(np.ascontiguousarray(a.T)).T}
    for name, which, sides in (
        ("cut", cut, [side + 1 for side in shape]),
        ("every second", second, [*shape[:-1], 2 * shape[-1] + 1]),
    ):
        views[name] = gk.zeros(sides, dtype)[which]
        views[name][...] = a
    for op in ("sum", "max", "mean") if dtype == "float32" else ("sum", "max"):
        reduction = getattr(gk, op)
        got = np.asarray(reduction(gk.to_device(a), axis))
        assert_reduced(op, got, a, axis, f"{shape} {axis}")
        for name, view in views.items():
            oracle.assert_same(reduction(view, axis).to_host(), got, f"{op} {name}")
        with gk.limits(device_memory=a.nbytes // 2, mapped_call=0):
            oracle.assert_same(reduction(a, axis), got, f"{op} in panels")


@pytest.mark.parametrize(("dtype", "length"), [("float32", 32), ("float64", 64)])
def test_short_rows_of_more_than_the_cache_holds(dtype, length):
    """Rows of 8 and of 32 vectors, of which more lanes take one or two each: the same in a view,
    and from the host, piece by piece."""
    rows = (48 << 20) // (length * DTYPES[dtype].itemsize) + 1
    a = random((rows, length), DTYPES[dtype], 5)
    got = gk.sum(gk.to_device(a), 1).to_host()
    assert_reduced("sum", got, a, 1, f"{a.shape}")
    wide = gk.empty((rows, length + 3), dtype)
    wide[:, 3:] = a
    oracle.assert_same(gk.sum(wide[:, 3:], 1).to_host(), got, "a view")
    oracle.assert_same(gk.sum(a, 1), got, "from the host")


# More than 1 MiB, of which a launch takes a long group of axes first, and others what it leaves.
STAGED = {
    "float16": ((9, 11, 900, 29, 1), (0, 2, 4)),
    "float32": ((5, 11, 300, 29, 3), (0, 2, 4)),
    "int32": ((3, 1100, 40, 2, 4), (1, 3)),
    "uint8": ((20, 300, 701), (0, 2)),
    "float64": ((31, 2, 401, 8, 3), (0, 2, 4)),
}


@pytest.mark.costly(2)
@pytest.mark.parametrize("op", ["sum", "mean", "prod", "max", "norm"])
@pytest.mark.parametrize("dtype", STAGED)
def test_axes_that_alternate_in_a_large_array(op, dtype):
    shape, axis = STAGED[dtype]
    a = values_for(op, shape, dtype)
    if op == "prod" and is_float(a.dtype):
        a = np.where(random(shape, DTYPES["int8"], 3) < 0, -1, 1).astype(a.dtype)
    there = gk.to_device(a)
    got = np.asarray(getattr(gk, op)(there, axis))
    assert_reduced(op, got, a, axis, f"{shape} {axis}")
    for which in (np.s_[:, 1:], np.s_[:, ::-1]):
        want = np.asarray(getattr(gk, op)(gk.to_device(np.ascontiguousarray(a[which])), axis))
        oracle.assert_same(getattr(gk, op)(there[which], axis).to_host(), want, f"{which}")
    with gk.limits(device_memory=a.nbytes // 2, mapped_call=0):
        oracle.assert_same(getattr(gk, op)(a, axis), got, f"panels {shape}")


def test_a_sum_in_stages_is_rounded_once():
    """What the first stage leaves has more digits than float32, and they cancel in the second."""
    a = random((40, 30, 1000), DTYPES["float32"], 4)
    a[0, :, 0], a[1, :, 0] = 2**20, -(2**20)
    exact = np.array([math.fsum(a[:, i].ravel().tolist()) for i in range(30)])
    for dtype in ("float32", "float64"):
        got = gk.sum(gk.to_device(a), (0, 2), dtype=dtype).to_host()
        assert np.all(np.abs(got - exact) <= np.spacing(np.abs(exact).astype(dtype))), dtype
    means = gk.mean(gk.to_device(a), (0, 2)).to_host()
    assert np.all(np.abs(means - exact / 40_000) <= np.spacing(np.abs(means)))


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((40, 30, 500), (0, 2)), ((3, 50, 7, 90, 2), (1, 3)), ((60, 9, 61, 5), (0, 2, 3))],
)
def test_a_sum_of_float64_in_stages_is_rounded_once(shape, axis):
    """A stage leaves what its additions have rounded off as well."""
    a = random(shape, DTYPES["float64"], 4)
    kept = tuple(i for i in range(len(shape)) if i not in axis)
    rows = a.transpose(*kept, *axis).reshape(-1, math.prod(shape[i] for i in axis)).copy()
    rows[:, 0], rows[:, -1] = 2.0**30, -(2.0**30)
    order = (*kept, *axis)
    back = rows.reshape([shape[i] for i in order]).transpose(np.argsort(order))
    exact = np.array([math.fsum(row) for row in rows.tolist()])
    there = gk.to_device(np.ascontiguousarray(back))
    got = gk.sum(there, axis).to_host().ravel()
    assert np.all(np.abs(got - exact) <= np.spacing(np.abs(exact)))
    means, count = gk.mean(there, axis).to_host().ravel(), rows.shape[1]
    assert np.all(np.abs(means - exact / count) <= 2 * np.spacing(np.abs(means)))


def test_a_mean_in_three_stages_is_divided_by_all():
    """Of a sum that goes on in two parts the second of three stages need not be the one that joins
    them, and may have an odd number of rows."""
    ones = gk.to_device(np.ones((4, 3, 24, 1000, 23)))
    assert np.unique(gk.mean(ones, (0, 2, 4)).to_host()).tolist() == [1.0]


def test_what_overflows_in_a_stage_has_lost_nothing():
    a = np.zeros((64, 6, 64, 8))
    a[0, 0, 0, 0], a[5, 1, 7, 3] = np.inf, -np.inf
    a[:2, 2, 0, 0] = 1.5e308
    a[9, 3, 9, 1] = np.nan
    a[0, 4, 0, 0], a[63, 4, 63, 7] = np.inf, -np.inf
    a[:, 5] = -0.0
    got = gk.sum(gk.to_device(a), (0, 2, 3)).to_host()
    assert got[0] == np.inf and got[1] == -np.inf and got[2] == np.inf
    assert np.isnan(got[3]) and np.isnan(got[4])
    assert got[5] == 0 and not np.signbit(got[5])


@pytest.mark.parametrize("op", ["sum", "mean"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_sums_of_single_elements_begin_with_zero(op, dtype):
    values = np.array([-0.0, 0.0, 1.5, np.nan, np.inf, -np.inf, 5e-324, 1e-40, 6e-8] * 40)
    a = values.astype(DTYPES[dtype]).reshape(1, 20, 1, 18)
    there = gk.to_device(a)
    for part in (np.s_[:], np.s_[:, ::-1, :, 1::2]):
        got = getattr(gk, op)(there[part], (0, 2)).to_host()
        want = a[part].reshape(got.shape) + np.zeros((), DTYPES[dtype])
        assert got.dtype == want.dtype and np.array_equal(got, want, equal_nan=True)
        assert not np.signbit(got.astype(np.float64)[want.astype(np.float64) == 0]).any()
    wide = gk.sum(there, 0, dtype="float64").to_host()
    assert np.array_equal(wide, a[0].astype(np.float64), equal_nan=True)


@pytest.mark.parametrize("op", ["sum", "argmax"])
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_columns_of_so_many_segments_that_their_tree_has_two_levels(op, dtype):
    for shape, axis in (((140_001, 3), 0), ((2, 70_003, 7), 1)):
        a = values_for(op, shape, dtype)
        for _ in range(3):
            assert_reduced(
                op, getattr(gk, op)(gk.to_device(a), axis).to_host(), a, axis, f"{shape}"
            )


@pytest.mark.parametrize("op", ["sum", "mean", "prod", "min"])
@pytest.mark.parametrize("axis", [0, 1, (0, 2), (1, 3), None])
def test_whole_numbers_in_the_order_in_which_they_lie(op, axis):
    a = values_for(op, (7, 41, 3, 120), "int32")
    for order in ((3, 2, 1, 0), (1, 0, 3, 2), (2, 3, 0, 1)):
        turned = np.ascontiguousarray(a).transpose(order)
        there = gk.to_device(a).transpose(order)
        for keepdims in (False, True):
            got = getattr(gk, op)(there, axis, keepdims=keepdims).to_host()
            assert_reduced(op, got, turned, axis, f"{order} {axis}", keepdims=keepdims)
            assert_reduced(
                op,
                getattr(gk, op)(there[::-1, 1:], axis, keepdims=keepdims).to_host(),
                turned[::-1, 1:],
                axis,
                f"{order} {axis}",
                keepdims=keepdims,
            )
