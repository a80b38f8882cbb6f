"""The comparisons, as functions and as operators of a DeviceArray.

Their results are of another size than their operands, so alignment and tails count twice.
"""

from __future__ import annotations

import operator
from unittest import mock

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
OPERATORS = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
COMPARED = dtypes_of("less")
# Large products walk every variant of these dtypes, and the default of the others.
ROWS = [row for row in variants("less") if row[1] in WALKED]
ROWS += [(None, dtype) for dtype in COMPARED if dtype not in WALKED]


def operands(shape, dtype, seed=1):
    """Two arrays that are equal here and there."""
    a, b = (random(shape, DTYPES[dtype], seed + i) for i in (0, 1))
    same = np.arange(a.size).reshape(a.shape) % 3 == 1
    return a, np.where(same, a, b).astype(a.dtype)


@pytest.fixture(params=OPERATORS)
def op(request):
    return request.param


def numpys(op, a, b):
    with np.errstate(invalid="ignore"):
        return np.asarray(getattr(np, op)(a, b))


@pytest.mark.parametrize("dtype", COMPARED)
def test_every_content_with_every_other(op, dtype):
    """Of floats: NaN is below nothing and above nothing, and -0.0 is not below 0.0."""
    compare = getattr(gk, op)
    named = list(contents(DTYPES[dtype], 257))
    for left, a in named:
        for right, b in named:
            for x, y in ((a, b), (a, b[::-1]), (gk.to_device(a), b)):
                got = np.asarray(compare(x, y))
                oracle.assert_same(got, numpys(op, a, np.asarray(y)), f"{left} {op} {right}")


@pytest.mark.parametrize("dtype", [name for name in COMPARED if is_float(DTYPES[name])])
def test_nan_and_zeros(op, dtype):
    compare = getattr(gk, op)
    values = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, oracle.tiniest(DTYPES[dtype])]
    column = np.array(values).astype(DTYPES[dtype])[:, None]
    got = compare(column, column.T)
    oracle.assert_same(got, numpys(op, column, column.T), "each with each")
    unequal = op == "not_equal"
    assert (got[:2] == unequal).all() and (got[:, :2] == unequal).all()
    assert got[4, 5] == got[5, 4] == (op in ("equal", "less_equal", "greater_equal"))


@pytest.mark.parametrize(("variant", "dtype"), ROWS)
def test_tails_of_every_length(op, variant, dtype):
    """A vector of results is narrower than one of operands, and none is written behind the end."""
    compare = getattr(gk, op)
    for size in SIZES:
        a, b = operands(size, dtype)
        want = numpys(op, a, b)
        oracle.assert_same(compare(a, b, variant=variant), want, f"host {size}")
        place = dict(places((size,), BOOL))["aligned"]
        out = on_device(place)
        compare(gk.to_device(a), gk.to_device(b), out=out.view, variant=variant)
        assert out.holds(want), size


@pytest.mark.parametrize("dtype", COMPARED)
def test_any_alignment_of_the_result(op, dtype):
    """Every byte of a word, and of the vectors that the kernels write."""
    compare = getattr(gk, op)
    a, b = operands(1037, dtype)
    x, y = gk.to_device(a), gk.to_device(b)
    for start in range(64, 64 + 33):
        place = dict(places(a.shape, BOOL))["aligned"]
        place.offset, place.total = start, start + 1037 + 64
        out = on_device(place)
        compare(x, y, out=out.view)
        assert out.holds(numpys(op, a, b)), start
    for start in range(1, 17):
        out = on_device(dict(places((1037 - start,), BOOL))["aligned"])
        compare(x[start:], y[:-start], out=out.view)
        assert out.holds(numpys(op, a[start:], b[:-start])), start


@pytest.mark.parametrize("dtype", COMPARED)
def test_out_on_the_host_with_canaries(op, dtype):
    compare = getattr(gk, op)
    for shape in ((), (1,), (1037,), (33, 65), (3, 5, 7)):
        a, b = operands(shape, dtype)
        for case, place in places(shape, BOOL):
            block = place.block()
            out = place.view(block)
            assert compare(a, b, out=out) is out
            np.testing.assert_array_equal(block, place.block(numpys(op, a, b)), f"{case} {shape}")


@pytest.mark.parametrize("dtype", COMPARED)
def test_layouts_and_broadcasting(op, dtype):
    compare = getattr(gk, op)
    for case, layout in LAYOUTS.items():
        a, b = operands((5, 7, 16), dtype)
        x = layout(a)
        for y in (b, layout(b), b[0], b[:, :1], b[0, 0, 0], a[:1, :1, :1]):
            oracle.assert_same(compare(x, y), numpys(op, x, y), case)
            got = compare(gk.to_device(y), gk.to_device(x)).to_host()
            oracle.assert_same(got, numpys(op, y, x), case)
    with pytest.raises(ValueError, match=f"^{op}: operands could not be broadcast"):
        compare(a, a[:, :3])


@pytest.mark.parametrize("dtype", COMPARED)
def test_scalars(op, dtype):
    compare = getattr(gk, op)
    a = random((5, 33), DTYPES[dtype])
    scalars = [False, True] if dtype == "bool" else [0, 1, 100, True]
    scalars += [-0.5, float("inf"), float("nan")] if is_float(a.dtype) else []
    for scalar in scalars:
        for x in (a, gk.to_device(a)):
            full = np.full(a.shape, scalar).astype(a.dtype)
            oracle.assert_same(
                np.asarray(compare(x, scalar)), numpys(op, a, full), f"{op} {scalar}"
            )
            oracle.assert_same(
                np.asarray(compare(scalar, x)), numpys(op, full, a), f"{scalar} {op}"
            )
        own = a.dtype.type(scalar)
        oracle.assert_same(compare(a, own), numpys(op, a, own), "a scalar of NumPy")


INTEGERS = [name for name in COMPARED if DTYPES[name].kind in "iu"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_that_the_dtype_does_not_hold(op, dtype, balanced):
    """They are above or below all elements, as NumPy has it, on either side and in any layout."""
    compare, a, held = getattr(gk, op), random((5, 33), DTYPES[dtype]), np.iinfo(DTYPES[dtype])
    d, out = gk.to_device(a), np.empty((5, 33), bool)
    for number in (int(held.min) - 1, int(held.max) + 1, -(10**400), 10**400):
        left, right = (-1, 1) if number > 0 else (1, -1)
        for x in (a, a[:, ::2], d, d.T, d[:0], d[2, 3]):
            got, turned = np.asarray(compare(x, number)), np.asarray(compare(number, x))
            oracle.assert_same(got, np.full(x.shape, OPERATORS[op](left, right)), number)
            oracle.assert_same(turned, np.full(x.shape, OPERATORS[op](right, left)), number)
        assert compare(d, number, out=out) is out
        oracle.assert_same(out, OPERATORS[op](d, number).to_host(), "out")
        assert number not in d
    del x, d


@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_least_and_the_greatest_integer_of_a_dtype(op, dtype):
    a, held = next(iter(contents(DTYPES[dtype], 257)))[1], np.iinfo(DTYPES[dtype])
    for number in (int(held.min), int(held.max)):
        d = gk.to_device(np.append(a, DTYPES[dtype].type(number)))
        host = d.to_host()
        oracle.assert_same(OPERATORS[op](d, number).to_host(), numpys(op, host, number), "right")
        oracle.assert_same(OPERATORS[op](number, d).to_host(), numpys(op, number, host), "left")
        assert number in d


def test_only_whole_numbers_are_beyond_a_dtype():
    with pytest.raises(TypeError, match=r"less: b is the .*int.* 300 beside an array of bool"):
        gk.less(np.ones(3, bool), 300)
    with pytest.raises(OverflowError, match=r"^less: b is an integer of 1329 bits, .* float32$"):
        gk.less(np.ones(3, np.float32), 10**400)
    with pytest.raises(TypeError, match=r"^less: out has dtype float32, and the result is bool"):
        gk.less(np.ones(3, np.int8), 300, out=np.ones(3, np.float32))
    with pytest.raises(ValueError, match=r"^greater: unknown variant 'fast'"):
        gk.greater(np.ones(3, np.int8), 300, variant="fast")


@pytest.mark.parametrize("dtype", COMPARED)
def test_mapped_and_in_chunks(op, dtype):
    compare = getattr(gk, op)
    counts = (1, 7, 4097, 32_769, 200_003) + ((1_299_709,) if dtype in ("float32", "int8") else ())
    for count in counts:
        a, b = (np.resize(x, count) for x in operands(min(count, 50_021), dtype))
        want = numpys(op, a, b)
        for limit in (0, 512 << 10):
            with gk.limits(mapped_call=limit):
                oracle.assert_same(compare(a, b), want, f"{count} under {limit}")
                out = np.zeros(3 * count, bool)
                compare(a, b, out=out[::3])
                oracle.assert_same(out[::3].copy(), want, "elements apart")
                assert not out[1::3].any() and not out[2::3].any()
        large = np.resize(a, 2 * count)
        with gk.limits(mapped_call=0):
            oracle.assert_same(compare(large[::2], b), numpys(op, large[::2], b), "packed")


def test_out_has_to_be_bool(op):
    compare = getattr(gk, op)
    a = np.ones(3, np.float32)
    for out in (np.ones(3, np.float32), np.ones(3, np.uint8), gk.empty(3), gk.empty(3, "int8")):
        with pytest.raises(TypeError, match=rf"^{op}: out has dtype \w+, and the result is bool"):
            compare(a, a, out=out)


@pytest.mark.parametrize("dtype", COMPARED)
@pytest.mark.parametrize("start", [0, 1, 5, 16])
def test_out_in_the_memory_of_an_operand(op, dtype, start):
    """Results lie where operands do that are not read yet: a bool array among their bytes."""
    compare = getattr(gk, op)
    a, b = operands(2053, dtype)
    want = a.copy()
    count = a.nbytes - start if a.itemsize == 1 else a.size
    a_part, b_part = a[:count], b[:count]
    want.view(np.uint8)[start : start + count] = numpys(op, a_part, b_part)

    host = a.copy()
    compare(host[:count], b_part, out=host.view(bool)[start : start + count])
    np.testing.assert_array_equal(host.view(np.uint8), want.view(np.uint8))

    device = gk.to_device(a)
    place = dict(places((count,), BOOL))["aligned"]
    place.offset = start
    compare(device[:count], b_part, out=DeviceView(device, place))
    got = device.to_host()
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


def test_bool_in_place(op):
    compare = getattr(gk, op)
    a, b = operands(1037, "bool")
    for x, y in ((a.copy(), b), (gk.to_device(a), gk.to_device(b))):
        assert compare(x, y, out=x) is x
        oracle.assert_same(np.asarray(x), numpys(op, a, b), "in place")


def test_its_results_are_operands_again():
    a, b = operands((33, 65), "float32")
    x, y = gk.to_device(a), gk.to_device(b)
    both = gk.multiply(x < y, x < 0.5)
    want = (a < b) & (a < np.float32(0.5))
    oracle.assert_same(both.to_host(), want, "and")
    assert gk.sum(both).to_host() == want.sum()
    np.testing.assert_array_equal(gk.sum(both, 0).to_host(), want.sum(0))
    np.testing.assert_array_equal(gk.max(both, 1).to_host(), want.any(1))


@pytest.mark.parametrize("dtype", COMPARED)
def test_operators(op, dtype, balanced):
    """Device and host arrays, scalars of NumPy and numbers, on either side, with broadcasting."""
    compare = OPERATORS[op]
    a, b = operands((7, 33), dtype)
    x, y = gk.to_device(a), gk.to_device(b)
    one = a.dtype.type(1)
    pairs = [(x, y), (x, b), (a, y), (x, y[0]), (x[:, :1], b), (x.T, y.T), (x, one), (one, x)]
    pairs += [(x, x), (x[1:], x[:-1]), (x[:0], y[:0]), (x[2, 3], y[2, 3]), (x, True), (True, x)]
    pairs += [(x, 1), (1, x)] if dtype != "bool" else []
    for left, right in pairs:
        got = compare(left, right)
        assert isinstance(got, gk.DeviceArray) and got.dtype == BOOL
        want = numpys(op, *(np.asarray(side, a.dtype) for side in (left, right)))
        oracle.assert_same(got.to_host(), want, op)
    del x, y, pairs, left, right, got


def test_a_reduction_is_equal_to_its_number():
    """Where identity once answered: False, whatever the sum."""
    d = gk.to_device(np.array([1, 2, 3], np.float32))
    assert gk.sum(d) == 6.0
    assert not operator.ne(gk.sum(d), 6.0)
    assert operator.eq(6.0, gk.sum(d))
    assert operator.eq(np.float32(6), gk.sum(d))


@pytest.mark.parametrize("other", [None, "x", b"x", [1.0, 2.0], (1.0, 2.0), {}, object()])
def test_what_is_no_operand_is_not_compared_by_identity(other):
    d = gk.to_device(np.array([1, 2], np.float32))
    for compare in (operator.eq, operator.ne):
        for left, right in ((d, other), (other, d)):
            with pytest.raises(TypeError, match=r"^(not_)?equal: .*; for identity use `is`"):
                compare(left, right)
    for compare in (operator.lt, operator.ge):
        with pytest.raises(
            TypeError, match=r"not supported between|(less|greater_equal): b has to be"
        ):
            compare(d, other)


def test_the_other_side_may_know_the_answer():
    d = gk.to_device(np.array([1, 2], np.float32))
    assert d == mock.ANY
    assert operator.eq(mock.ANY, d)
    assert not operator.ne(d, mock.ANY)


def test_comparisons_say_what_does_not_fit():
    d = gk.to_device(np.array([1, 2], np.int32))
    with pytest.raises(TypeError, match=r"equal: b is the .*float.* 0.5 beside an array of int32"):
        d == 0.5  # noqa: B015
    with pytest.raises(TypeError, match="less: operands of different dtypes, int32 and int64"):
        d < np.array([1, 2])  # noqa: B015
    with pytest.raises(ValueError, match="greater: operands could not be broadcast"):
        d > gk.to_device(np.array([1, 2, 3], np.int32))  # noqa: B015
    with pytest.raises(
        ValueError, match=r"^greater: by the kernels of less, unknown variant 'fast'"
    ):
        gk.greater(d, d, variant="fast")


def test_variants_of_those_that_go_by_the_kernels_of_others():
    assert gk.variants("greater", "int8") == gk.variants("less", "int8")
    assert gk.variants("greater_equal") == gk.variants("less_equal")
    a, b = operands((1037,), "float32")
    for variant in gk.variants("greater", "float32"):
        oracle.assert_same(gk.greater(a, b, variant=variant.variant), a > b, variant.variant)


def test_equal_by_elements_is_not_hashable():
    d = gk.empty(3)
    with pytest.raises(TypeError, match="unhashable"):
        hash(d)
    assert gk.DeviceArray.__hash__ is None
