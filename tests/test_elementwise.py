"""The elementwise operations: every kernel on every nasty array, with canaries round what is
written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gpukern as gk
import oracle
from arrays import (
    DTYPES,
    ELEMENTWISE,
    LAYOUTS,
    SAMPLED,
    SIZES,
    WALKED,
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
    result_dtype,
    sanitized,
    table,
    variants,
)
from gpukern import _core

FLOATS = ("divide", "sqrt", "exp")
NOT_BOOL = ("subtract", "negative", "clip")
# A sanitizer sees each template once: operations of one, two and three operands.
OPERATIONS = ("exp", "add", "less", "scale_add") if sanitized() else tuple(ELEMENTWISE)
# Of the dtypes that large products only sample, so do these, in operations of each template;
# test_other_dtypes.py has every operation of every dtype.
SAMPLES = ("abs", "add", "less", "scale_add", "clip")


def is_walked(op, dtype):
    return dtype in WALKED or (op in SAMPLES and dtype in SAMPLED)


KERNELS = [(op, *row) for op in OPERATIONS for row in variants(op) if is_walked(op, row[1])]
PAIRS = [(op, dtype) for op in OPERATIONS for dtype in dtypes_of(op) if is_walked(op, dtype)]
IN_PLACE = [row for row in KERNELS if result_dtype(row[0], DTYPES[row[2]]) == DTYPES[row[2]]]
ADD = [row for row in variants("add") if is_walked("add", row[1])]
SHAPES = ((), (1,), (17,), (1037,), (33, 65), (3, 5, 7))
BROADCASTS = (
    *(((7, 5), (5,)), ((7, 5), (7, 1)), ((1, 5), (7, 1)), ((4,), ()), ((), (2, 3))),
    *(((2, 3, 4), (3, 1)), ((1, 1, 1), (2, 3, 4)), ((5, 1, 4, 1), (3, 1, 6)), ((1,), (1, 1))),
    *(((0, 3), (1,)), ((4, 1), (0,)), ((2, 1, 0), (5, 1)), ((16, 32), (32,)), ((16, 32), (16, 1))),
)


def run(op, *operands, **options):
    bounds = oracle.bounds(operands[0].dtype) if op == "clip" else ()
    return getattr(gk, op)(*operands, *bounds, **options)


def others(op, a):
    """Random operands to go with `a`."""
    return [random(a.shape, a.dtype.newbyteorder("="), 3 + i) for i in range(ELEMENTWISE[op] - 1)]


def some(op, shape, dtype, seed=4):
    """Random operands, all in the domain of the operation."""
    arrays = [random(shape, DTYPES[dtype], seed + i) for i in range(ELEMENTWISE[op])]
    return [np.abs(arrays[0])] if op == "sqrt" else arrays


def home(shape, dtype):
    return dict(places(shape, DTYPES[dtype]))["aligned"]


def test_every_operation_has_every_dtype_that_numpy_gives_back():
    assert set(ELEMENTWISE) <= set(gk.__all__)
    for op in ELEMENTWISE:
        wanted = {name for name in DTYPES if op not in FLOATS or is_float(DTYPES[name])}
        wanted -= {"bool"} if op in NOT_BOOL else set()
        assert set(dtypes_of(op)) == wanted, op


@pytest.mark.costly(3)
@pytest.mark.parametrize(("op", "variant", "dtype"), KERNELS)
def test_sizes_and_layouts_from_the_host(op, variant, dtype):
    for size in SIZES:
        operands = others(op, a := random(size, DTYPES[dtype], size))
        got = run(op, a, *operands, variant=variant)
        oracle.assert_elementwise(op, got, [a, *operands], f"{size}")
    for name, layout in LAYOUTS.items():
        a = layout(random((5, 7, 16), DTYPES[dtype], 2))
        operands = others(op, a)
        for order in ([a, *operands], [*operands, a]):
            oracle.assert_elementwise(op, run(op, *order, variant=variant), order, name)


@pytest.mark.parametrize(("variant", "dtype"), ADD)
def test_add_of_every_nasty_array(variant, dtype):
    for case, a in nasty(DTYPES[dtype]):
        b = random(a.shape, DTYPES[dtype], 3)
        oracle.assert_same(gk.add(a, b, variant=variant), oracle.add(a, b), f"{case} + random")
        oracle.assert_same(gk.add(b, a, variant=variant), oracle.add(b, a), f"random + {case}")


@pytest.mark.parametrize(("op", "variant", "dtype"), KERNELS)
def test_every_content_with_others(op, variant, dtype):
    named = list(contents(DTYPES[dtype], 1037))
    for i, (case, a) in enumerate(named):
        rest = [named[(i * 3 + k) % len(named)][1][::-1] for k in range(1, ELEMENTWISE[op])]
        oracle.assert_elementwise(op, run(op, a, *rest, variant=variant), [a, *rest], case)


@pytest.mark.parametrize(("op", "dtype"), PAIRS)
def test_every_content_with_every_other(op, dtype):
    named = list(contents(DTYPES[dtype], 1037))
    for left, a in named if ELEMENTWISE[op] > 1 else ():
        for right, b in named:
            operands = [a, b[::-1], b][: ELEMENTWISE[op]]
            oracle.assert_elementwise(op, run(op, *operands), operands, f"{left}, {right}")


@pytest.mark.costly(3)
@pytest.mark.parametrize(("op", "variant", "dtype"), KERNELS)
@pytest.mark.parametrize("shape", [(33, 64)])
def test_places_on_the_device(op, variant, dtype, shape, balanced):
    check_places(op, variant, dtype, shape)


@pytest.mark.parametrize(("variant", "dtype"), ADD)
@pytest.mark.parametrize("shape", SHAPES)
def test_places_of_add_on_the_device(variant, dtype, shape, balanced):
    check_places("add", variant, dtype, shape)


def check_places(op, variant, dtype, shape):
    operands = some(op, shape, dtype)
    want = np.asarray(run(op, *operands))  # which other tests hold against NumPy
    at_home, count = home(shape, dtype), ELEMENTWISE[op]
    outs = dict(places(shape, result_dtype(op, DTYPES[dtype])))
    for case, place in places(shape, DTYPES[dtype]):
        for moved in (0, count, None):
            spots = [place if moved in (i, None) else at_home for i in range(count)]
            there = [on_device(at, values) for at, values in zip(spots, operands, strict=True)]
            # A byte is a whole element of a bool.
            elsewhere = outs.get(case, outs["one element off"])
            out = on_device(elsewhere if moved in (count, None) else outs["aligned"])
            label = f"{moved} {case}"
            views = [each.view for each in there]
            assert run(op, *views, out=out.view, variant=variant) is out.view, label
            assert out.holds(want), f"{label}: wrong, or written outside of out"
            for each, values in zip(there, operands, strict=True):
                assert each.holds(values), f"{label}: an operand was changed"


# Blocks of vectors of which the last one, two or all are none: these share out what is left.
ENDS = (*range(1, 36), *(n * 512 + k for n in (1, 2, 4, 8, 16, 17) for k in (-15, -7, -1, 1, 3)))


def check_ends(op, dtype, expected, variant=None):
    for count in ENDS:
        a, b = (random(count, DTYPES[dtype], seed) for seed in (4, 5))
        out = on_device(dict(places((count,), DTYPES[dtype]))["aligned"])
        getattr(gk, op)(gk.to_device(a), gk.to_device(b), out=out.view, variant=variant)
        assert out.holds(expected(a, b)), count


@pytest.mark.parametrize(("variant", "dtype"), ADD)
def test_sums_end_where_their_arrays_end(variant, dtype):
    check_ends("add", dtype, oracle.add, variant)


@pytest.mark.parametrize("dtype", dtypes_of("maximum"))
def test_results_end_where_their_arrays_end(dtype):
    check_ends("maximum", dtype, np.maximum)


@pytest.mark.parametrize(("variant", "dtype"), ADD)
def test_out_on_the_host_with_canaries(variant, dtype):
    for shape in SHAPES:
        a, b = (random(shape, DTYPES[dtype], seed) for seed in (4, 5))
        for case, place in places(shape, DTYPES[dtype]):
            block = place.block()
            out = place.view(block)
            assert gk.add(a, b, out=out, variant=variant) is out
            np.testing.assert_array_equal(block, place.block(oracle.add(a, b)), case)


@pytest.mark.parametrize(("op", "dtype"), [pair for pair in PAIRS if ELEMENTWISE[pair[0]] > 1])
@pytest.mark.parametrize("where", ["host", "device", "mixed"])
def test_broadcasting(op, dtype, where):
    for left, right in BROADCASTS:
        operands = [random(s, DTYPES[dtype], i) for i, s in enumerate((left, right, (1,)))]
        operands = operands[: ELEMENTWISE[op]]
        there = [
            gk.to_device(operand) if where == "device" or (where == "mixed" and i == 0) else operand
            for i, operand in enumerate(operands)
        ]
        got = run(op, *there)
        assert isinstance(got, np.ndarray | np.generic if where == "host" else gk.DeviceArray)
        oracle.assert_elementwise(op, np.asarray(got), operands, f"{left}, {right}")


@pytest.mark.parametrize(("variant", "dtype"), variants("scale_add"))
def test_every_variant_broadcasts_on_the_device(variant, dtype):
    for shapes in (((64, 48), (48,), (64, 1)), ((1,), (64, 48), (1, 48)), ((64, 1), (), (1, 48))):
        operands = [random(shape, DTYPES[dtype], i) for i, shape in enumerate(shapes)]
        got = gk.scale_add(*map(gk.to_device, operands), variant=variant)
        oracle.assert_elementwise("scale_add", got.to_host(), operands, f"{shapes}")


@settings(max_examples=30)
@given(data=st.data(), pair=st.sampled_from(PAIRS))
def test_any_shapes_that_broadcast_and_any_views(data, pair):
    op, dtype = pair
    count = ELEMENTWISE[op]
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=count, max_dims=4, max_side=6))
    arrays = [random(shape, DTYPES[dtype], seed) for seed, shape in enumerate(shapes.input_shapes)]
    keys = [data.draw(hnp.basic_indices(a.shape, allow_newaxis=True)) for a in arrays]
    operands = [np.asarray(a[key]) for a, key in zip(arrays, keys, strict=True)]
    views = [gk.to_device(a)[key] for a, key in zip(arrays, keys, strict=True)]
    try:
        np.broadcast_shapes(*(operand.shape for operand in operands))
    except ValueError:
        for wrong in (operands, views):
            with pytest.raises(ValueError, match=f"{op}: operands could not be broadcast"):
                run(op, *wrong)
        return
    label = f"{[operand.shape for operand in operands]}"
    oracle.assert_elementwise(op, run(op, *operands), operands, label)
    oracle.assert_elementwise(op, run(op, *views).to_host(), operands, f"{label} on the device")


@pytest.mark.parametrize(("op", "dtype"), [pair for pair in PAIRS if ELEMENTWISE[pair[0]] > 1])
@pytest.mark.parametrize("device", [False, True])
def test_python_scalars_take_the_dtype_of_the_array(op, dtype, device):
    a = random((5, 3), DTYPES[dtype])
    x = gk.to_device(a) if device else a
    scalars = [False, True] if dtype == "bool" else [0, 1, 100, True]
    scalars += [-1.5, 3.25, float("inf")] if is_float(DTYPES[dtype]) else []
    for scalar in scalars:
        for place in range(ELEMENTWISE[op]):
            given = [scalar] * ELEMENTWISE[op]
            given[place] = x
            same = [np.full(a.shape, scalar).astype(a.dtype)] * ELEMENTWISE[op]
            same[place] = a
            oracle.assert_elementwise(op, np.asarray(run(op, *given)), same, f"{scalar} {place}")


def test_scale_add_rounds_once():
    """With two roundings each of these is the even neighbour."""
    for dtype, digits in (("float16", 11), ("bfloat16", 8), ("float32", 24), ("float64", 53)):
        kind = DTYPES[dtype].type
        half, little = kind(2.0**-digits), kind(2.0 ** -(digits + 3))
        just = np.array([1 + float(half) * 2 * k for k in (0, 1, 2)]).astype(kind)
        above = gk.scale_add(np.full(3, half), np.full(3, kind(1) + little * 8), just)
        oracle.assert_elementwise("scale_add", above, [half, kind(1) + little * 8, just], dtype)
        one, tie = kind(1), kind(1 + 2.0 ** (1 - digits))
        # a * x is half a unit of 1 and a little more or less
        for x in (np.nextafter(one, kind(2)), np.nextafter(one, kind(0))):
            got = gk.scale_add(np.full(1, half), np.full(1, x), np.full(1, one))
            want = tie if float(x) > 1 else one
            assert got[0] == want, (dtype, x)
        # a * x lies half-way between two numbers, and y, which float32 has no digit for, decides
        tiny = 2.0**-24 if dtype == "float16" else 2.0**-100
        a, x = (1 + 2.0**-n for n in (digits // 2, digits - digits // 2))
        lower = a + x - 1
        for y, want in ((tiny, lower + 2.0 ** (1 - digits)), (-tiny, lower)):
            got = gk.scale_add(*(np.full(1, kind(each)) for each in (a, x, y)))
            assert got[0] == kind(want), (dtype, y)


@pytest.mark.parametrize(("op", "variant", "dtype"), IN_PLACE)
@pytest.mark.parametrize("device", [False, True])
def test_out_is_an_input(op, variant, dtype, device):
    operands = some(op, 1037, dtype)
    want = np.asarray(run(op, *operands))
    for pick in range(ELEMENTWISE[op]):
        there = [gk.to_device(a) if device else a.copy() for a in operands]
        assert run(op, *there, out=there[pick], variant=variant) is there[pick]
        oracle.assert_same(np.asarray(there[pick]), want, f"{pick}")


def test_out_holds_an_operand_of_one_element():
    a = random(5000, DTYPES["float32"])
    device = gk.to_device(a)
    gk.add(device, device[3:4], out=device)
    oracle.assert_same(device.to_host(), oracle.add(a, a[3:4]), "one element of out")
    gk.multiply(device[7], device, out=device)
    want = oracle.add(a, a[3:4])
    oracle.assert_same(device.to_host(), want * want[7], "0-d")


OVERLAPS = [(0, 1, 2), (1, 0, 2), (2, 1, 0), (3, 3, 2), (2, 2, 3), (0, 8, 4), (8, 0, 1)]


@pytest.mark.parametrize(("variant", "dtype"), ADD)
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
        out = device.T if case == "transposed" else device[::-1, ::-1]
        gk.add(device, device, out=out)
        oracle.assert_same(device.to_host(), want, f"device {case}")


def test_out_reaches_backwards_into_the_input():
    """Its first element lies outside of what is read, and the others do not."""
    want = random(3000, DTYPES["float32"], 7)
    host, device = want.copy(), gk.to_device(want)
    want[2999:999:-1] = oracle.add(want[:2000], want[:2000])
    gk.add(host[:2000], host[:2000], out=host[2999:999:-1])
    oracle.assert_same(host, want, "host")
    gk.add(device[:2000], device[:2000], out=device[2999:999:-1])
    oracle.assert_same(device.to_host(), want, "device")


def ran(call):
    """The variant that `call` ran."""
    _core.profile_start()
    try:
        call()
    finally:
        records = _core.profile_stop()
    return records[0]["variant"]


def contiguous_rows(op, dtype):
    """(variant, alignment) of the rows for contiguous arrays; the last one is the default."""
    return [
        (row["variant"], row["alignment"])
        for row in table()
        if (row["op"], row["dtype"]) == (op, dtype) and not row["variant"].startswith("strided")
    ]


def wide_row(op, dtype):
    """The variant that writes rows by vectors."""
    return next(v for v, name in variants(op) if name == dtype and v.startswith("strided_"))


@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_misaligned_pointers_take_a_narrower_variant(op, dtype):
    """Where the table has one, as for add of float32 and float16; else one for strides: by vectors
    where the result still is aligned."""
    rows = contiguous_rows(op, dtype)
    if not rows:
        assert dtype not in dtypes_of(op)
        return
    default, size = rows[-1][0], DTYPES[dtype].itemsize
    narrower = next((v for v, alignment in rows[::-1] if alignment <= size), None)
    assert (narrower is not None) == (op == "add" and dtype in ("float32", "float16"))
    shape, to = (1037,), result_dtype(op, DTYPES[dtype])
    a = [random(shape, DTYPES[dtype])] * ELEMENTWISE[op]
    where, outs = dict(places(shape, DTYPES[dtype])), dict(places(shape, to))
    aligned, moved = on_device(where["aligned"], a[0]), on_device(where["one element off"], a[0])
    out, moved_out = gk.empty(shape, to), on_device(outs["one element off"])
    for named in (None, default):
        assert ran(lambda named=named: run(op, *a, variant=named)) == default
        got = ran(lambda named=named: run(op, aligned.view, *a[1:], out=out, variant=named))
        assert got == default
        got = ran(lambda named=named: run(op, moved.view, *a[1:], out=out, variant=named))
        assert got == (narrower or wide_row(op, dtype))
        got = ran(lambda named=named: run(op, *a, out=moved_out.view, variant=named))
        assert got == (narrower or "strided")


@pytest.mark.parametrize("dtype", dtypes_of("add"))
def test_strides_take_the_strided_variants(dtype):
    wide = wide_row("add", dtype)
    narrow = "strided" if DTYPES[dtype].itemsize == 8 else wide
    square, row = gk.empty((64, 64), dtype), gk.empty((64,), dtype)
    column = gk.empty((64, 1), dtype)
    for other in (row, column):
        assert ran(lambda other=other: gk.add(square, other)) == wide
        # It is the result that has to be aligned, the operands need not be; a new one is one row.
        assert ran(lambda other=other: gk.add(square[:, 1:], other[:1])) == narrow
        assert ran(lambda other=other: gk.add(square[:, 32:], other[:1])) == wide
        assert ran(lambda other=other: gk.add(square[:, 1:33], other[:1])) == wide
    assert ran(lambda: gk.add(square[::2], True)) == wide
    assert ran(lambda: gk.add(square[:, ::2], square[:, 1::2])) == wide
    assert ran(lambda: gk.add(square, square.T)) == wide
    assert ran(lambda: gk.add(square, square, out=gk.empty((64, 65), dtype)[:, 1:])) == "strided"
    # Rows that are not made of whole vectors are worth them where they are long.
    for columns, best in ((3, "strided"), (512, wide), (513, wide)):
        apart = gk.empty((3, 1024), dtype)[:, :columns]
        assert ran(lambda apart=apart: gk.add(apart, apart, out=apart)) == best
    assert not ran(lambda: gk.add(square.T, square.T, out=square.T)).startswith("strided")
    # The ladder's kernels read as many elements of both operands.
    repeating = wide if dtype in ("float32", "float16") else contiguous_rows("add", dtype)[-1][0]
    for one in (row[3], row[3:4], True):
        assert ran(lambda one=one: gk.add(square, one)) == repeating


def test_more_axes_than_a_kernel_takes():
    shape = (2, 3) * 5
    a = random(shape, DTYPES["float32"], 1)
    order = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
    device = gk.transpose(gk.to_device(a.transpose(np.argsort(order))), order)
    view = gk.to_device(np.repeat(a, 2, axis=-1))[..., ::2]
    got = gk.add(device, view).to_host()
    oracle.assert_same(got, oracle.add(a, a), "ten axes")


@pytest.mark.parametrize("op", FLOATS)
def test_integers_that_numpy_would_make_floats(op):
    for dtype in (name for name in DTYPES if not is_float(DTYPES[name])):
        with pytest.raises(TypeError, match=rf"{op}: no kernel for {dtype}.*float32.*astype"):
            run(op, *some(op, 5, dtype))


@pytest.mark.parametrize(("op", "variant", "dtype"), KERNELS)
def test_a_large_array(op, variant, dtype):
    count = (1 << 26) + 157 if on_gpu() and op == "add" else (1 << 17) + 157
    operands = [np.resize(a, count) for a in some(op, 12345, dtype)]
    got = run(op, *operands, variant=variant)
    oracle.assert_elementwise(op, got[-70_000:], [a[-70_000:] for a in operands], "large")


@pytest.mark.skipif(not on_gpu(), reason="4 GiB arrays take minutes on the simulator")
def test_more_than_four_gibi_elements():
    count = (1 << 32) + 13
    a = gk.to_device(np.resize(np.arange(251, dtype=np.uint8), count))
    gk.add(a, a, out=a)
    want = np.resize(np.arange(251, dtype=np.uint8) * np.uint8(2), count)
    assert np.array_equal(a.to_host(), want)
    assert np.array_equal(gk.add(a[::2], np.uint8(1)).to_host(), want[::2] + np.uint8(1))
