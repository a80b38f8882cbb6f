"""What each operation has to give, and how far from it the variant's own accumulation may end.

Sums and products are compared with NumPy in wider arithmetic; the bound is the forward error bound
of N. Higham, "Accuracy and Stability of Numerical Algorithms" (2002), chapters 3 and 4, for the
number of roundings that an element goes through in the variant at hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

import gpukern as gk
from arrays import DTYPES, Array, is_float, limits

# A sum or product of these is carried in float32 and rounded once at the end.
HALVES = ("float16", "bfloat16")
LONG = np.dtype(np.longdouble)
# Variants of matmul that have the half types multiplied by tensor cores.
TENSOR_CORES = ("mma", "wgmma", "wgmma_cluster", "cublas")


def roundoff(dtype: np.dtype[Any]) -> float:
    """Half the distance from 1 to the next number: the error of one rounding to nearest."""
    return float(ml_dtypes.finfo(dtype).eps) / 2


def tiniest(dtype: np.dtype[Any]) -> float:
    """The smallest subnormal number: twice the error of one rounding down there."""
    return float(ml_dtypes.finfo(dtype).smallest_subnormal)


def ceiling(dtype: np.dtype[Any]) -> np.longdouble:
    """The least magnitude that rounds to infinity."""
    eps = np.longdouble(ml_dtypes.finfo(dtype).eps)
    return np.longdouble(ml_dtypes.finfo(dtype).max) * (2 - eps / 2) / (2 - eps)


def gamma(roundings: int, unit: float) -> float:
    """The relative error that `roundings` roundings can add up to; infinite if that is all."""
    product = roundings * unit
    return product / (1 - product) if product < 1 else math.inf


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What sums and products of `dtype` are carried in."""
    return DTYPES["float32"] if dtype.name in HALVES else dtype


# --- equality ---------------------------------------------------------------------------------


def _exactly(op: str, a: Array, axis: int) -> Array | None:
    """NumPy's result of a reduction where it has to be the same, but for the bits of a NaN."""
    if op in ("max", "min", "argmax", "argmin"):
        return np.asarray(getattr(np, op)(a, axis))
    if op == "sum" and not is_float(a.dtype):
        return np.asarray(a.sum(axis, dtype=np.int64))
    return None


def assert_along(op: str, a: Array, axis: int, got: Array) -> None:
    """What a reduction gives of random numbers against NumPy, in more digits where those of the
    sums are not exact."""
    exact = _exactly(op, a, axis)
    near = 1e-3 if a.dtype == np.float16 else 1e-6
    if exact is not None:
        np.testing.assert_array_equal(got.astype(exact.dtype), exact)
    elif op in ("sum", "mean"):
        with np.errstate(invalid="ignore"):
            wide = getattr(np, op)(a.astype(np.longdouble), axis)
        np.testing.assert_allclose(got.astype(np.longdouble), wide, rtol=near, atol=near)


def assert_same(got: Any, want: Array, case: str) -> None:
    """The same shape, dtype and bits; a NaN is any NaN, and -0.0 is not 0.0."""
    got = np.asarray(got)
    assert got.shape == want.shape, f"{case}: shape {got.shape}, not {want.shape}"
    assert got.dtype == want.dtype.newbyteorder("="), f"{case}: {got.dtype}, not {want.dtype}"
    bits = np.dtype(f"u{want.dtype.itemsize}")
    left = np.ascontiguousarray(got).view(bits)
    right = np.ascontiguousarray(want.astype(got.dtype)).view(bits)
    differ = left != right
    if is_float(got.dtype):
        differ &= ~(np.isnan(got) & np.isnan(want)).reshape(differ.shape)
    if differ.any():
        first = np.argwhere(differ)[0] if got.ndim else ()
        place = tuple(int(i) for i in first)[: got.ndim]
        count = int(differ.sum())
        raise AssertionError(
            f"{case}: {count} differ, first at {place}: {got[place]}, not {want[place]}"
        )


def assert_written_alone(reduce: Callable[[Any], object], want: Array, begin: int) -> None:
    """The result is what is wanted, that many elements behind where memory begins, and nothing
    beside it is written."""
    around = gk.to_device(np.full(want.size + 16, 77, want.dtype))
    assert reduce(around[begin : begin + want.size].reshape(want.shape)) is not None
    there = np.asarray(around)
    assert_same(there[begin : begin + want.size].reshape(want.shape), want, f"{begin}")
    outside = np.concatenate([there[:begin], there[begin + want.size :]])
    assert (outside == np.asarray(77).astype(want.dtype)).all()


def _assert_within(got: Array, exact: Array, bound: Array, magnitude: Array, case: str) -> None:
    """|got - exact| <= bound; where something overflows or is not finite, NumPy's semantics.

    `magnitude` is the sum of the absolute values of what is added up: the largest that any partial
    result can be.
    """
    wide = got.astype(LONG)
    special = ~np.isfinite(magnitude)
    same = (wide == exact) | (np.isnan(wide) & np.isnan(exact))
    _require(same | ~special, got, exact, bound, f"{case}: not finite as NumPy is not")
    limit = ceiling(accumulator(got.dtype))
    calm = ~special & (magnitude * (1 + roundoff(accumulator(got.dtype))) + bound < limit)
    top = ceiling(got.dtype)
    certain = calm & (np.abs(exact) + bound < top)
    with np.errstate(invalid="ignore"):
        near = np.abs(wide - exact) <= bound
    _require(near | ~certain, got, exact, bound, f"{case}: beyond the error bound")
    one_sign = ~special & (np.abs(exact) == magnitude)
    over = (calm | one_sign) & (np.abs(exact) - bound >= top)
    _require(
        (wide == np.copysign(np.inf, exact)) | ~over, got, exact, bound, f"{case}: no overflow"
    )


def _require(holds: Array, got: Array, exact: Array, bound: Array, case: str) -> None:
    if np.all(holds):
        return
    place = tuple(int(i) for i in np.argwhere(~np.asarray(holds))[0]) if got.ndim else ()
    exact, bound = np.asarray(exact), np.broadcast_to(bound, got.shape)
    raise AssertionError(
        f"{case}: at {place} {got[place]}, exactly {exact[place]} +- {bound[place]}"
    )


# --- elementwise ------------------------------------------------------------------------------


def add(a: Any, b: Any) -> Array:
    """NumPy's own sum in the dtype of the arrays: one rounding, so every bit is known."""
    with np.errstate(all="ignore"):
        total = np.asarray(np.add(a, b))
    return total.astype(total.dtype.newbyteorder("="), copy=False)


def _native(array: Any) -> Array:
    array = np.asarray(array)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def bounds(dtype: np.dtype[Any]) -> tuple[float, float]:
    """What tests of all operations clip to: about half of random values lie beyond."""
    if is_float(dtype):
        return -0.5, 0.75
    least, greatest = limits(dtype)
    quarter = (greatest - least) // 4
    return least + quarter, greatest - quarter


def clip(a: Array, low: float | None, high: float | None) -> Array:
    """NumPy's, which has it for every dtype but bfloat16."""
    raised = a if low is None else np.maximum(a, np.asarray(low).astype(a.dtype))
    lowered = raised if high is None else np.minimum(raised, np.asarray(high).astype(a.dtype))
    return np.asarray(lowered)


def assert_elementwise(op: str, got: Any, operands: Sequence[Any], case: str) -> None:
    """`got` is what NumPy makes of the operands: to the bit where one rounding decides it."""
    native = [_native(operand) for operand in operands]
    with np.errstate(all="ignore"):
        if op == "exp":
            _assert_exp(np.asarray(got), native[0], case)
        elif op == "scale_add" and is_float(native[0].dtype):
            _assert_fused(np.asarray(got), *native, case)
        elif op == "scale_add":
            assert_same(got, np.asarray(native[0] * native[1] + native[2]), case)
        elif op == "clip":
            assert_same(got, clip(native[0], *bounds(native[0].dtype)), case)
        elif op in ("maximum", "minimum"):
            # Of two zeros of different signs NumPy takes one or the other, as its CPU likes.
            want = np.asarray(getattr(np, op)(*native))
            zero = want.dtype.type(0)
            assert_same(*(np.where(x == zero, zero, x) for x in (np.asarray(got), want)), case)
        else:
            assert_same(got, np.asarray(getattr(np, op)(*native)), case)


def _spacing(exact: Array, dtype: np.dtype[Any]) -> Array:
    """One unit in the last place of `dtype` at each of the values."""
    _, exponent = np.frexp(np.where(np.isfinite(exact), exact, 1))
    unit = np.ldexp(LONG.type(roundoff(dtype)), exponent)
    return np.maximum(unit, LONG.type(tiniest(dtype)))


def _assert_near(got: Array, exact: Array, bound: Array, case: str) -> None:
    """|got - exact| <= bound, infinite from the overflow threshold on, NaN where it is NaN."""
    wide = got.astype(LONG)
    finite = np.isfinite(exact)
    beyond = finite & (np.abs(exact) >= ceiling(got.dtype))
    same = np.where(finite, np.abs(wide - exact) <= bound, wide == exact)
    same |= np.isnan(wide) & np.isnan(exact)
    _require(np.where(beyond, wide == np.copysign(np.inf, exact), same), got, exact, bound, case)


def _assert_exp(got: Array, a: Array, case: str) -> None:
    assert (got.shape, got.dtype) == (a.shape, a.dtype), case
    exact = np.asarray(np.exp(a.astype(LONG)))
    ulps = 0.51 if a.dtype.name in HALVES else 2.0
    near = np.abs(exact) < ceiling(got.dtype) * (1 - 4 * roundoff(got.dtype))
    calm = near | ~np.isfinite(a.astype(LONG)) | (exact > ceiling(got.dtype) * (1 + 1e-6))
    bound = ulps * _spacing(exact, got.dtype)
    _assert_near(np.where(calm, got, got.dtype.type(0)), np.where(calm, exact, 0), bound, case)


def _assert_fused(got: Array, a: Array, x: Array, y: Array, case: str) -> None:
    product = a.astype(LONG) * x.astype(LONG)
    exact = np.asarray(product + y.astype(LONG))
    assert got.shape == exact.shape, f"{case}: shape {got.shape}"
    assert got.dtype == a.dtype, f"{case}: {got.dtype}"
    slack = (np.abs(product) + np.abs(exact)) * LONG.type(2.0**-62)
    _assert_near(got, exact, _spacing(exact, got.dtype) / 2 + slack, case)


# --- sum --------------------------------------------------------------------------------------


def sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a sum: NumPy's, but that of unsigned integers that int64 holds (NumPy: uint64)
    and of bfloat16 (the array's)."""
    dtype = dtype.newbyteorder("=")
    return dtype if is_float(dtype) or dtype == DTYPES["uint64"] else DTYPES["int64"]


# What one block adds up: (elements, additions that an element goes through). The 16 elements of a
# thread are 15 additions, a warp's shuffles 5, and those over 8 warps 3 (the rest add zeros).
BLOCKS = {
    "interleaved": (256, 8),
    "sequential": (256, 8),
    "first_add": (512, 9),
    "shuffle": (4096, 15 + 5 + 3),
    "vectorized": (4096, 15 + 5 + 3),
}


def segment(count: int, itemsize: int) -> int:
    """How many elements a block adds up where the last one finishes (csrc/ops/reduce_plan.c)."""
    if count <= 16384:
        return 16384
    vectors, longest = 256 * 16 // itemsize, 2**20 // itemsize
    wanted = max(528, -(-count // longest))
    return max(4096, 4 * vectors, -(-count // wanted // vectors) * vectors)


def sum_depth(variant: str, count: int, itemsize: int) -> int:
    """How many additions an element goes through at most."""
    if variant == "atomic":
        return max(count - 1, 0)
    if variant not in BLOCKS:
        elements = segment(count, itemsize)
        partials = -(-count // elements)
        return elements // 256 + 8 + (partials // 256 + 1 + 8 if partials > 1 else 0)
    elements, additions = BLOCKS[variant]
    partials = -(-count // elements)
    rounds = -(-partials // 1024)  # the finish has 1024 threads, and shuffles twice
    return additions + max(rounds - 1, 0) + 10


def _exact_int_sum(a: Array) -> Array:
    return np.asarray(a.sum(dtype=sum_dtype(a.dtype)))


def assert_sum(got: Any, a: Array, variant: str, case: str) -> None:
    """`got` is the sum of all elements of `a`, as near as the variant's additions allow."""
    if variant == "default":
        exacting = a.dtype in (DTYPES["float32"], DTYPES["float64"])
        variant = "compensated" if exacting else "single_launch"
    got = np.asarray(got)
    assert got.shape == (), f"{case}: shape {got.shape}"
    assert got.dtype == sum_dtype(a.dtype), f"{case}: dtype {got.dtype}"
    if not is_float(a.dtype):
        assert_same(got, _exact_int_sum(a), case)
        return
    with np.errstate(all="ignore"):
        wide = a.astype(LONG)
        exact, magnitude = np.asarray(wide.sum()), np.asarray(np.abs(wide).sum())
        carried = accumulator(got.dtype)
        depth = sum_depth(variant, a.size, a.dtype.itemsize)
        relative = gamma(depth, roundoff(carried))
        if variant == "compensated":
            relative = relative**2
        relative += gamma(a.size + 1, roundoff(LONG))
        # An infinite bound of a sum of zeros is 0: nothing was rounded.
        bound = relative * magnitude if magnitude else np.zeros_like(magnitude)
        if variant == "atomic":
            # A GPU's atomic addition to global memory takes and makes no subnormal numbers (PTX
            # ISA, atom.add.f32): each step may lose up to the smallest normal one.
            bound = bound + 2 * a.size * np.longdouble(ml_dtypes.finfo(got.dtype).tiny)
        if carried != got.dtype or variant == "compensated":
            bound = bound + roundoff(got.dtype) * (np.abs(exact) + bound) + tiniest(got.dtype) / 2
        _assert_within(got, exact, bound, magnitude, case)


# --- matmul -----------------------------------------------------------------------------------


def _inner_error(variant: str, dtype: np.dtype[Any], k: int) -> float:
    """The relative error of an inner product of length k, in any order, fused or not."""
    carried = accumulator(dtype)
    if (variant in TENSOR_CORES and dtype.name in HALVES) or variant == "tf32":
        # They cut off where they align: a whole unit for each product and each addition.
        return gamma(2 * (k + 16), 2 * roundoff(carried))
    return gamma(k, roundoff(carried))


def _assert_product(got: Array, a: Array, b: Array, variant: str, case: str) -> None:
    """`got` is a @ b, each element as near as the variant's additions allow."""
    k = a.shape[1]
    assert got.shape == (a.shape[0], b.shape[1]), f"{case}: shape {got.shape}"
    assert got.dtype == a.dtype.newbyteorder("="), f"{case}: dtype {got.dtype}"
    # The products of anything narrower are exact in float64, and BLAS is fast in it.
    wider = LONG if got.dtype == DTYPES["float64"] else DTYPES["float64"]
    with np.errstate(all="ignore"):
        left, right = a.astype(wider), b.astype(wider)
        exact, magnitude = left @ right, np.abs(left) @ np.abs(right)
        carried = accumulator(got.dtype)
        relative = _inner_error(variant, got.dtype, k) + gamma(k + 1, roundoff(wider))
        bound = relative * magnitude + k * tiniest(carried)
        if carried != got.dtype:
            bound = bound + roundoff(got.dtype) * (np.abs(exact) + bound) + tiniest(got.dtype) / 2
        _assert_within(got, exact.astype(LONG), bound, magnitude, case)


def _tf32(values: Array) -> Array:
    """The values with 10 bits behind the point, to nearest, as tensor cores take a float32."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(values), rounded.view(np.float32), values)


def assert_matmul(got: Any, a: Array, b: Array, variant: str, case: str) -> None:
    """`got` is a @ b, by a variant's arithmetic."""
    got = np.asarray(got)
    if not is_float(a.dtype):
        assert_same(got, np.asarray(np.matmul(a, b)), case)
        return
    if variant == "tf32":
        try:
            _assert_product(got, _tf32(a), _tf32(b), variant, case)
            return
        except AssertionError:
            pass  # it may have given way to an earlier one, which multiplies them as they are
    _assert_product(got, a, b, variant, case)
