"""Host arrays through the device: mapped, in chunks, by panels or as a whole, always the same."""

from __future__ import annotations

import os
import threading
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import gpukern as gk
import oracle
from arrays import (
    DTYPES,
    EMPTY_SHAPES,
    LAYOUTS,
    Array,
    dtypes_of,
    on_gpu,
    random,
    same_bits,
    sanitized,
    swapped,
    variants,
)
from gpukern import _core
from waiting import join_all

CHUNK_BYTES = 2 << 20
LEAST_CHUNK = 32768
# Around the least and the greatest chunk, one chunk a worker and several, and primes.
COUNTS = (1, 2, 255, LEAST_CHUNK - 1, LEAST_CHUNK, LEAST_CHUNK + 1, 65_537, 3 * LEAST_CHUNK)
COUNTS += (262_143, 524_287, 524_288, 524_289, 1_299_709)
FEW = COUNTS[3:7]


@pytest.fixture
def chunked():
    """Nothing is small enough for mapped memory: even one element goes through the pipeline."""
    with gk.limits(mapped_call=0):
        yield


@pytest.fixture(params=[8 << 20, 1 << 16], ids=["long chunks", "short chunks"])
def chunk(request):
    """Bytes of a chunk, at most."""
    before = _core.limit("chunk", request.param)
    yield request.param
    _core.limit("chunk", before)


def product(a, b, **options):
    """The product that a user gets on a GPU; the one that the simulator is quick at elsewhere."""
    return gk.matmul(a, b, variant=None if on_gpu() else "naive", **options)


def on_the_device(op, *arrays, variant=None):
    """The operation as a whole: its operands are on the device before it starts."""
    return getattr(gk, op)(*map(gk.to_device, arrays), variant=variant).to_host()


@pytest.mark.parametrize("first", [0, 1, 5])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_long_rows_that_lie_apart(dtype, first):
    """Runs of more than 256 KiB, at any alignment: what lies between them is left alone."""
    count = 5_000_000 // DTYPES[dtype].itemsize
    wide = random((3, count + 40), DTYPES[dtype], 1)
    rows = wide[:, first : first + count]
    out = np.full_like(wide, 7)
    there = gk.to_device(rows)
    same_bits(there.to_host(), rows.copy(), "in")
    there.to_host(out=out[:, first : first + count])
    same_bits(out[:, first : first + count], rows, "out")
    assert (out[:, :first] == 7).all()
    assert (out[:, first + count :] == 7).all()


# --- in chunks --------------------------------------------------------------------------------


@pytest.mark.parametrize(("variant", "dtype"), variants("add"))
def test_add_in_chunks_is_add_as_a_whole(chunked, variant, dtype):
    for count in COUNTS if dtype in ("float32", "int8") else FEW:
        a, b = (random(count, DTYPES[dtype], seed) for seed in (count, count + 1))
        got = gk.add(a, b, variant=variant)
        same_bits(got, on_the_device("add", a, b, variant=variant), f"{count} elements")
        oracle.assert_same(got, oracle.add(a, b), f"{count} elements")


def fixed_order(op):
    """atomic adds in no fixed order, so that floats have no fixed bits."""
    return [pair for pair in variants(op) if pair[0] != "atomic" or DTYPES[pair[1]].kind in "iu"]


@pytest.mark.parametrize(("variant", "dtype"), fixed_order("sum"))
def test_sum_in_chunks_is_sum_as_a_whole(chunked, variant, dtype):
    for count in COUNTS if variant == "compensated" and dtype == "float32" else FEW:
        a = random(count, DTYPES[dtype], count)
        got = gk.sum(a, variant=variant)
        same_bits(got, on_the_device("sum", a, variant=variant), f"{count} elements")
        oracle.assert_sum(got, a, variant, f"{count} elements")


def test_an_atomic_sum_in_chunks(chunked):
    for count in FEW:
        a = random(count, DTYPES["float32"], count)
        oracle.assert_sum(gk.sum(a, variant="atomic"), a, "atomic", f"{count} elements")


def test_a_sum_is_the_same_whatever_its_way():
    """Mapped, in chunks, packed from strides, from the device: one partition, one result."""
    for count in (40_000, 40_001):
        a = random(count, DTYPES["float32"], count)
        wide = np.zeros(3 * count, np.float32)
        wide[::3] = a
        mapped = gk.sum(a)
        with gk.limits(mapped_call=0):
            ways = [gk.sum(a), gk.sum(wide[::3]), gk.sum(swapped(a)), gk.sum(a[::-1][::-1])]
        ways.append(gk.sum(gk.to_device(a)).to_host())
        for number, way in enumerate(ways):
            same_bits(way, mapped, f"way {number}")


SHAPE = (257, 301)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8"])
def test_layouts_are_packed_on_the_way(chunked, layout, dtype):
    a, b = (random(SHAPE, DTYPES[dtype], seed) for seed in (1, 2))
    x, y = LAYOUTS[layout](a), LAYOUTS[layout](b)
    oracle.assert_same(gk.add(x, y), oracle.add(np.asarray(x), np.asarray(y)), layout)
    oracle.assert_same(gk.add(x, b), oracle.add(np.asarray(x), b), f"{layout} and contiguous")
    oracle.assert_same(gk.to_device(x).to_host(), np.asarray(x), f"{layout} to_device")
    if dtype in dtypes_of("sum"):
        native = np.ascontiguousarray(x).astype(DTYPES[dtype])
        same_bits(gk.sum(x), on_the_device("sum", native), layout)


@pytest.mark.parametrize("offset", [0, 1, 15, 16])
@pytest.mark.parametrize("length", [(512 << 10) + 1, (512 << 10) + 127, 513 << 10])
def test_long_rows_are_packed_whole(length, offset):
    """Rows longer than 256 KiB, which go past the caches: at any address, to their last byte."""
    a = random((12, length + 40), DTYPES["uint8"], length)
    rows = a[:, offset : offset + length]
    oracle.assert_same(gk.to_device(rows).to_host(), rows, "to_device")
    target = a.copy()
    want = a.copy()
    want[:, offset : offset + length] = rows[::-1]
    gk.to_device(rows[::-1]).to_host(out=target[:, offset : offset + length])
    oracle.assert_same(target, want, "to_host and nothing beside it")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (SHAPE, (1, 301)),
        (SHAPE, (257, 1)),
        ((257, 1), (1, 301)),
        (SHAPE, (301,)),
        (SHAPE, ()),
        ((), ()),
        ((1,), (70_001,)),
        ((5, 1, 7, 1, 301), (1, 11, 1, 2, 301)),
        ((3, 2, 2, 2, 2, 2, 2, 2, 101), (2, 1, 2, 1, 2, 1, 2, 1)),
    ],
)
def test_broadcasting_in_chunks(chunked, left, right):
    a, b = random(left, DTYPES["float32"], 1), random(right, DTYPES["float32"], 2)
    oracle.assert_same(np.asarray(gk.add(a, b)), np.asarray(oracle.add(a, b)), f"{left} {right}")
    oracle.assert_same(np.asarray(gk.add(b, a)), np.asarray(oracle.add(b, a)), f"{right} {left}")


def test_a_python_scalar_in_chunks(chunked):
    a = random(SHAPE, DTYPES["float32"])
    oracle.assert_same(gk.add(a, 0.1), a + np.float32(0.1), "scalar")
    oracle.assert_same(gk.add(0.1, a[::-1]), a[::-1] + np.float32(0.1), "scalar on the left")


@pytest.mark.parametrize("shape", EMPTY_SHAPES)
def test_nothing_in_chunks(chunked, shape):
    a = np.empty(shape, np.float32)
    assert gk.add(a, a).shape == shape
    assert gk.sum(a) == 0
    assert gk.to_device(a).to_host().shape == shape


@st.composite
def views(draw):
    """A view of some array, large enough for several chunks, walked in any way."""
    ndim = draw(st.integers(1, 4))
    side = {1: 100_000, 2: 320, 3: 48, 4: 18}[ndim]
    shape = [draw(st.integers(side // 2, side)) for _ in range(ndim)]
    steps = [draw(st.sampled_from([1, -1, 2, -3])) for _ in range(ndim)]
    whole = random(tuple(n * abs(s) for n, s in zip(shape, steps, strict=True)), DTYPES["int32"])
    view = whole[tuple(slice(None, None, step) for step in steps)]
    return view.transpose(draw(st.permutations(range(ndim))))


@hypothesis.given(views())
@hypothesis.settings(max_examples=15 if sanitized() else 40)
def test_any_view_in_chunks(view):
    with gk.limits(mapped_call=0):
        oracle.assert_same(gk.add(view, view), oracle.add(view, view), "add")
        assert gk.sum(view) == np.sum(view, dtype=np.int64)
        oracle.assert_same(gk.to_device(view).to_host(), view, "to_device")


# --- out --------------------------------------------------------------------------------------

OUT_COUNTS = (1000, 30_000, 100_003, 700_001)


@pytest.mark.parametrize("count", OUT_COUNTS)
def test_out_may_be_an_input(count):
    a, b = random(count, DTYPES["float32"], 1), random(count, DTYPES["float32"], 2)
    want = oracle.add(a, b)
    first, second = a.copy(), b.copy()
    assert gk.add(first, b, out=first) is first
    oracle.assert_same(first, want, "out is a")
    assert gk.add(a, second, out=second) is second
    oracle.assert_same(second, want, "out is b")
    gk.add(a, a, out=a)
    oracle.assert_same(a, oracle.add(*[random(count, DTYPES["float32"], 1)] * 2), "all three")


@pytest.mark.parametrize("count", OUT_COUNTS)
def test_out_may_overlap_an_input(chunk, count):
    """Also where results come back before all of the input has been read."""
    for target in (slice(1, None), slice(None, -1)):
        a = random(count, DTYPES["float32"], 3)
        want = oracle.add(a[1:].copy(), a[:-1].copy())
        kept = a.copy()
        gk.add(a[1:], a[:-1], out=a[target])
        oracle.assert_same(a[target], want, f"{target}")
        edge = 0 if target.start else -1
        assert a[edge] == kept[edge], "what is not out has changed"
    a, far = random(count, DTYPES["float32"], 4), count // 3
    want = oracle.add(a[:-far].copy(), a[:-far].copy())
    gk.add(a[:-far], a[:-far], out=a[far:])
    oracle.assert_same(a[far:], want, "what later chunks read")
    a = random(count, DTYPES["float32"], 4)
    want = oracle.add(a, a[::-1].copy())
    gk.add(a, a[::-1], out=a[::-1])
    oracle.assert_same(a[::-1], want, "reversed")


@pytest.mark.parametrize("count", OUT_COUNTS)
def test_an_ordinary_out_is_written_once(count):
    """And where an operand lies, or between elements of another array, as if it were."""
    a, b = random(count, DTYPES["float32"], 1), random(count, DTYPES["float32"], 2)
    held = np.full(count + 64, -5, np.float32)
    for out in (held[32:-32], held[31:-33], gk.empty_pinned(count)):
        assert gk.add(a, b, out=out) is out
        oracle.assert_same(out, oracle.add(a, b), "out")
    assert (held[:31] == -5).all() and (held[-32:] == -5).all()
    pairs = np.zeros((count, 2), np.float32)
    gk.add(a, b, out=pairs[:, 1])
    oracle.assert_same(pairs[:, 1].copy(), oracle.add(a, b), "every second element")
    assert not pairs[:, 0].any()


@pytest.mark.parametrize("first", [0, 1, 63])
def test_a_long_result_is_written_past_the_caches(first):
    """As whole lines of a cache, before which and behind which some bytes are left."""
    count = 1_000_013 if sanitized() else 52_000_013
    a = np.resize(random(400_037, DTYPES["uint8"], 6), count)
    held = np.full(count + 128, 9, np.uint8)
    begin = -held.ctypes.data % 64 + first
    out = held[begin : begin + count]
    gk.add(a, a, out=out)
    same_bits(out, a + a, "out")
    assert (held[:begin] == 9).all() and (held[begin + count :] == 9).all()


def test_lines_of_a_long_result_are_written_past_the_caches():
    """Those of a turned array's boxes, which begin anywhere."""
    shape = (701, 919) if sanitized() else (7001, 7919)
    a = np.resize(random(400_037, DTYPES["uint8"], 6), shape)
    held = np.full(a.size + 128, 9, np.uint8)
    out = held[61:-67].reshape(a.T.shape)
    gk.transpose(a, out=out)
    same_bits(out, np.ascontiguousarray(a.T), "out")
    assert (held[:61] == 9).all() and (held[-67:] == 9).all()


@pytest.mark.parametrize("layout", ["strided", "negative", "fortran", "one byte off", "swapped"])
def test_large_out_of_any_layout(layout):
    a, b = (random((700, 601), DTYPES["float32"], seed) for seed in (1, 2))
    out = LAYOUTS[layout](np.zeros_like(a))
    assert gk.add(a, b, out=out) is out
    oracle.assert_same(out.astype(a.dtype), oracle.add(a, b), layout)
    gk.to_device(a).to_host(out=out)
    oracle.assert_same(out.astype(a.dtype), a, f"{layout} to_host")


@pytest.mark.parametrize("count", OUT_COUNTS)
def test_to_device_has_read_its_array_when_it_returns(count):
    """Also from memory that goes to the device without staging."""
    base = random(count, DTYPES["float32"], 5)
    for source in (base.copy(), gk.add(base, 0.0)):
        want = source.copy()
        device = gk.to_device(source)
        source[:] = -1
        oracle.assert_same(device.to_host(), want, "overwritten at once")
        copy = device.to_host()
        gk.add(device, 1.0, out=device)
        oracle.assert_same(copy, want, "the device array changed later")


@pytest.mark.parametrize("dtype", ["float64", "uint8"])
def test_back_without_pinned_memory_for_the_result(chunked, dtype):
    """Then chunks come back by way of the lanes' buffers, which are in no operand's dtype."""
    a = np.resize(random(400_037, DTYPES[dtype], 3), 10_000_019)
    device = gk.to_device(a)
    with gk.limits(pinned_memory=1):
        for _ in range(2):
            oracle.assert_same(device.to_host(), a, dtype)


def test_a_result_in_the_other_byte_order_is_an_input():
    """Results of this size are pinned, and are copied without staging but for their order."""
    a = random(300_007, DTYPES["float32"])
    other = gk.add(a, np.float32(0)).byteswap(inplace=True)
    other = other.view(other.dtype.newbyteorder())
    oracle.assert_same(gk.to_device(other).to_host(), a, "to_device")


def test_results_are_inputs_without_staging():
    """Arrays in pinned memory give the same bits, whole, sliced and strided."""
    plain = random((900, 700), DTYPES["float32"], 6)
    held = gk.add(plain, 0.0)
    assert held.ctypes.data % 4096 == 0, "a large result begins a page"
    for take in (np.s_[:], np.s_[1:], np.s_[:, 3:], np.s_[::-1], np.s_[::2, ::3]):
        x, y = held[take], plain[take]
        same_bits(gk.add(x, x), gk.add(y, y), f"add {take}")
        same_bits(gk.sum(x), gk.sum(y), f"sum {take}")
        same_bits(gk.to_device(x).to_host(), gk.to_device(y).to_host(), f"to_device {take}")
    same_bits(product(held, held[:700, :99]), product(plain, plain[:700, :99]), "matmul")
    gk.add(held, held, out=held)
    oracle.assert_same(held, oracle.add(plain, plain), "in place")


# --- in boxes and slabs -----------------------------------------------------------------------


@hypothesis.given(views(), st.data())
@hypothesis.settings(max_examples=10 if sanitized() else 25)
def test_any_view_is_transposed_in_boxes(view, data):
    order = data.draw(st.permutations(range(view.ndim)))
    before = _core.limit("chunk", data.draw(st.sampled_from([1 << 16, 8 << 20])))
    try:
        expected = np.ascontiguousarray(view.transpose(order))
        same_bits(gk.transpose(view, order), expected, "into a new array")
        out = np.zeros_like(expected)
        assert gk.transpose(view, order, out=out) is out
        same_bits(out, expected, "into an array")
    finally:
        _core.limit("chunk", before)


@pytest.mark.costly(2)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float64"])
@pytest.mark.parametrize("shape", [(700, 1001), (3, 400_001), (400_001, 2), (61, 5, 83, 29)])
def test_large_arrays_are_transposed_in_boxes(chunk, shape, dtype):
    a = random(shape, DTYPES[dtype], 1)
    want = np.ascontiguousarray(a.T)
    for one in (a, LAYOUTS["negative"](a), swapped(a)):
        same_bits(gk.transpose(one), want, "reversed axes")
        if a.ndim == 2:
            same_bits(gk.matrix_transpose(one), want, "of a matrix")
    with gk.limits(pinned_memory=0):
        same_bits(gk.transpose(a), want, "by way of the buffers")


def test_a_transpose_leaves_what_lies_round_its_result(chunk):
    a = random((600, 803), DTYPES["float32"], 2)
    held = gk.empty_pinned((a.size + 64,), "float32")
    held[:] = -5
    out = held[32:-32].reshape(803, 600)
    gk.transpose(a, out=out)
    same_bits(np.ascontiguousarray(out), np.ascontiguousarray(a.T), "between canaries")
    assert (held[:32] == -5).all() and (held[-32:] == -5).all()


REDUCED = [((2, 300_007), 0), ((300_007, 3), 1), ((40, 7, 3001), 1), ((9, 40, 7, 301), (0, 2))]
REDUCED += [
    ((5, 3, 11, 2, 2001), 3),
    ((5, 1, 200_003), (0, 1)),
    ((100_003, 2, 3), (1, 2)),
    ((33, 20_011), 0),
    ((3, 20_001, 7), 1),
]


@pytest.mark.costly(4)
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize(("shape", "axis"), REDUCED)
def test_short_axes_are_reduced_in_slabs(chunk, shape, axis, dtype):
    """Many results, which come back while others go in: with the bits of the whole."""
    a = random(shape, DTYPES[dtype], 3)
    device = gk.to_device(a)
    total, greatest = (op(device, axis=axis).to_host() for op in (gk.sum, gk.max))
    for one in (a, LAYOUTS["fortran"](a), swapped(a), np.ascontiguousarray(a[::-1])[::-1]):
        same_bits(gk.max(one, axis=axis), greatest, "max")
        out = np.zeros_like(total)
        same_bits(gk.sum(one, axis=axis, out=out), total, "out")
    kept = gk.sum(a, axis=axis, keepdims=True)
    same_bits(kept.reshape(total.shape), total, "keepdims")
    same_bits(gk.prod(a, axis=axis), gk.prod(device, axis=axis).to_host(), "prod")
    if isinstance(axis, int):
        assert np.array_equal(gk.argmax(a, axis=axis), np.argmax(a, axis=axis))


@pytest.mark.parametrize(
    ("shape", "dtype", "op"),
    [
        ((3_000_017, 2), "int8", "sum"),
        ((300_007, 7), "int8", "sum"),
        ((600_007, 3), "int16", "sum"),
        ((900_007, 2), "uint8", "argmax"),
        ((900_007, 2), "float16", "argmin"),
        ((2, 900_007), "bool", "sum"),
    ],
)
def test_results_of_more_bytes_than_what_they_are_made_of(chunk, shape, dtype, op):
    a = random(shape, DTYPES[dtype], 5)
    axis = int(np.argmin(shape))
    want = np.asarray(getattr(np, op)(a, axis=axis), np.int64)
    out = np.empty_like(want)
    same_bits(getattr(gk, op)(a, axis=axis), want, "into a new array")
    same_bits(getattr(gk, op)(a, axis=axis, out=out), want, "into an array")


@pytest.mark.parametrize("limit", [0, 1 << 20])
def test_arrays_in_the_other_order_are_reduced_as_they_lie(limit):
    """Along long axes: brought as they lie on the host, with nothing gathered there."""
    a = random((1100, 701), DTYPES["float32"], 4)
    with gk.limits(device_memory=limit):
        for axis in (0, 1):
            expected = gk.sum(gk.to_device(a), axis=axis).to_host()
            same_bits(gk.sum(LAYOUTS["fortran"](a), axis=axis), expected, f"axis {axis}")
            turned = gk.sum(np.ascontiguousarray(a.T).T, axis=axis)
            same_bits(turned, expected, f"axis {axis} of a transpose")


@pytest.mark.costly(3)
@pytest.mark.parametrize("limit", [0, 1 << 18])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64"])
@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((1100, 701), (1, 0)),
        ((178, 1676), (1, 0)),
        ((2900, 163), (1, 0)),
        ((5, 128, 937), (0, 2, 1)),
        ((37, 6, 2003), (2, 0, 1)),
    ],
)
def test_indices_of_arrays_in_another_order(shape, order, dtype, limit):
    """By the plan of the array as it lies, not as the host has it."""
    a = random(shape, DTYPES[dtype], 6)
    lies = np.ascontiguousarray(a.transpose(order)).transpose(np.argsort(order))
    with gk.limits(device_memory=limit):
        for axis in (*range(a.ndim), None):
            for op in ("argmax", "argmin"):
                want = np.asarray(getattr(np, op)(a, axis=axis))
                same_bits(np.asarray(getattr(gk, op)(lies, axis=axis)), want, f"{op}, {axis}")


# --- mapped -----------------------------------------------------------------------------------


def way_of(call):
    """ "mapped" where the call has copied nothing."""
    with gk.profile() as taken:
        call()
    (record,) = taken.calls
    assert record.bytes_in > 0
    return "mapped" if record.host_to_device == record.device_to_host == 0 else "copied"


def test_the_limit_of_a_mapped_call_is_exact():
    """One that was set; the usual one leaves what is near it to what calls take."""
    for limit in (12, 4096, 196_620, 1 << 20):
        fits = limit // 12
        with gk.limits(mapped_call=limit):
            for count, way in ((fits, "mapped"), (fits + 1, "copied")):
                a = random(count, DTYPES["float32"], count)
                if count:
                    assert way_of(lambda a=a: gk.add(a, a)) == way, (limit, count)
                oracle.assert_same(gk.add(a, a), oracle.add(a, a), f"{count} under {limit}")


def test_a_sum_counts_its_result():
    a = random(1000, DTYPES["float32"])
    for limit, way in ((4003, "copied"), (4004, "mapped")):
        with gk.limits(mapped_call=limit):
            assert way_of(lambda: gk.sum(a)) == way


def test_broadcast_operands_count_as_large_as_the_result():
    row, column = random((1, 512), DTYPES["float32"]), random((512, 1), DTYPES["float32"])
    with gk.limits(mapped_call=3 * 4 * 512 * 512):
        assert gk.limits().mapped_call == 1 << 20
        oracle.assert_same(gk.add(row, column), oracle.add(row, column), "row + column")
    with gk.limits(mapped_call=3 * 4 * 512 * 100 - 1):
        assert way_of(lambda: gk.add(row, column[:100])) == "copied"


@pytest.mark.parametrize(("variant", "dtype"), [*variants("add"), *fixed_order("sum")])
def test_mapped_is_the_same_as_on_the_device(variant, dtype):
    op = "sum" if (variant, dtype) in fixed_order("sum") else "add"
    for count in (1, 7, 1000, 4097):
        operands = [random(count, DTYPES[dtype], seed) for seed in range(2 if op == "add" else 1)]
        got = getattr(gk, op)(*operands, variant=variant)
        same_bits(got, on_the_device(op, *operands, variant=variant), f"{op} {count}")


# --- matmul by panels -------------------------------------------------------------------------

# More than 4 MiB in all, so that they go by panels; what the simulator multiplies is thin.
PRODUCTS = ((9001, 61, 67), (8200, 64, 64), (131, 2, 9000), (1, 9000, 130), (9001, 130, 1))


# The same with as little to multiply as that takes: sizes that tiles do not divide, and some that
# they do.
PRODUCTS_OF = {
    8: ((6145, 19, 67), (6560, 16, 64)),
    4: ((12_289, 19, 67), (13_112, 16, 64)),
    2: ((33_301, 31, 32),),
    1: ((66_601, 31, 32),),
}
# Less than that of dtypes as wide as another one: copied, and multiplied in one piece.
AS_WIDE = ("bfloat16", "int16", "uint16", "int8", "bool")


@pytest.mark.costly(4)
@pytest.mark.parametrize(("variant", "dtype"), variants("matmul"))
def test_panels_of_rows_have_the_bits_of_the_whole(variant, dtype):
    sizes = PRODUCTS_OF[DTYPES[dtype].itemsize]
    if dtype in AS_WIDE:
        sizes = PRODUCTS_OF[4][:1]
    for m, k, n in sizes[: 2 if variant in ("tiled", "cublas") else 1]:
        a, b = random((m, k), DTYPES[dtype], m), random((k, n), DTYPES[dtype], n)
        got = gk.matmul(a, b, variant=variant)
        assert a.nbytes + b.nbytes + got.nbytes >= (1 << 20 if dtype in AS_WIDE else 4 << 20)
        same_bits(got, on_the_device("matmul", a, b, variant=variant), f"{m} {k} {n}")


def on_device(a, b):
    return product(gk.to_device(a), gk.to_device(b)).to_host()


@pytest.mark.parametrize("sizes", PRODUCTS)
def test_panels_of_rows_and_columns(sizes):
    m, k, n = sizes
    a, b = random((m, k), DTYPES["float32"], m), random((k, n), DTYPES["float32"], n)
    for limit in (8 << 20, 2 << 20, 300 << 10):
        with gk.limits(device_memory=limit):
            got = product(a, b)
        oracle.assert_matmul(got, a, b, "cublas", f"{sizes} under {limit}")
        if not on_gpu():  # cuBLAS may choose another kernel for a narrower C
            same_bits(got, on_device(a, b), f"{sizes} under {limit}")


@pytest.mark.parametrize("layout", ["strided", "negative", "fortran", "swapped", "one byte off"])
def test_panels_of_any_layout(layout):
    a, b = random((9001, 61), DTYPES["float32"], 1), random((61, 67), DTYPES["float32"], 2)
    x, y = LAYOUTS[layout](a), LAYOUTS[layout](b)
    want = product(np.ascontiguousarray(x).astype("f4"), np.ascontiguousarray(y).astype("f4"))
    if on_gpu() and layout == "fortran":  # for which cuBLAS has other kernels
        oracle.assert_matmul(want, x, y, "cublas", layout)
        want = product(x, y)
    same_bits(product(x, y), want, layout)
    out = LAYOUTS[layout](np.zeros((9001, 67), np.float32))
    product(x, y, out=out)
    same_bits(out.astype("f4"), want, f"{layout} out")


def test_vectors_by_panels():
    a, v = random((1100, 1000), DTYPES["float32"], 1), random(1000, DTYPES["float32"], 2)
    w = random(1100, DTYPES["float32"], 3)
    for operands in ((a, v), (w, a), (random(600_000, DTYPES["float32"]),) * 2):
        same_bits(product(*operands), on_device(*operands), f"{[x.shape for x in operands]}")


def test_a_product_into_an_operand_and_of_nothing():
    a = (
        random((1100, 1100), DTYPES["float32"], 1)
        if on_gpu()
        else random((9001, 2), np.dtype("f4"))
    )
    b = random((a.shape[1],) * 2, DTYPES["float32"], 2)
    want = product(a, b)
    product(a, b, out=a)
    same_bits(a, want, "out is a")
    nothing = gk.matmul(np.empty((1500, 0), np.float32), np.empty((0, 1000), np.float32))
    assert nothing.shape == (1500, 1000)
    assert not nothing.any()


# --- larger than the device -------------------------------------------------------------------

SMALL_DEVICE = """
import os
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
import numpy as np
import gpukern as gk
from gpukern import _core
assert _core.backend() == "sim" and _core.devices()[0]["memory_total"] == 60 << 20
rng = np.random.default_rng(1)
a = np.arange(6_000_000, dtype=np.float32)
assert 3 * a.nbytes > 60 << 20
assert (gk.add(a, 1.0) == a + 1).all()
assert gk.sum(np.ones(13 << 20, np.int8).view(np.int32)) == (13 << 18) * 0x01010101
x = rng.integers(-9, 9, (90_001, 125)).astype(np.float32)
y = rng.integers(-9, 9, (125, 8)).astype(np.float32)
assert x.nbytes + y.nbytes + 4 * 90_001 * 8 > 45 << 20
assert (gk.matmul(x, y, variant="naive") == x @ y).all()
with gk.limits(device_memory=4 << 20):
    assert (gk.matmul(x[:20_000], y, variant="naive") == x[:20_000] @ y).all()
s, t = (rng.integers(-9, 9, (40_000, *each)).astype(np.float32) for each in ((9, 40), (40, 1)))
assert s.nbytes + t.nbytes > 60 << 20
assert (gk.matmul(s, t, variant="naive") == s @ t).all()
for call in (lambda: gk.to_device(a.repeat(3)), lambda: gk.empty(13 << 20)):
    try:
        call()
    except MemoryError as error:
        assert "device memory" in str(error)
    else:
        raise AssertionError("it fits?")
assert _core.live_bytes() == 0
"""


@pytest.mark.skipif(on_gpu(), reason="the next test fills the GPU's memory")
def test_arrays_larger_than_the_device(script):
    """Of the 60 MiB the two lanes of two cores take 48."""
    run = script(SMALL_DEVICE, GPUKERN_SIM_MEMORY=str(60 << 20))
    assert run.returncode == 0, run.stderr


TINY_DEVICE = """
import numpy as np, gpukern as gk
from gpukern import _core
a = np.random.default_rng(0).integers(-9, 9, (3000, 1000)).astype(np.float32)
for axis in (0, 1):
    assert (gk.sum(a, axis) == a.sum(axis)).all()
    assert (gk.argmax(a[:, ::-1], axis) == a[:, ::-1].argmax(axis)).all()
assert (gk.sum(a.reshape(30, 100, 1000), (0, 2)) == a.reshape(30, 100, 1000).sum((0, 2))).all()
assert (gk.max(a.reshape(-1, 2), 1) == a.reshape(-1, 2).max(1)).all(), "half as many results"
assert (gk.add(a, a[0]) == a + a[0]).all()
assert (gk.add(a.T, 1.0, variant="f32") == a.T + 1).all()
for variant in (None, "single_launch", "atomic"):
    assert gk.sum(a, variant=variant) == a.sum()
assert gk.dot(a.ravel(), a.ravel()) == np.float32((a.astype(np.int64) ** 2).sum())
x, y = a[:, :200].copy(), a[:200, :180].copy()
assert x.nbytes + y.nbytes + 4 * 3000 * 180 > 4 << 20
assert (gk.matmul(x, y, variant="naive") == x @ y).all()
with gk.profile() as profile:
    gk.add(a, a + 1)
[call] = profile.calls
assert call.kernel > 0 and call.bytes_in == 2 * a.nbytes and call.bytes_out == a.nbytes
for call in (lambda: gk.to_device(a), lambda: gk.sum(np.ones((2, 2_000_000), np.float32), 1)):
    try:
        call()
    except MemoryError as error:
        assert "4194304" in str(error), error
    else:
        raise AssertionError("it fits?")
assert _core.live_bytes() == 0
"""


@pytest.mark.skipif(on_gpu(), reason="the next test but one fills the GPU's memory")
def test_a_device_without_room_for_the_lanes(script):
    """Chunk after chunk, and reductions along an axis by panels as small as it takes."""
    run = script(TINY_DEVICE, GPUKERN_SIM_MEMORY=str(4 << 20))
    assert run.returncode == 0, run.stderr


@pytest.mark.skipif(
    int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1,
    reason="takes all memory of the device, which tests beside it need: runs in a process alone",
)
@pytest.mark.skipif(not on_gpu(), reason="the simulator's memory is the machine's")
def test_a_device_that_is_full():
    a = random((3000, 3000), DTYPES["float32"], 1)
    whole = gk.matmul(a, a), gk.add(a, a), gk.sum(a)
    filling = []
    size = 1 << 34
    while size >= 1 << 24:
        try:
            filling.append(gk.empty((size,), "uint8"))
        except MemoryError:
            size //= 2
    oracle.assert_matmul(gk.matmul(a, a), a, a, "cublas", "a full device")
    same_bits(gk.add(a, a), whole[1], "add on a full device")
    same_bits(gk.sum(a), whole[2], "sum on a full device")
    with pytest.raises(MemoryError):
        gk.to_device(a.repeat(4))
    filling.clear()
    same_bits(gk.matmul(a, a), whole[0], "afterwards")
    free_before = _core.devices()[0]["memory_free"]
    gk.release_memory()
    assert _core.devices()[0]["memory_free"] > free_before + (1 << 34), "others need it as well"


@pytest.mark.parametrize("variant", ["f32", "f32x4", "strided", None])
def test_chunks_give_back_what_they_took(variant):
    """A variant of contiguous arrays takes a number as an array, which each chunk makes."""
    a = random((1 << 23,), DTYPES["float32"], 1)
    before = _core.live_bytes()
    same_bits(gk.add(a, 1.0, variant=variant), a + np.float32(1), f"{variant}")
    assert _core.live_bytes() == before


def test_device_memory_stays_within_its_limit():
    """What is live during a product is looked at from another thread."""
    m = 60_000 if not on_gpu() else 2_000_000
    a, b = random((m, 16), DTYPES["float32"], 1), random((16, 64), DTYPES["float32"], 2)
    limit = 3 << 20
    product(a, b)
    before, peak, done = _core.live_bytes(), [0], threading.Event()

    def watch():
        while not done.is_set():
            peak[0] = max(peak[0], _core.live_bytes() - before)

    watcher = threading.Thread(target=watch)
    with gk.limits(device_memory=limit):
        watcher.start()
        for _ in range(20):  # until the other thread has had its turn
            got = product(a, b)
            if peak[0]:
                break
        done.set()
        join_all(watcher)
    workspace = 32 << 20 if on_gpu() else 0  # of cuBLAS, whose kernels are not the arrays'
    assert 0 < peak[0] <= limit + workspace, peak
    oracle.assert_matmul(got[:5000], a[:5000], b, "cublas", "within the limit")
    assert _core.live_bytes() == before


# What travels once: an array that is several operands, a row for all rows, a column for all.

LONG = np.arange(1_400_000, dtype=np.float32) % 1000
BIG = LONG.reshape(1000, 1400)
CUBE = LONG.reshape(100, 10, 1400)


def brought(call: Any, want: Array) -> int:
    """Bytes that the call brings to the device; its result is as wanted."""
    with gk.profile() as profile:
        got = call()
    assert np.array_equal(got, want)
    return sum(call.bytes_in for call in profile.calls)


@pytest.mark.parametrize("view", [np.s_[:], np.s_[::-1], np.s_[::3]])
def test_an_array_that_is_two_operands_travels_once(view):
    a = LONG[view]
    assert brought(lambda: gk.add(a, a), a + a) == a.nbytes
    assert brought(lambda: gk.add(a, a[::-1]), a + a[::-1]) == 2 * a.nbytes
    assert brought(lambda: gk.scale_add(a, a, 2.0), a * a + 2) == a.nbytes
    assert gk.dot(a, a) == gk.dot(a, a.copy())
    swapped = a.astype(">f4")
    assert brought(lambda: gk.add(swapped, swapped), a + a) == a.nbytes


@pytest.mark.parametrize("view", [np.s_[:], np.s_[::2, ::2], np.s_[::-1], np.s_[:, 1:-1][::-1]])
def test_a_matrix_that_is_both_operands_travels_once(view):
    a = (LONG[:90_000].reshape(300, 300) % 7)[view]
    a = a[:, : len(a)][: a.shape[1]]
    with gk.limits(mapped_call=0):
        for left, right in ((a, a), (a.T, a.T)):
            want = left.astype(np.float64) @ right
            assert brought(lambda: gk.matmul(left, right), want) == a.nbytes  # noqa: B023
        assert brought(lambda: gk.matmul(a, a.T), a.astype(np.float64) @ a.T) == 2 * a.nbytes


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (BIG[3], BIG[:, 7:8]),
        (BIG[3, ::-1], BIG[::-1, 5:6]),
        (BIG[9:10].astype(">f4"), BIG[:, :1].copy()),
    ],
)
def test_a_row_or_a_column_for_all_travels_once(row, column):
    for one in (row, column):
        assert brought(lambda: gk.add(BIG, one), BIG + one) == BIG.nbytes + one.nbytes  # noqa: B023
        assert brought(lambda: gk.less(BIG, one), one > BIG) == BIG.nbytes + one.nbytes  # noqa: B023
    both = row.nbytes + column.nbytes
    assert brought(lambda: gk.add(row, column), row + column) == both
    assert brought(lambda: gk.scale_add(row, BIG, column), row * BIG + column) == both + BIG.nbytes


@pytest.mark.parametrize(
    "view",
    [
        np.s_[0],
        np.s_[5:6],
        np.s_[0, 0],
        np.s_[:, :, :1],
        np.s_[:, :1, :1],
        np.s_[:1, :, :1],
        np.s_[:, :1],
    ],
)
def test_what_is_repeated_along_any_axes(view):
    """Those of the last two go with the chunks: they change in the midst of a row."""
    one = CUBE[view]
    assert np.array_equal(gk.add(CUBE, one), CUBE + one)
    assert np.array_equal(gk.subtract(one, CUBE), one - CUBE)
    assert np.array_equal(gk.scale_add(CUBE[0, 0], CUBE, one), CUBE[0, 0] * CUBE + one)


@pytest.mark.parametrize("shape", [(3, 700_001), (700_001, 3)])
def test_rows_that_are_longer_than_a_chunk_and_rows_of_three(shape):
    a = np.resize(LONG, shape)
    for one in (a[1], a[:, 2:3]):
        assert np.array_equal(gk.add(a, one), a + one)
        with gk.limits(pinned_memory=0):
            gk.release_memory()
            assert np.array_equal(gk.add(one, a), a + one)
