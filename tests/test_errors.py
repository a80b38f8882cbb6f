"""Errors: the right exception, a sentence that helps, nothing changed, and the next call works."""

from __future__ import annotations

import inspect
import re

import ml_dtypes
import numpy as np
import pytest

import gpukern as gk
from arrays import (
    DTYPES,
    DeviceView,
    places,
    random,
    settled,
    variants,
)
from gpukern import _core


class Bench:
    """Arrays of every kind, and whether any of them has changed."""

    def __init__(self):
        self.f32 = random((2, 3), DTYPES["float32"], 1)
        self.wide = random((3, 4), DTYPES["float32"], 2)
        self.f64 = random((2, 3), DTYPES["float64"], 3)
        self.i32 = random((2, 3), DTYPES["int32"], 4)
        self.four = random((4,), DTYPES["float32"], 5)
        self.cube = random((2, 2, 2), DTYPES["float32"], 6)
        self.scalar = np.array(1.5, np.float32)
        self.out = random((2, 3), DTYPES["float32"], 7)
        self.small = random((2, 2), DTYPES["float32"], 8)
        self.fixed = random((2, 3), DTYPES["float32"], 9)
        self.fixed.setflags(write=False)
        self.total = random((), DTYPES["float32"], 10)
        self.host = dict(vars(self))
        self.device = {name: gk.to_device(array) for name, array in self.host.items()}
        for name, array in self.device.items():
            setattr(self, f"d_{name}", array)
        self.before = self.bytes()

    def bytes(self):
        return {
            name: (array.tobytes(), self.device[name].to_host().tobytes())
            for name, array in self.host.items()
        }

    def assert_unchanged_and_working(self):
        assert self.bytes() == self.before
        assert gk.add(self.f32, self.f32).tobytes() == (self.f32 + self.f32).tobytes()
        got = gk.add(self.d_f32, self.d_f32).to_host()
        assert got.tobytes() == (self.f32 + self.f32).tobytes()


def assert_fails(call, exception, *words):
    bench = Bench()
    live = settled()
    with pytest.raises(exception) as raised:
        call(bench)
    assert type(raised.value) is exception or exception is MemoryError
    sentence = str(raised.value)
    for word in words:
        found = word in sentence or word in sentence.replace(", ", ",")
        assert found, f"{word!r} is not in {sentence!r}"
    assert _core.live_bytes() == live
    bench.assert_unchanged_and_working()
    return sentence


TINY = np.ones(3, ml_dtypes.float8_e4m3fn)
MASKED = np.ma.array(np.ones(3, np.float32), mask=[0, 1, 0])
LONG = np.ones(3, np.longdouble)
COMPLEX = np.ones(3, np.complex64)
OBJECTS = np.array([1, "x", None], object)
DATES = np.array(["2001-01-01"], "datetime64[D]")
RECORDS = np.zeros(3, [("a", "f4"), ("b", "i4")])

DTYPE_ERRORS = {
    "add mixed": (
        lambda x: gk.add(x.f32, x.f64),
        ("add: ", "float32", "float64", "astype"),
    ),
    "add mixed on the device": (
        lambda x: gk.add(x.d_f32, x.d_i32),
        ("add: ", "float32", "int32", "astype"),
    ),
    "add mixed places": (lambda x: gk.add(x.f32, x.d_f64), ("add: ", "float32", "float64")),
    "add mixed scalars of NumPy": (
        lambda x: gk.add(x.f32, np.int64(1)),
        ("add: ", "float32", "int64"),
    ),
    "matmul mixed": (lambda x: gk.matmul(x.f32, x.f64.T), ("matmul: ", "float32", "float64")),
    "add complex": (lambda x: gk.add(COMPLEX, COMPLEX), ("add: ", "complex64", "float32")),
    "add float8": (lambda x: gk.add(TINY, TINY), ("add: ", "float8_e4m3fn", "bfloat16")),
    "add timedeltas": (lambda x: gk.add(DATES - DATES, DATES - DATES), ("add: ", "timedelta64")),
    "add long doubles": (
        lambda x: gk.add(LONG, LONG),
        ("add: ", LONG.dtype.name, "uint64 and bool"),
    ),
    "add bool and uint8": (
        lambda x: gk.add(x.f32 > 0, (x.f32 > 0).view("u1")),
        ("add: ", "bool", "uint8", "astype"),
    ),
    "a number and bools": (lambda x: gk.add(x.f32 > 0, 1), ("add: ", "b is", "int", "bool")),
    "a number and device bools": (
        lambda x: gk.less(2, gk.less(x.d_f32, 0)),
        ("less: ", "a is", "int", "bool"),
    ),
    "subtract bool": (
        lambda x: gk.subtract(x.f32 > 0, x.f32 > 0),
        ("subtract: no kernel for bool", "uint64", "astype"),
    ),
    "negative bool": (
        lambda x: gk.negative(x.f32 > 0),
        ("negative: no kernel for bool", "uint64", "astype"),
    ),
    "add objects": (lambda x: gk.add(OBJECTS, OBJECTS), ("add: ", "object")),
    "add objects and floats": (lambda x: gk.add(x.f32[0], OBJECTS), ("add: ", "object")),
    "add texts": (lambda x: gk.add(np.array(["a"]), np.array(["b"])), ("add: ", "U1")),
    "add dates": (lambda x: gk.add(DATES, DATES), ("add: ", "datetime64")),
    "add records": (lambda x: gk.add(RECORDS, RECORDS), ("add: ",)),
    "sum complex": (lambda x: gk.sum(COMPLEX), ("sum: ", "complex64")),
    "sum objects": (lambda x: gk.sum(OBJECTS), ("sum: ", "object")),
    "sum in int32": (lambda x: gk.sum(x.f32, dtype="int32"), ("sum: ", "int32", "float64")),
    "sum in less": (lambda x: gk.sum(x.f64, dtype="float32"), ("sum: ", "float32", "float64")),
    "mean in int64": (lambda x: gk.mean(x.i32, dtype="int64"), ("mean: ", "int64", "float64")),
    "prod in float64": (lambda x: gk.prod(x.i32, dtype="float64"), ("prod: ", "float64", "int32")),
    "dot of two dtypes": (lambda x: gk.dot(x.f32[0], x.f64[0]), ("dot: ", "float32", "float64")),
    "matmul int32": (lambda x: gk.matmul(x.i32, x.i32.T), ("matmul: ", "int32", "float32")),
    "matmul objects": (lambda x: gk.matmul(OBJECTS, OBJECTS), ("matmul: ", "object")),
    "transpose complex": (lambda x: gk.transpose(COMPLEX), ("transpose: ", "complex64")),
    "to_device objects": (lambda x: gk.to_device(OBJECTS), ("to_device: ", "object")),
    "to_device complex": (lambda x: gk.to_device(COMPLEX), ("to_device: ", "complex64")),
    "empty complex": (lambda x: gk.empty((2,), "complex64"), ("empty: ", "complex64")),
    "empty objects": (lambda x: gk.empty((2,), object), ("empty: ", "dtype('O')")),
    "a float and integers": (lambda x: gk.add(x.i32, 1.5), ("add: ", "int32", "float")),
    "a float and device integers": (lambda x: gk.add(1.5, x.d_i32), ("add: ", "int32", "float")),
    "a third operand of another dtype": (
        lambda x: gk.scale_add(x.f32, x.f32, x.f64),
        ("scale_add: ", "float32", "float64", "astype"),
    ),
    "divide integers": (
        lambda x: gk.divide(x.i32, x.i32),
        ("divide: ", "int32", "float32, float64, float16, bfloat16", "astype"),
    ),
    "sqrt of integers": (lambda x: gk.sqrt(x.d_i32), ("sqrt: ", "int32", "float32", "astype")),
    "transpose by floats": (
        lambda x: gk.transpose(x.f32, (0.0, 1.0)),
        ("transpose: axes has to be None or a tuple of integers", "(0.0, 1.0)"),
    ),
    "transpose by a number": (lambda x: gk.transpose(x.f32, 1), ("transpose: ", "int")),
    "reshape by floats": (lambda x: x.d_f32.reshape(2.0, 3), ("reshape: shape ", "2.0")),
    "a complex and floats": (lambda x: gk.add(x.f32, 1j), ("add: ", "complex")),
}


@pytest.mark.parametrize("case", DTYPE_ERRORS)
def test_dtypes(case):
    call, words = DTYPE_ERRORS[case]
    assert_fails(call, TypeError, *words)


OBJECT_ERRORS = {
    "a masked array": (lambda x: gk.sum(MASKED), ("sum: ", "mask")),
    "a masked array beside another": (lambda x: gk.add(x.f32, MASKED), ("add: ", "mask")),
    "out a masked array": (lambda x: gk.add(x.f32[0], x.f32[0], out=MASKED), ("add: ", "mask")),
    "to_device of a masked array": (lambda x: gk.to_device(MASKED), ("to_device: ", "mask")),
    "a list": (lambda x: gk.add(x.f32, [1, 2, 3]), ("add: ", "list")),
    "lists": (lambda x: gk.add([1.0], [2.0]), ("add: ", "list")),
    "text": (lambda x: gk.add("text", x.f32), ("add: ", "str")),
    "None": (lambda x: gk.add(x.f32, None), ("add: ", "NoneType")),
    "any object": (lambda x: gk.add(object(), x.d_f32), ("add: ", "object")),
    "bytes": (lambda x: gk.sum(b"1234"), ("sum: ", "bytes")),
    "scalars alone": (lambda x: gk.add(1.0, 2.0), ("add: ", "float")),
    "a scalar in sum": (lambda x: gk.sum(3.0), ("sum: ", "float")),
    "a list in sum": (lambda x: gk.sum([1.0]), ("sum: ", "list")),
    "a list in matmul": (lambda x: gk.matmul(x.f32, [[1.0]]), ("matmul: ", "list")),
    "a list in transpose": (lambda x: gk.transpose([[1.0]]), ("transpose: ", "list")),
    "a list in to_device": (lambda x: gk.to_device([1.0]), ("to_device: ", "list")),
    "a class": (lambda x: gk.add(np.ndarray, x.f32), ("add: ", "type")),
    "out a list": (lambda x: gk.add(x.f32, x.f32, out=[1.0]), ("add: ", "out", "list")),
    "out a scalar": (lambda x: gk.sum(x.f32, out=np.float32(0)), ("sum: ", "out")),
    "out a tuple": (lambda x: gk.add(x.f32, x.f32, out=(x.out,)), ("add: ", "out", "tuple")),
    "variant no text": (lambda x: gk.add(x.f32, x.f32, variant=3), ("add: ", "variant", "not 3")),
    "stream no integer": (lambda x: gk.add(x.f32, x.f32, stream="0"), ("add: ", "stream", "str")),
    "too few arguments": (lambda x: gk.add(x.f32), ("add: needs its argument 'b'",)),
    "no arguments": (lambda x: gk.scale_add(), ("scale_add: needs its argument 'a'",)),
    "too many arguments": (lambda x: gk.add(x.f32, x.f32, None, "f32"), ("add",)),
    "no such argument": (lambda x: gk.add(x.f32, x.f32, where=True), ("add", "where")),
    "operands by name": (lambda x: gk.add(a=x.f32, b=x.f32), ("add",)),
    "an argument twice": (lambda x: gk.add(x.f32, x.f32, x.out, out=x.out), ("add", "out")),
    "to_host a list": (lambda x: x.d_f32.to_host(out=[1.0]), ("to_host: ", "list")),
    "to_host to the device": (lambda x: x.d_f32.to_host(out=x.d_out), ("to_host: ",)),
    "no dtype": (lambda x: gk.empty((2,), "float31"), ("empty: dtype 'float31'", "float32")),
    "no shape": (lambda x: gk.empty("12"), ("empty",)),
    "a shape of floats": (lambda x: gk.empty((2.0,)), ("empty: shape", "(2.0,)")),
}


@pytest.mark.parametrize("case", OBJECT_ERRORS)
def test_objects(case):
    call, words = OBJECT_ERRORS[case]
    assert_fails(call, TypeError, *words)


GUFUNC = "gufunc signature (n?,k),(k,m?)->(n?,m?)"

SHAPE_ERRORS = {
    "add": (
        lambda x: gk.add(x.f32, x.four),
        ("add: ", "operands could not be broadcast together with shapes (2,3) (4,)"),
    ),
    "add on the device": (
        lambda x: gk.add(x.d_f32, x.d_wide),
        ("add: ", "operands could not be broadcast together with shapes (2,3) (3,4)"),
    ),
    "add into another shape": (
        lambda x: gk.add(x.f32, x.f32, out=x.small),
        ("add: ", "out", "(2,2)", "(2,3)"),
    ),
    "add into a smaller shape": (
        lambda x: gk.add(x.f32, 1.0, out=x.d_total),
        ("add: ", "out", "()", "(2,3)"),
    ),
    "add into a larger shape": (
        lambda x: gk.add(x.f32[0], x.f32[0], out=x.out),
        ("add: ", "out", "(2,3)", "(3,)"),
    ),
    "matmul": (
        lambda x: gk.matmul(x.f32, x.f32),
        ("matmul: Input operand 1 has a mismatch", GUFUNC, "(size 2 is different from 3)"),
    ),
    "matmul on the device": (
        lambda x: gk.matmul(x.d_f32, x.d_four),
        ("matmul: Input operand 1 has a mismatch", GUFUNC, "(size 4 is different from 3)"),
    ),
    "matmul of 0-d": (
        lambda x: gk.matmul(x.f32, x.scalar),
        ("matmul: Input operand 1 does not have enough dimensions (has 0", "requires 1"),
    ),
    "matmul of a scalar": (
        lambda x: gk.matmul(x.f32, 2.0),
        ("matmul: Input operand 1 does not have enough dimensions (has 0", "requires 1"),
    ),
    "matmul of stacks": (lambda x: gk.matmul(x.cube, x.cube), ("matmul: ", "(2,2,2)")),
    "matmul into another shape": (
        lambda x: gk.matmul(x.f32, x.wide, out=x.small),
        ("matmul: ", "out", "(2,2)", "(2,4)"),
    ),
    "transpose by too few axes": (
        lambda x: gk.transpose(x.cube, (1, 0)),
        ("transpose: ", "(1, 0)", "3"),
    ),
    "transpose by an axis twice": (
        lambda x: gk.transpose(x.d_cube, (1, 0, -2)),
        ("transpose: ", "(1, 0, -2)", "3"),
    ),
    "transpose by no axis": (lambda x: gk.transpose(x.f32, (0, 2)), ("transpose: ", "(0, 2)")),
    "scale_add": (
        lambda x: gk.scale_add(2.0, x.f32, x.d_four),
        ("scale_add: ", "operands could not be broadcast together with shapes () (2,3) (4,)"),
    ),
    "reshape": (
        lambda x: x.d_f32.reshape(4, 2),
        ("cannot reshape array of size 6 into shape (4, 2)",),
    ),
    "reshape by an unknown length": (
        lambda x: x.d_f32.reshape(4, -1),
        ("cannot reshape array of size 6 into shape (4, -1)",),
    ),
    "reshape by two unknown lengths": (lambda x: x.d_f32.reshape((-1, -1)), ("cannot reshape",)),
    "transpose into another shape": (
        lambda x: gk.transpose(x.f32, out=x.out),
        ("transpose: ", "out", "(2,3)", "(3,2)"),
    ),
    "sum into another shape": (
        lambda x: gk.sum(x.f32, out=x.four),
        ("sum: ", "out", "(4,)", "()"),
    ),
    "to_host into another shape": (
        lambda x: x.d_f32.to_host(out=x.small),
        ("to_host: ", "out", "(2,2)", "(2,3)"),
    ),
    "a negative shape": (lambda x: gk.empty((3, -1)), ("empty: ", "negative")),
    "a negative length": (lambda x: gk.empty(-1), ("empty: ", "negative")),
    "too many dimensions": (lambda x: gk.empty((1,) * 65), ("empty: ", "64")),
}


@pytest.mark.parametrize("case", SHAPE_ERRORS)
def test_shapes(case):
    call, words = SHAPE_ERRORS[case]
    assert_fails(call, ValueError, *words)


@pytest.mark.parametrize(("left", "right"), [((2, 3), (4,)), ((2, 1, 3), (5, 4)), ((2,), (3,))])
def test_shapes_that_do_not_broadcast_are_worded_as_numpy_words_them(left, right):
    a, b = random(left, DTYPES["float32"]), random(right, DTYPES["float32"])
    with pytest.raises(ValueError, match="broadcast") as numpys:
        np.add(a, b)
    with pytest.raises(ValueError, match="broadcast") as ours:
        gk.add(a, b)
    assert str(ours.value).strip() == f"add: {numpys.value}".strip()


@pytest.mark.parametrize(
    ("left", "right"), [((2, 3), (4, 5)), ((3,), (4,)), ((3,), (4, 5)), ((), (3,)), ((2, 3), ())]
)
def test_shapes_that_do_not_multiply_are_worded_as_numpy_words_them(left, right):
    a, b = random(left, DTYPES["float32"]), random(right, DTYPES["float32"])
    with pytest.raises(ValueError, match="matmul") as numpys:
        np.matmul(a, b)
    with pytest.raises(ValueError, match="matmul") as ours:
        gk.matmul(a, b)
    assert str(ours.value).startswith(f"{numpys.value}: ")


OUT_ERRORS = {
    "read-only": (
        lambda x: gk.add(x.f32, x.f32, out=x.fixed),
        ValueError,
        ("add: ", "out", "read-only"),
    ),
    "read-only for sum": (
        lambda x: gk.sum(x.f32, out=x.fixed[0, 0:1].reshape(())),
        ValueError,
        ("sum: ", "out", "read-only"),
    ),
    "read-only for to_host": (
        lambda x: x.d_f32.to_host(out=x.fixed),
        ValueError,
        ("to_host: ", "out", "read-only"),
    ),
    "read-only on the device": (
        lambda x: gk.add(x.f32, x.f32, out=seen(x.d_out, (2, 3), "float32", readonly=True)),
        ValueError,
        ("add: ", "out", "read-only"),
    ),
    "another dtype": (
        lambda x: gk.add(x.f64, x.f64, out=x.out),
        TypeError,
        ("add: ", "out", "float32", "float64"),
    ),
    "another dtype on the device": (
        lambda x: gk.add(x.d_f32, x.d_f32, out=x.d_f64),
        TypeError,
        ("add: ", "out", "float64", "float32"),
    ),
    "int32 for a sum of int32": (
        lambda x: gk.sum(x.i32, out=np.zeros((), np.int32)),
        TypeError,
        ("sum: ", "out", "int32", "int64"),
    ),
    "another dtype for to_host": (
        lambda x: x.d_f32.to_host(out=x.f64),
        TypeError,
        ("to_host: ", "out", "float64", "float32"),
    ),
    "objects": (
        lambda x: gk.add(x.f32[0], x.f32[0], out=OBJECTS),
        TypeError,
        ("add: ", "out", "object"),
    ),
    "elements that share memory": (
        lambda x: gk.add(x.f32, x.f32, out=repeating(x.out)),
        ValueError,
        ("add: ", "out"),
    ),
    "device elements that share memory": (
        lambda x: gk.add(x.f32, x.f32, out=seen(x.d_out, (2, 3), "float32", strides=(0, 4))),
        ValueError,
        ("add: ", "out"),
    ),
}


def seen(parent, shape, dtype, readonly=False, **changes):
    place = dict(places(shape, DTYPES[dtype]))["aligned"]
    place.offset = 0
    return DeviceView(parent, place, readonly, **changes)


def repeating(array):
    return np.lib.stride_tricks.as_strided(array, (2, 3), (0, 4), writeable=True)


@pytest.mark.parametrize("case", OUT_ERRORS)
def test_out(case):
    call, exception, words = OUT_ERRORS[case]
    assert_fails(call, exception, *words)


@pytest.mark.parametrize("op", ["add", "sum", "matmul", "transpose"])
@pytest.mark.parametrize("device", [False, True])
def test_an_unknown_variant_lists_those_that_there_are(op, device):
    names = [v.variant for v in gk.variants(op, dtype="float32")]
    count = 2 if op in ("add", "matmul") else 1

    def call(x):
        operand = x.d_small if device else x.small
        getattr(gk, op)(*[operand] * count, variant="warp-speed")

    assert_fails(call, ValueError, f"{op}: ", "'warp-speed'", *names)


STRANGE = ["", "F32", " f32", "f32\0x", "f32\0", "x" * 5000, "%n%s%s", "ä", "f32x"]


@pytest.mark.parametrize("name", STRANGE)
def test_strange_names(name):
    assert_fails(lambda x: gk.add(x.f32, x.f32, variant=name), ValueError, "add: ")


def test_a_name_that_is_no_text_of_unicode():
    with pytest.raises(ValueError, match=r"surrogate|unknown variant"):
        gk.add(np.ones(3, np.float32), 1.0, variant="\udcff")


def test_a_variant_of_another_dtype():
    assert_fails(
        lambda x: gk.add(x.f64, x.f64, variant="f32x4"),
        ValueError,
        *("add: ", "'f32x4'", "float64", "f64"),
    )
    assert_fails(
        lambda x: gk.sum(x.d_f64, variant="sequential"),
        ValueError,
        "sum: ",
        "'sequential'",
        "float64",
        "compensated",
    )


def test_a_variant_of_another_operation():
    assert_fails(
        lambda x: gk.add(x.f32, x.f32, variant="tiled"), ValueError, "add: ", "'tiled'", "f32x4"
    )


ABSENT = [
    (op, variant, dtype)
    for op in ("add", "sum", "matmul", "transpose")
    for variant, dtype in variants(op, runs=False)
]


@pytest.mark.parametrize(("op", "variant", "dtype"), ABSENT)
def test_a_variant_that_does_not_run_here_says_why(op, variant, dtype):
    why = next(
        row["why"]
        for row in _core.rows()
        if (row["op"], row["variant"], row["dtype"]) == (op, variant, dtype)
    )
    assert why
    a = random((3, 3), DTYPES[dtype])
    operands = [a] * (2 if op in ("add", "matmul") else 1)
    assert_fails(
        lambda x: getattr(gk, op)(*operands, variant=variant),
        ValueError,
        *(f"{op}: ", f"'{variant}'", why),
    )


def test_an_unknown_variant_is_an_error_on_empty_arrays_too():
    nothing = np.empty((0, 0), np.float32)
    for call in (
        lambda x: gk.add(nothing, nothing, variant="none"),
        lambda x: gk.sum(nothing, variant="none"),
        lambda x: gk.matmul(nothing, nothing, variant="none"),
        lambda x: gk.transpose(nothing, variant="none"),
    ):
        assert_fails(call, ValueError, "'none'")


@pytest.mark.parametrize("axis", [1.5, "x", [0, 1], (0, "x"), object()])
def test_an_axis_that_is_none(axis):
    assert_fails(lambda x: gk.sum(x.f32, axis=axis), TypeError, "sum: ", "axis")


@pytest.mark.parametrize("op", ["sum", "max", "norm"])
@pytest.mark.parametrize("axis", [(0, 0), (0, -2), (0, 1, 2), 5, -3, 1 << 70])
def test_axes_that_do_not_fit(op, axis):
    assert_fails(lambda x: getattr(gk, op)(x.f32, axis=axis), ValueError, f"{op}: ", "axis")


@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_an_index_is_along_one_axis(op):
    assert_fails(lambda x: getattr(gk, op)(x.f32, axis=(0, 1)), TypeError, f"{op}: ", "axis")


@pytest.mark.parametrize("options", [{"axis": 0}, {"dtype": "float64"}])
def test_a_variant_for_whole_arrays_only(options):
    assert_fails(
        lambda x: gk.sum(x.f32, variant="shuffle", **options), ValueError, "sum: ", "'shuffle'"
    )


@pytest.mark.parametrize("op", ["max", "min", "argmax", "argmin"])
def test_no_elements(op):
    words = (
        "empty sequence" if op.startswith("arg") else f"operation {op}imum which has no identity"
    )
    for device in (False, True):
        for shape, axis in (((0,), None), ((3, 0), 1), ((0, 3), 0)):
            x = gk.empty(shape) if device else np.empty(shape, np.float32)
            assert_fails(lambda _, x=x, axis=axis: getattr(gk, op)(x, axis=axis), ValueError, words)


def test_dot_takes_vectors():
    assert_fails(lambda x: gk.dot(x.f32, x.f32), ValueError, "dot: ", "matmul")
    assert_fails(lambda x: gk.dot(x.f32[0], 2.0), ValueError, "dot: ", "matmul")
    assert_fails(lambda x: gk.dot(x.f32[0], x.f32[0, :1]), ValueError, "dot: ", "not aligned")


def huge(count=1 << 47, dtype="float32"):
    """More elements than an address space has, in four bytes."""
    return np.broadcast_to(np.ones(1, dtype), (count,))


TOO_LARGE = {
    "empty": (lambda x: gk.empty((1 << 50,)), "empty: "),
    "empty in two dimensions": (lambda x: gk.empty((1 << 25, 1 << 25)), "empty: "),
    "add": (lambda x: gk.add(huge(), huge()), "add: "),
    "add to a scalar": (lambda x: gk.add(huge(), 1.0), "add: "),
    "add broadcast": (lambda x: gk.add(x.f32[:1, :1], huge()), "add: "),
    "sum": (lambda x: gk.sum(huge(1 << 56)), "sum: "),  # its partial sums alone are terabytes
    "matmul": (lambda x: gk.matmul(huge(1 << 47), huge(1 << 47)), "matmul: "),
    "matmul with a large result": (lambda x: gk.matmul(column(x), column(x).T), "matmul: "),
    "transpose": (lambda x: gk.transpose(huge().reshape(1 << 23, 1 << 24)), "transpose: "),
    "to_device": (lambda x: gk.to_device(huge()), "to_device: "),
}


def column(x):
    return np.broadcast_to(x.f32[:1, :1], (1 << 24, 1))


@pytest.mark.parametrize("case", TOO_LARGE)
def test_too_large(case):
    call, operation = TOO_LARGE[case]
    sentence = assert_fails(call, MemoryError, operation)
    assert re.search(r"\d\.? ?([KMGTPE]iB|bytes)", sentence), sentence


def test_a_result_that_nothing_could_hold():
    """Where the kernel overcommits, memory for it is to be had until it is filled."""
    one = np.broadcast_to(np.float32(1), (1 << 40,))
    for call in (lambda: gk.add(one, 1.0), lambda: gk.transpose(one.reshape(1 << 20, 1 << 20))):
        with pytest.raises(MemoryError, match="takes 4398046511104 bytes, and this machine"):
            call()
    with pytest.raises(MemoryError, match="takes 1099511627776 bytes, and this machine"):
        gk.less(one, 1.0)


@pytest.mark.parametrize("shape", [(1 << 62, 4), (1 << 32, 1 << 32), (1 << 61,), (1 << 63,)])
def test_sizes_beyond_what_a_number_holds(shape):
    with pytest.raises((MemoryError, ValueError, OverflowError)):
        gk.empty(shape)
    assert gk.empty((2,)).shape == (2,)


@pytest.mark.parametrize(("dtype", "scalar"), [("int8", 300), ("uint8", -1), ("int32", 1 << 40)])
def test_scalars_out_of_range(dtype, scalar):
    """As NumPy 2 does it."""
    a = random(3, DTYPES[dtype])
    kept = a.copy()
    with pytest.raises(OverflowError, match=f"add: .*{scalar}.*{dtype}"):
        gk.add(a, scalar, out=a)
    assert a.tobytes() == kept.tobytes()
    assert gk.add(a, 1).tobytes() == (a + DTYPES[dtype].type(1)).tobytes()


class Failing:
    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("my own failure")


def test_errors_of_others_come_through():
    assert_fails(lambda x: gk.add(Failing(), x.f32), RuntimeError, "my own failure")
    assert_fails(lambda x: gk.add(x.f32, x.f32, out=Failing()), RuntimeError, "my own failure")


def test_the_exceptions_are_a_family():
    assert issubclass(gk.CudaError, RuntimeError)
    assert issubclass(gk.DeviceLostError, gk.CudaError)
    assert issubclass(gk.SimulatorWarning, UserWarning)
    assert gk.CudaError.__module__.startswith("gpukern")


class Index:
    """What is asked for an axis and answers, or raises, as it likes."""

    def __init__(self, answer):
        self.answer = answer

    def __index__(self):
        if isinstance(self.answer, int):
            return self.answer
        raise self.answer


@pytest.mark.parametrize(
    "axes", [(0, 2**100), (-(2**100), 1), (2**31, 0), (2**32, 1), (2**63, 0), (Index(2**100), 0)]
)
def test_axes_beyond_any_number_are_no_axes_of_the_array(axes):
    sentence = assert_fails(lambda x: gk.transpose(x.f32, axes), ValueError, "transpose: axes (")
    assert "2 axes" in sentence
    assert_fails(lambda x: gk.transpose(x.d_f32, axes), ValueError, "transpose: axes (")
    for op in ("sum", "max", "norm"):
        far = max(axes, key=lambda axis: abs(axis.__index__()))
        call = lambda x, op=op, far=far: getattr(gk, op)(x.f32, far)  # noqa: E731
        assert "2 axes" in assert_fails(call, ValueError, f"{op}: axis ")
        assert_fails(lambda x, op=op: getattr(gk, op)(x.d_f32, axes), ValueError, f"{op}: axis ")
    assert_fails(lambda x: gk.argmax(x.f32, far), ValueError, "argmax: axis ")


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, RuntimeError, OverflowError])
def test_what_an_index_raises_goes_through_unchanged(kind):
    mine = kind("my own failure")
    for call in (
        lambda x: gk.transpose(x.f32, (0, Index(mine))),
        lambda x: gk.transpose(x.d_f32, [Index(mine), 0]),
        lambda x: gk.sum(x.f32, Index(mine)),
        lambda x: gk.sum(x.d_f32, (0, Index(mine))),
        lambda x: gk.max(x.f32, axis=Index(mine), keepdims=True),
        lambda x: gk.argmin(x.d_f32, axis=Index(mine)),
    ):
        bench = Bench()
        with pytest.raises(kind) as raised:
            call(bench)
        assert raised.value is mine
        bench.assert_unchanged_and_working()


def test_an_index_may_be_any_object_that_answers():
    a = random((2, 3), DTYPES["float32"], 1)
    assert gk.transpose(a, (Index(1), Index(-2))).tobytes() == a.T.tobytes()
    assert gk.sum(a, Index(-1)).tobytes() == gk.sum(a, 1).tobytes()
    assert gk.sum(a, (np.int8(0), Index(1))) == gk.sum(a)


def operations():
    """The functions of the extension that take operands and a variant."""
    functions = {name: getattr(_core, name) for name in dir(_core)}
    return {
        name: [
            key for key, each in signature.parameters.items() if each.kind is each.POSITIONAL_ONLY
        ]
        for name, function in functions.items()
        if callable(function) and not isinstance(function, type)
        if "variant" in (signature := inspect.signature(function)).parameters
    }


def test_every_operation_is_exported():
    names = {row["op"] for row in _core.rows() if hasattr(_core, row["op"])}
    assert names | {"clip", "less", "matrix_transpose"} == set(operations())
    assert set(operations()) <= set(gk.__all__)
    assert len(set(gk.__all__)) == len(gk.__all__)
    for name in gk.__all__:
        assert getattr(gk, name) is not None


@pytest.mark.parametrize("op", operations())
def test_the_argument_that_is_missing_is_named(op):
    names = operations()[op]
    assert names[0] == "a"
    for count, name in enumerate(names):
        given = [np.ones((2, 2), np.float32)] * count
        with pytest.raises(TypeError, match=rf"^{op}: needs its argument '{name}'; it is called as {op}\("):
            getattr(gk, op)(*given)
        with pytest.raises(TypeError, match=rf"^{op}: needs its argument '{name}'; it is called as {op}\("):
            getattr(gk, op)(*given, variant=None)
