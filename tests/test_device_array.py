"""DeviceArray: what it tells of itself, its operators, and its way into NumPy and back."""

from __future__ import annotations

import operator
import pickle
import weakref

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import (
    DTYPES,
    is_float,
    on_device,
    on_gpu,
    places,
    random,
    same_bits,
    settled,
    swapped,
)
from gpukern import _core

SHAPES = ((), (1,), (7,), (3, 4), (2, 3, 4), (0,), (3, 0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_what_it_tells_of_itself(dtype, shape):
    a = random(shape, DTYPES[dtype])
    for device in (gk.to_device(a), gk.empty(shape, DTYPES[dtype])):
        for name in ("shape", "ndim", "size", "nbytes", "itemsize", "dtype"):
            assert getattr(device, name) == getattr(a, name), name
        assert device.dtype.isnative
        assert isinstance(device.to_host(), np.ndarray)


def test_strides():
    """Those that NumPy has, of an array and of views of it."""
    for dtype in ("uint8", "float32", "float64"):
        a = random((6, 5, 4), DTYPES[dtype])
        there = gk.to_device(a)
        for key in (np.s_[:], np.s_[::2], np.s_[1:, ::-1], np.s_[..., 2], np.s_[3, :, 1::2]):
            for got, want in ((there[key], a[key]), (there[key].T, a[key].T)):
                assert got.strides == want.strides, (dtype, key)
    assert gk.empty(()).strides == () and gk.empty((3, 4), "int64").strides == (32, 8)
    with pytest.raises(AttributeError, match="strides"):
        there.strides = (4, 4, 4)


def test_length():
    assert len(gk.empty((3, 4))) == 3
    assert len(gk.empty((0, 4))) == 0
    with pytest.raises(TypeError, match=r"unsized|0-d"):
        len(gk.empty(()))


@pytest.mark.parametrize(
    ("shape", "want"), [(5, (5,)), ((5,), (5,)), ([2, 3], (2, 3)), (0, (0,)), ((), ())]
)
def test_empty_takes_shapes_as_numpy_does(shape, want):
    assert gk.empty(shape).shape == want
    assert gk.empty(shape).dtype == np.float32
    assert gk.empty(np.int64(5)).shape == (5,)


@pytest.mark.parametrize("dtype", ["float64", np.float64, np.dtype("float64"), "<f8", float])
def test_empty_takes_dtypes_as_numpy_does(dtype):
    assert gk.empty((2,), dtype).dtype == np.float64


def test_repr_shows_the_values():
    text = repr(gk.to_device(np.array([[1.5, -2.0], [3.0, 4.25]], np.float32)))
    for part in ("1.5", "-2.", "4.25", "float32"):
        assert part in text, text
    assert "7" in repr(gk.to_device(np.array(7, np.int32)))
    for shape in ((0,), (3, 0), ()):
        assert "DeviceArray" in repr(gk.to_device(np.zeros(shape, np.int8)))


def test_repr_of_a_large_array_is_short():
    text = repr(gk.to_device(np.arange(1_000_000, dtype=np.int64)))
    assert len(text) < 500
    assert "..." in text
    assert "999999" in text


@pytest.mark.parametrize("dtype", DTYPES)
def test_as_a_numpy_array(dtype):
    a = random((3, 4), DTYPES[dtype])
    device = gk.to_device(a)
    oracle.assert_same(np.asarray(device), a, "asarray")
    oracle.assert_same(np.array(device), a, "array")
    oracle.assert_same(device.__array__(), a, "__array__")
    oracle.assert_same(np.array(device, copy=True), a, "copy")
    wide = np.asarray(device, dtype=np.float64)
    assert wide.dtype == np.float64
    np.testing.assert_array_equal(wide, a.astype(np.float64))


def test_a_numpy_array_without_a_copy_is_refused():
    device = gk.to_device(np.ones(3, np.float32))
    with pytest.raises(ValueError, match="copy"):
        np.array(device, copy=False)
    with pytest.raises(ValueError, match="copy"):
        device.__array__(copy=False)


def test_the_numpy_array_is_the_callers_own():
    a = random(5, DTYPES["float32"])
    device = gk.to_device(a)
    np.asarray(device)[...] = 0
    oracle.assert_same(device.to_host(), a, "unchanged")
    assert device.to_host().flags.writeable


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_interface(dtype, shape):
    device = gk.empty(shape, DTYPES[dtype])
    interface = device.__cuda_array_interface__
    assert interface["version"] == 3
    assert interface["shape"] == shape
    assert isinstance(interface["typestr"], str)
    if dtype != "bfloat16":
        assert np.dtype(interface["typestr"]) == DTYPES[dtype]
    pointer, readonly = interface["data"]
    assert readonly is False
    assert (pointer != 0) == (device.size > 0)
    assert pointer % 256 == 0
    assert interface.get("strides") in (None, np.empty(shape, DTYPES[dtype]).strides)
    assert "stream" in interface
    assert interface["stream"] is None or interface["stream"] > 0
    assert interface.get("mask") is None


def test_the_interface_of_nothing_has_no_pointer():
    assert gk.empty((0,)).__cuda_array_interface__["data"][0] == 0


ORDERS = [("device", "device"), ("device", "host"), ("host", "device")]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("left", "right"), ORDERS)
def test_plus(dtype, left, right):
    a, b = random((3, 4), DTYPES[dtype], 1), random((4,), DTYPES[dtype], 2)
    x = gk.to_device(a) if left == "device" else a
    y = gk.to_device(b) if right == "device" else b
    got = x + y
    assert isinstance(got, gk.DeviceArray)
    oracle.assert_same(got.to_host(), oracle.add(a, b), f"{left} + {right}")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(("left", "right"), ORDERS)
def test_at(dtype, left, right):
    a, b = random((3, 4), DTYPES[dtype], 1), random((4, 5), DTYPES[dtype], 2)
    x = gk.to_device(a) if left == "device" else a
    y = gk.to_device(b) if right == "device" else b
    got = x @ y
    assert isinstance(got, gk.DeviceArray)
    oracle.assert_matmul(got.to_host(), a, b, "cublas", f"{left} @ {right}")


def test_plus_a_scalar():
    a = random((3, 4), DTYPES["float32"])
    device = gk.to_device(a)
    for got in (
        device + 2,
        2 + device,
        device + 2.0,
        np.float32(2) + device,
        device + np.float32(2),
    ):
        assert isinstance(got, gk.DeviceArray)
        oracle.assert_same(got.to_host(), oracle.add(a, np.float32(2)), "scalar")


@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic(dtype):
    a, b = random((3, 4), DTYPES[dtype], 1), random((4,), DTYPES[dtype], 2)
    x, y = gk.to_device(a), gk.to_device(b)
    with np.errstate(all="ignore"):
        pairs = [(x * y, a * b), (abs(x), abs(a)), (x * True, a * True), (True * x, True * a)]
        if dtype != "bool":
            pairs += [(x - y, a - b), (-x, -a), (2 - x, 2 - a), (x * 3, a * 3), (3 * x, 3 * a)]
            pairs += [(a - y, a - b), (x - b, a - b)]
        if is_float(a.dtype):
            pairs += [(x / y, a / b), (1 / x, 1 / a), (x / 2, a / 2)]
    for got, want in pairs:
        assert isinstance(got, gk.DeviceArray)
        oracle.assert_same(got.to_host(), want.astype(a.dtype), dtype)


KEYS = [
    *(0, -1, np.int64(1), slice(1, None), slice(None, None, -1), slice(5, 2), slice(-100, 100)),
    *((slice(None), 1), (Ellipsis, 3), (Ellipsis, None, slice(0, 4, 2)), (None, 1, Ellipsis, -2)),
    *((1, 2, 3, 4), (slice(3, 0, -2), Ellipsis, slice(4, None, -3)), Ellipsis, (), None),
    *((1, slice(1, 5), slice(None, None, 2)), (slice(None, None, 10**18), Ellipsis)),
    *((Ellipsis, slice(3, 0, -2)), (Ellipsis, slice(-2, None, -1))),
]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "int64"])
def test_views_are_numpys(dtype, balanced):
    a = random((2, 3, 4, 5), DTYPES[dtype])
    device = gk.to_device(a)
    for key in KEYS:
        view, want = device[key], np.asarray(a[key])
        assert (view.shape, view.ndim, view.size) == (want.shape, want.ndim, want.size), key
        oracle.assert_same(view.to_host(), want.copy(), f"{key}")
        oracle.assert_same(np.asarray(view.T), want.T.copy(), f"{key} .T")
        oracle.assert_same((view + view.T.T).to_host(), oracle.add(want, want), f"{key} +")
        oracle.assert_same(view.reshape(-1).to_host(), want.reshape(-1), f"{key} reshape")
        oracle.assert_same(gk.to_device(view).to_host(), want.copy(), f"{key} to_device")
        assert repr(view).endswith(f"shape={want.shape}, dtype={dtype})"), key
    del view


def test_views_share_memory():
    a = random((6, 7), DTYPES["float32"])
    device = gk.to_device(a)
    address = device.__cuda_array_interface__["data"][0]
    part = device[1::2, ::-3]
    interface = part.__cuda_array_interface__
    assert interface["data"][0] == address + a[1::2, ::-3].ctypes.data - a.ctypes.data
    assert interface["strides"] == a[1::2, ::-3].strides
    gk.add(part, 1, out=part)
    a[1::2, ::-3] += 1
    oracle.assert_same(device.to_host(), a, "through a view")
    gk.multiply(device.T, 2, out=device.reshape(42).reshape((6, 7)).T)
    oracle.assert_same(device.to_host(), a * 2, "through .T and reshape")
    assert repr(gk.to_device(np.arange(5000.0))[::-2]).startswith(
        "DeviceArray([4999., 4997., 4995."
    )
    assert device.T.__cuda_array_interface__["strides"] == a.T.strides
    assert device[:, 1:4].__cuda_array_interface__["strides"] == a[:, 1:4].strides
    assert device[2].__cuda_array_interface__["strides"] is None


def test_an_axis_of_one_element_may_have_any_stride():
    device = gk.to_device(random((4, 3), DTYPES["float32"]))
    row = device[::2][:1]
    row.reshape(3).fill(5)
    assert device[0].tolist() == [5, 5, 5]
    assert row.__cuda_array_interface__["strides"] is None


def test_a_view_keeps_its_memory():
    before = settled()
    device = gk.to_device(np.ones((100, 100), np.float32))
    view = device[3:5].T[0][None]
    del device
    assert _core.live_bytes() >= before + 40000
    assert view.to_host().tolist() == [[1, 1]]
    del view
    assert settled() == before


@pytest.mark.parametrize(
    "key", [7, -3, 10**30, (0, 3), (0,) * 5, (Ellipsis, Ellipsis), (slice(None), 0, 0, 0, 0)]
)
def test_index_errors_are_worded_as_numpy_words_them(key):
    a = random((2, 3, 4, 5), DTYPES["float32"])
    with pytest.raises(IndexError) as ours:
        gk.to_device(a)[key]
    if key == 10**30:
        return
    with pytest.raises(IndexError) as numpys:
        a[key]
    assert str(ours.value) == str(numpys.value)


@pytest.mark.parametrize("key", ["x", 1.5, True, [0], np.zeros(3, int), (0, None, 2.0)])
def test_what_is_no_index_of_a_view(key):
    with pytest.raises(IndexError, match="only integers, slices"):
        gk.empty((2, 3))[key]
    with pytest.raises((ValueError, TypeError)):
        gk.empty((2, 3))[:: 0 if key == "x" else "1"]


@pytest.mark.parametrize(("shape", "new"), [((6,), (2, 3)), ((2, 3), (-1,)), ((0, 5), (5, -1, 2))])
def test_reshape(shape, new):
    a = random(shape, DTYPES["float32"])
    for device, host in ((gk.to_device(a), a), (gk.to_device(a).T, a.T)):
        oracle.assert_same(device.reshape(new).to_host(), host.reshape(new), f"{new}")
        oracle.assert_same(device.reshape(*new).to_host(), host.reshape(new), f"{new}")
        for several in (list(new), np.array(new)):
            oracle.assert_same(device.reshape(several).to_host(), host.reshape(new), f"{new}")
    assert gk.to_device(a[:1]).reshape(gk.to_device(a[:1]).shape).shape == a[:1].shape


@pytest.mark.parametrize(
    ("shape", "new"),
    [((5,), (0, -1)), ((0,), (0, -1)), ((6,), (-1, -1)), ((6,), (-1, 4)), ((6,), (-2, -3))],
)
def test_lengths_that_do_not_fit(shape, new):
    with pytest.raises(ValueError, match=r"reshape: cannot reshape array of size \d into shape"):
        gk.empty(shape).reshape(new)


@pytest.mark.skipif(on_gpu(), reason="what a GPU's memory held before")
def test_fresh_memory_of_the_simulator_is_no_zero():
    assert np.isnan(gk.empty((3, 5)).to_host()).all()
    assert (gk.empty(5, "int16").to_host() == -1).all()


def test_plus_in_place():
    a = random((3, 4), DTYPES["float32"])
    device = gk.to_device(a)
    total = device
    total += device
    oracle.assert_same(total.to_host(), oracle.add(a, a), "+=")


def test_operators_leave_what_they_do_not_know_to_the_other_side():
    class Other:
        def __radd__(self, other):
            return "mine"

        def __rmatmul__(self, other):
            return "mine too"

    device = gk.empty((2, 2))
    assert device + Other() == "mine"
    assert device @ Other() == "mine too"
    for wrong in ("text", None, object(), [1, 2]):
        with pytest.raises(TypeError):
            device + wrong
        with pytest.raises(TypeError):
            wrong + device
        with pytest.raises(TypeError):
            device @ wrong


def test_operators_raise_what_the_operation_raises():
    device = gk.empty((2, 3))
    with pytest.raises(ValueError, match="broadcast"):
        device + gk.empty((4,))
    with pytest.raises(ValueError, match="core dimension"):
        device @ gk.empty((2, 3))
    with pytest.raises(TypeError, match="float32 and float64"):
        device + gk.empty((2, 3), "float64")


PLACES = ("host", "device")


@pytest.mark.parametrize("left", PLACES)
@pytest.mark.parametrize("right", PLACES)
@pytest.mark.parametrize("target", [None, *PLACES, "view"])
@pytest.mark.parametrize("op", ["add", "matmul", "sum", "transpose"])
def test_every_combination_of_places(op, left, right, target):
    a, b = random((9, 9), DTYPES["float32"], 1), random((9, 9), DTYPES["float32"], 2)
    operands = [a, b][: 1 if op in ("sum", "transpose") else 2]
    there = [
        gk.to_device(operand) if place == "device" else operand
        for operand, place in zip(operands, (left, right), strict=False)
    ]
    out = a_target(target, () if op == "sum" else (9, 9))
    got = getattr(gk, op)(*there, out=out)
    if out is not None:
        assert got is out
    elif any(isinstance(operand, gk.DeviceArray) for operand in there):
        assert isinstance(got, gk.DeviceArray)
    else:
        assert isinstance(got, np.ndarray | np.generic)
    values = gk.to_device(got).to_host() if target == "view" else np.asarray(got)
    check(op, values, a, b)


def a_target(kind, shape):
    if kind is None:
        return None
    if kind == "view":
        return on_device(dict(places(shape, DTYPES["float32"]))["one element off"]).view
    return gk.empty(shape) if kind == "device" else np.zeros(shape, np.float32)


def check(op, got, a, b):
    if op == "add":
        oracle.assert_same(got, oracle.add(a, b), op)
    elif op == "matmul":
        oracle.assert_matmul(got, a, b, "cublas", op)
    elif op == "transpose":
        oracle.assert_same(got, np.ascontiguousarray(a.T), op)
    else:
        oracle.assert_sum(got, a, "default", op)


def test_results_do_not_share_memory_with_operands():
    a = random((5, 5), DTYPES["float32"])
    device = gk.to_device(a)
    copied = device.T.reshape(25)
    for got in (gk.transpose(device), copied, gk.add(device, 0.0), gk.to_device(device)):
        gk.add(got, 1.0, out=got)
        oracle.assert_same(device.to_host(), a, "the operand")
    flat = gk.to_device(a[0])
    gk.add(gk.transpose(flat), 1.0, out=gk.transpose(flat))
    oracle.assert_same(flat.to_host(), a[0], "the 1-D operand")


def test_bytes_are_those_of_numpys_array():
    """And not of its elements, each as one byte."""
    for a in (random((3, 4), DTYPES["float32"]), np.arange(3, dtype="u1"), np.array(5, "i4")):
        d = gk.to_device(a)
        assert bytes(d) == bytes(a)
        assert bytes(d.T) == bytes(a.T)


def test_reversed_goes_along_the_first_axis_from_its_end(balanced):
    a = random((3, 4), DTYPES["float32"])
    got = [row.tolist() for row in reversed(gk.to_device(a))]
    assert got == a[::-1].tolist()


def test_reversed_of_no_axes():
    with pytest.raises(TypeError, match=r"^len: a 0-d DeviceArray"):
        reversed(gk.ones(()))


def test_memory_goes_with_the_last_reference():
    before = settled()
    device = gk.to_device(np.ones(1000, np.float32))
    assert _core.live_bytes() >= before + 4000
    seen = weakref.ref(device)
    view = on_device(dict(places((3,), DTYPES["float32"]))["aligned"])
    del device, view
    assert seen() is None
    assert settled() == before


def test_it_is_made_by_functions_alone():
    with pytest.raises(TypeError):
        gk.DeviceArray()
    with pytest.raises(TypeError):
        type("Mine", (gk.DeviceArray,), {})
    with pytest.raises(TypeError):
        pickle.dumps(gk.empty((2,)))


def test_its_attributes_cannot_be_set():
    device = gk.empty((2,))
    for name in ("shape", "dtype", "size", "anything"):
        with pytest.raises(AttributeError):
            setattr(device, name, (1,))


def test_streams_and_synchronize():
    device = gk.to_device(np.ones(1000, np.float32))
    for stream in (None, 0):
        got = gk.add(device, device, stream=stream)
        gk.synchronize(stream)
        assert (got.to_host() == 2).all()
    gk.synchronize()


def test_events():
    first, last = gk.Event(), gk.Event()
    device = gk.to_device(np.ones(100_000, np.float32))
    first.record()
    for _ in range(3):
        gk.add(device, device, out=device)
    last.record()
    last.synchronize()
    assert 0 <= last.seconds_since(first) < 60
    assert first.seconds_since(last) <= 0


def test_an_event_that_was_not_recorded_is_an_error():
    recorded = gk.Event()
    recorded.record()
    with pytest.raises((ValueError, gk.CudaError)):
        recorded.seconds_since(gk.Event())
    with pytest.raises(TypeError):
        recorded.seconds_since(3)


def test_more_axes_than_an_array_has():
    there = gk.to_device(np.ones((2, 3), np.float32))
    assert there[(None,) * 62].ndim == 64
    for index in ((None,) * 63, (None,) * 100):
        with pytest.raises(IndexError, match=r"number of dimensions must be within \[0, 64\]"):
            there[index]
    with pytest.raises(ValueError, match="reshape: shape has 65 dimensions, and the most are 64"):
        there.reshape((1,) * 63 + (2, 3))


def test_whether_a_value_is_in_an_array():
    class Everywhere:
        def __eq__(self, other):
            return True

        __hash__ = None

    class Undecided(Everywhere):
        def __eq__(self, other):
            raise RuntimeError("who knows")

        __hash__ = None

    there = gk.to_device(np.float32([1, 2, 3]))
    assert 2 in there
    assert 5 not in there
    assert 2 not in there[:0]
    assert Everywhere() in there
    with pytest.raises(TypeError, match="equal: a DeviceArray is compared with"):
        assert "2" not in there
    with pytest.raises(RuntimeError, match="who knows"):
        assert Undecided() in there


@pytest.mark.parametrize("dtype", ["float32", "int16", "float64"])
def test_an_array_of_the_other_byte_order_is_as_any_there(dtype):
    a = np.arange(15).reshape(3, 5).astype(dtype)
    there = gk.to_device(swapped(a))
    assert there.dtype == a.dtype
    assert there.dtype.isnative
    same_bits(gk.elementwise("T x, T y", "y = x")(there).to_host(), a, "to_device")
    sums = gk.reduction("T x", "x")(gk.asarray(swapped(a)), axis=1).to_host()
    np.testing.assert_array_equal(sums, a.sum(1), "asarray")


class TestOtherSides:
    """What an operator makes of sequences, and of classes that have ways of their own."""

    @pytest.mark.parametrize("other", [[1, 2], (1, 2), "ab", b"ab"])
    def test_a_sequence_is_neither_repeated_nor_joined(self, other):
        said = r"(multiply|add|less|greater): [ab] has to be a"
        for d in (gk.asarray(3), gk.asarray([1.0, 2.0])):
            for run in (operator.mul, operator.add, operator.lt):
                with pytest.raises(TypeError, match=said):
                    run(d, other)
            with pytest.raises(TypeError, match=said):
                operator.mul(other, d)

    def test_a_class_of_its_own_ways_has_the_last_word(self):
        class Labelled(np.ndarray):
            def __array_ufunc__(self, *named, **more):
                return "labelled"

        class Shy(np.ndarray):
            __array_ufunc__ = None

        class Plain(np.ndarray):
            pass

        values = np.ones(3)
        d, labelled = gk.asarray(values), values.view(Labelled)
        assert [d + labelled, labelled + d, d < labelled, np.add(d, labelled)] == ["labelled"] * 4
        with pytest.raises(TypeError, match="does not support ufuncs"):
            d + values.view(Shy)
        assert (d + values.view(Plain)).tolist() == [2.0, 2.0, 2.0]

    def test_an_element_is_its_number_in_texts(self):
        d = gk.asarray([1.5, 2.0])
        assert (str(d[0]), f"{d[1]}", str(gk.asarray(7))) == ("1.5", "2.0", "7")
        assert str(d) == repr(d)
        assert repr(d[0]) == "DeviceArray(1.5, shape=(), dtype=float64)"


@pytest.mark.parametrize("axis", [True, False, (True,)])
def test_a_bool_is_no_axis_and_no_length(axis):
    a = np.ones((2, 3))
    for run in (lambda: gk.sum(a, axis), lambda: gk.argmax(a, axis=axis)):
        with pytest.raises(TypeError, match="axis has to be"):
            run()
    with pytest.raises(TypeError, match="transpose: axes has to be"):
        gk.transpose(a, (True, False))
    with pytest.raises(TypeError, match="reshape: shape has to be"):
        gk.asarray(a).reshape(True, 6)
