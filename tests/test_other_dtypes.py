"""The dtypes of which large products of cases walk one of each kind: every operation of all of
them, and what is their own: unsigned integers wrap around at zero, and bool adds up by or."""

from __future__ import annotations

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import (
    DTYPES,
    ELEMENTWISE,
    LAYOUTS,
    REDUCTIONS,
    WALKED,
    contents,
    dtypes_of,
    laid_out,
    limits,
    on_device,
    on_gpu,
    places,
    random,
    result_dtype,
    variants,
)

OTHERS = [name for name in DTYPES if name not in WALKED]
INTEGERS = [name for name in DTYPES if DTYPES[name].kind in "iu"]
UNSIGNED = [name for name in DTYPES if DTYPES[name].kind == "u"]
ROWS = [(op, *row) for op in ELEMENTWISE for row in variants(op) if row[1] in OTHERS]


def run(op, *operands, **options):
    bounds = oracle.bounds(operands[0].dtype) if op == "clip" else ()
    return getattr(gk, op)(*operands, *bounds, **options)


@pytest.mark.parametrize(("op", "variant", "dtype"), ROWS)
def test_every_variant_of_every_operation(op, variant, dtype):
    count, to = ELEMENTWISE[op], result_dtype(op, DTYPES[dtype])
    for size in (17, 1037):
        for case, a in contents(DTYPES[dtype], size):
            operands = [a, a[::-1], random(size, DTYPES[dtype], 8)][:count]
            oracle.assert_elementwise(op, run(op, *operands, variant=variant), operands, case)
    operands = [random((33, 64), DTYPES[dtype], i) for i in range(count)]
    want = np.asarray(run(op, *operands))
    for (case, place), (_, to_place) in zip(
        places((33, 64), DTYPES[dtype]), places((33, 64), to), strict=False
    ):
        there, out = [on_device(place, values) for values in operands], on_device(to_place)
        run(op, *(each.view for each in there), out=out.view, variant=variant)
        assert out.holds(want), case
        assert all(each.holds(values) for each, values in zip(there, operands, strict=True)), case


@pytest.mark.parametrize("op", [op for op in ELEMENTWISE if ELEMENTWISE[op] > 1])
@pytest.mark.parametrize("dtype", OTHERS)
def test_layouts_and_broadcasting(op, dtype):
    if dtype not in dtypes_of(op):
        return
    for name, layout in LAYOUTS.items():
        a = layout(random((5, 7, 16), DTYPES[dtype], 2))
        for b in (random((7, 1), DTYPES[dtype], 3), random((), DTYPES[dtype], 4)):
            operands = [a, b, random((5, 1, 1), DTYPES[dtype], 5)][: ELEMENTWISE[op]]
            oracle.assert_elementwise(op, run(op, *operands), operands, name)
            got = run(op, *map(gk.to_device, operands)).to_host()
            oracle.assert_elementwise(op, got, operands, f"{name} on the device")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_around_as_numpys(dtype):
    least, greatest = limits(DTYPES[dtype])
    edges = [least, least + 1, greatest, greatest - 1, 0, 1, 2, greatest // 2, greatest // 2 + 1]
    edges += [1 << (DTYPES[dtype].itemsize * 4), (1 << (DTYPES[dtype].itemsize * 4)) - 1]
    a = np.array(edges, DTYPES[dtype])[:, None]
    for x, y in ((a, a.T), (gk.to_device(a), gk.to_device(a).T)):
        with np.errstate(all="ignore"):
            for op in ("add", "subtract", "multiply", "maximum", "minimum", "less"):
                want = np.asarray(getattr(np, op)(a, a.T))
                oracle.assert_same(np.asarray(getattr(gk, op)(x, y)), want, op)
            oracle.assert_same(np.asarray(gk.scale_add(x, y, x)), a * a.T + a, "scale_add")
            oracle.assert_same(np.asarray(gk.negative(x)), np.negative(a), "negative")
            oracle.assert_same(np.asarray(gk.abs(x)), np.abs(a), "abs")


def test_bool_adds_by_or_and_multiplies_by_and():
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    for x, y in ((a, b), (gk.to_device(a), gk.to_device(b))):
        for got, want in (
            *((gk.add(x, y), a | b), (gk.multiply(x, y), a & b), (gk.scale_add(x, y, y), b)),
            *((gk.maximum(x, y), a | b), (gk.minimum(x, y), a & b), (gk.less(x, y), ~a & b)),
            *((gk.abs(x), a), (gk.add(x, True), a | True), (gk.multiply(False, y), a & False)),
        ):
            oracle.assert_same(np.asarray(got), want, "bool")
    for op in ("subtract", "negative"):
        with pytest.raises(TypeError, match=f"{op}: no kernel for bool"):
            run(op, *[a] * ELEMENTWISE[op])
        with pytest.raises(TypeError, match="bool"):
            getattr(np, op)(*[a] * ELEMENTWISE[op])


# --- reductions -------------------------------------------------------------------------------

SHAPES = (((3, 4, 5), 1), ((3, 4, 5), (0, 2)), ((33, 65), None), ((33, 65), 0), ((301, 64), -1))
SHAPES += (((17_001, 3), 0), ((3, 17_001), 1), ((40_001,), 0))


def total_dtype(dtype):
    return DTYPES["uint64" if dtype == "uint64" else "int64"]


@pytest.mark.parametrize("dtype", OTHERS)
def test_reductions_over_any_axes(dtype):
    for shape, axis in SHAPES:
        count = int(np.prod(shape))
        large = count > 5000
        for case, flat in contents(DTYPES[dtype], count):
            a = flat.reshape(shape)
            if large and case not in ("random", "greatest"):
                continue
            for x in (gk.to_device(a),) if large else (a, gk.to_device(a)):
                check_reductions(a, x, axis, f"{case} {shape} {axis}")


def check_reductions(a, x, axis, case):
    to = total_dtype(a.dtype.name)
    wide = a.astype(np.longdouble)
    for op in ("sum", "prod"):
        want = np.asarray(getattr(np, op)(a, axis=axis, dtype=to))
        oracle.assert_same(np.asarray(getattr(gk, op)(x, axis)), want, f"{op} {case}")
    for op in ("max", "min"):
        want = np.asarray(getattr(np, op)(a, axis=axis))
        oracle.assert_same(np.asarray(getattr(gk, op)(x, axis)), want, f"{op} {case}")
    for op in ("argmax", "argmin") if not isinstance(axis, tuple) else ():
        want = np.asarray(getattr(np, op)(a, axis=axis))
        oracle.assert_same(np.asarray(getattr(gk, op)(x, axis)), want, f"{op} {case}")
    mean, norm = np.asarray(gk.mean(x, axis)), np.asarray(gk.norm(x, axis))
    assert mean.dtype == norm.dtype == np.float64, case
    np.testing.assert_allclose(mean, wide.mean(axis=axis).astype(float), rtol=1e-15)
    length = np.sqrt((wide**2).sum(axis=axis)).astype(float)
    np.testing.assert_allclose(norm, length, rtol=1e-14)


def test_a_uint64_counts_to_the_end():
    greatest = np.iinfo(np.uint64).max
    a = np.array([greatest - 5, 2, 3], np.uint64)
    for x in (a, gk.to_device(a)):
        assert int(np.asarray(gk.sum(x))) == greatest
        assert int(np.asarray(gk.max(x))) == greatest - 5
        assert int(np.asarray(gk.argmax(x))) == 0
        assert int(np.asarray(gk.min(gk.to_device(a)[:1]).to_host())) == greatest - 5
    assert gk.sum(np.full(3, greatest, np.uint64)) == greatest - 2
    assert gk.prod(np.full(2, 1 << 32, np.uint64)) == 0
    assert gk.norm(a[:1]) == float(greatest - 5)
    assert gk.sum(np.full(4, greatest, np.uint64), dtype="float64") == 4.0 * float(greatest)
    assert gk.mean(np.full(4, greatest, np.uint64)) == float(greatest)


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
@pytest.mark.parametrize("op", ["sum", "prod"])
def test_the_dtype_of_a_total(op, dtype):
    a = random((50, 401), DTYPES[dtype], 9)
    for to in INTEGERS:
        for axis in (None, 0, 1):
            got = np.asarray(getattr(gk, op)(a, axis, dtype=to))
            want = np.asarray(getattr(np, op)(a, axis=axis, dtype=DTYPES[to]))
            oracle.assert_same(got, want, f"{to} {axis}")
    for to in ("bool", "float32", *(("float64",) if op == "prod" else ())):
        with pytest.raises(TypeError, match=rf"^{op}: dtype {to} is not offered .*{dtype}.*int64"):
            getattr(gk, op)(a, dtype=to)
    with pytest.raises(TypeError) as raised:
        getattr(gk, op)(a, dtype="bool")
    assert "bool" not in str(raised.value).split("but ")[1]
    if op == "sum":
        wide = a.astype(float)
        for axis in (None, 0):
            got = np.asarray(gk.sum(a, axis, dtype="float64"))
            assert got.dtype == np.float64
            bound = 1e-12 * np.abs(wide).sum(axis=axis)
            assert np.all(np.abs(got - wide.sum(axis=axis)) <= bound)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint64"])
def test_a_variant_that_does_not_add_in_float64_names_what_was_called(dtype):
    a = random((5, 7), DTYPES[dtype])
    for axis in (None, 0, 1):
        with pytest.raises(ValueError, match=r"^sum: variant 'single_launch'") as raised:
            gk.sum(a, axis, dtype="float64", variant="single_launch")
        assert "sum_" not in str(raised.value)


@pytest.mark.parametrize("dtype", OTHERS)
def test_dot(dtype):
    for count in (0, 1, 17, 4097, 140_001):
        for case, a in contents(DTYPES[dtype], count):
            b = random(count, DTYPES[dtype], 10)
            want = np.asarray(np.dot(a, b))
            for x, y in ((a, b), (gk.to_device(a), gk.to_device(b)), (a[::-1], b[::-1])):
                oracle.assert_same(np.asarray(gk.dot(x, y)), want, f"{case} {count}")


def test_a_dot_of_bool_is_whether_both_are_true_anywhere():
    for count in (1, 300, 140_001):
        for at in (0, count // 2, count - 1):
            a = np.ones(count, bool)
            b = np.zeros(count, bool)
            assert gk.dot(a, b) is np.False_
            b[at] = True
            assert gk.dot(a, b) is np.True_
            a[at] = False
            assert gk.dot(a, b) is np.False_


@pytest.mark.parametrize("dtype", OTHERS)
def test_the_first_of_several(dtype):
    a = np.random.default_rng(5).integers(0, 3, (70, 311)).astype(DTYPES[dtype])
    for axis in (None, 0, 1):
        np.testing.assert_array_equal(gk.argmax(a, axis), np.argmax(a, axis=axis))
        np.testing.assert_array_equal(gk.argmin(a, axis), np.argmin(a, axis=axis))
        for fill in limits(DTYPES[dtype]):
            same = np.full_like(a, fill)
            assert not np.any(gk.argmax(same, axis))
            assert not np.any(gk.argmin(same, axis))


@pytest.mark.parametrize("dtype", OTHERS)
def test_transposes(dtype):
    for case, a in laid_out((33, 65), DTYPES[dtype]):
        want = np.ascontiguousarray(a.T.astype(DTYPES[dtype]))
        for variant, _ in (row for row in variants("transpose") if row[1] == dtype):
            oracle.assert_same(gk.transpose(a, variant=variant), want, case)
            got = gk.transpose(gk.to_device(a), variant=variant)
            oracle.assert_same(got.to_host(), want, f"{case} on the device")


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("dtype", OTHERS)
def test_reductions_of_one_element_and_of_layouts(op, dtype):
    assert np.asarray(getattr(gk, op)(np.ones(1, DTYPES[dtype]))) == (not op.startswith("arg"))
    for case, layout in LAYOUTS.items():
        a = layout(random((21, 33), DTYPES[dtype], 3))
        for axis in (0, 1, None):
            want = np.asarray(getattr(gk, op)(np.ascontiguousarray(a.astype(DTYPES[dtype])), axis))
            oracle.assert_same(getattr(gk, op)(a, axis), want, f"{case} {axis}")


# --- other libraries --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "bfloat16"])
def test_the_interface_names_numpys_type(dtype):
    array = gk.empty((3, 4), dtype)
    assert array.__cuda_array_interface__["typestr"] == DTYPES[dtype].str
    a = random((3, 4), DTYPES[dtype], 1)
    there = on_device(dict(places((3, 4), DTYPES[dtype]))["aligned"], a)
    assert there.view.__cuda_array_interface__["typestr"] == DTYPES[dtype].str
    oracle.assert_same(gk.to_device(there.view).to_host(), a, dtype)
    oracle.assert_same(gk.maximum(there.view, there.view).to_host(), a, dtype)


def test_a_bool_of_the_interface_is_one_byte():
    assert gk.empty(1, bool).__cuda_array_interface__["typestr"] == "|b1"


@pytest.mark.skipif(on_gpu(), reason="NumPy takes host memory, which a GPU's is not")
@pytest.mark.parametrize("dtype", OTHERS)
def test_dlpack_both_ways(dtype):
    a = random((4, 6), DTYPES[dtype], 1)
    array = gk.to_device(a)
    host = np.from_dlpack(array)
    oracle.assert_same(host, a, "out")
    again = gk.from_dlpack(host)
    assert again.dtype == DTYPES[dtype]
    oracle.assert_same(gk.maximum(again, again).to_host(), a, "in")


GPU = pytest.mark.skipif(not on_gpu(), reason="other libraries' device arrays need a GPU")


@GPU
@pytest.mark.parametrize("dtype", OTHERS)
def test_torch(dtype):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    a = random((4, 6), DTYPES[dtype], 1)
    tensor = torch.from_dlpack(gk.to_device(a))
    assert str(tensor.dtype) == f"torch.{dtype}"
    oracle.assert_same(tensor.cpu().numpy(), a, "torch's")
    oracle.assert_same(gk.add(tensor, tensor).to_host(), oracle.add(a, a), "torch's operand")
    oracle.assert_same(gk.from_dlpack(tensor).to_host(), a, "back")


@GPU
@pytest.mark.parametrize("dtype", OTHERS)
def test_cupy(dtype):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    a = random((4, 6), DTYPES[dtype], 1)
    array = cupy.asarray(gk.to_device(a))
    assert array.dtype == DTYPES[dtype]
    oracle.assert_same(cupy.asnumpy(array), a, "CuPy's")
    oracle.assert_same(gk.add(array, array).to_host(), oracle.add(a, a), "CuPy's operand")


# --- bytes that are neither true nor false ----------------------------------------------------


def test_a_bool_of_any_byte_goes_there_and_back():
    """NumPy takes any byte but 0 for true and keeps it as it is; so does memory here."""
    a = np.arange(256, dtype=np.uint8).view(bool)
    got = gk.to_device(a).to_host()
    np.testing.assert_array_equal(got.view(np.uint8), a.view(np.uint8))
    np.testing.assert_array_equal(gk.transpose(a).view(np.uint8), a.view(np.uint8))


def test_a_byte_of_any_value_but_0_is_true():
    """What is viewed as bool may hold more than 0 and 1."""
    for count in (6, 37, 5003):
        raw = np.random.default_rng(count).integers(0, 256, count, np.uint8)
        raw[::3] = 0
        other = np.roll(raw, 1)
        a, b = raw.view(np.bool_), other.view(np.bool_)
        x, y = raw != 0, other != 0
        for p, q in ((a, b), (gk.to_device(a), gk.to_device(b))):
            for op in ("add", "multiply", "maximum", "minimum", "less"):
                got = np.asarray(getattr(gk, op)(p, q))
                oracle.assert_same(got, getattr(np, op)(x, y), f"{op} {count}")
                got = np.asarray(getattr(gk, op)(p[1:], q[:1]))
                oracle.assert_same(
                    got, getattr(np, op)(x[1:], y[:1]), f"{op} {count}, off, repeated"
                )
            oracle.assert_same(np.asarray(gk.abs(p)), x, f"abs {count}")
            for op in ("sum", "max", "min", "argmax", "argmin", "prod", "mean"):
                assert np.asarray(getattr(gk, op)(p)) == getattr(np, op)(x), f"{op} {count}"
            assert np.asarray(gk.dot(p, q)) == np.dot(x, y)
        square = raw[:36].reshape(6, 6) if count > 36 else raw.reshape(2, 3)
        for axis in (0, 1):
            got = np.asarray(gk.sum(square.view(np.bool_), axis))
            oracle.assert_same(got, np.sum(square != 0, axis), f"sum axis {axis}")
