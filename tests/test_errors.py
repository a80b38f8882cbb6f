"""Wrong dtypes, objects, shapes and outputs: nothing changes, and the next call works."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import gpukern as gk
from arrays import DTYPES, DeviceView, places, random
from failing import assert_fails

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
    "matmul int32": (lambda x: gk.matmul(x.i32, x.f32.T), ("matmul: ", "int32", "float32")),
    "matmul objects": (lambda x: gk.matmul(OBJECTS, OBJECTS), ("matmul: ", "object")),
    "transpose complex": (lambda x: gk.transpose(COMPLEX), ("transpose: ", "complex64")),
    "to_device objects": (lambda x: gk.to_device(OBJECTS), ("to_device: ", "object")),
    "to_device complex": (lambda x: gk.to_device(COMPLEX), ("to_device: ", "complex64")),
    "empty complex": (lambda x: gk.empty((2,), "complex64"), ("empty: ", "complex64")),
    "empty objects": (lambda x: gk.empty((2,), object), ("empty: dtype <class 'object'>",)),
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
    "matmul of stacks": (
        lambda x: gk.matmul(x.cube, np.ones((3, 2, 2), np.float32)),
        ("matmul: the stacks of a, of shape (2, 2, 2)", "(3, 2, 2)", "broadcast"),
    ),
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
