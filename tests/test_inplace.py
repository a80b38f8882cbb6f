"""Operators that write their left operand: its memory, its views, its dtype and shape."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, is_float, random

OPERATORS = {"add": operator.iadd, "subtract": operator.isub, "multiply": operator.imul}
OPERATORS |= {"divide": operator.itruediv}


def suits(op, dtype):
    return is_float(DTYPES[dtype]) if op == "divide" else op != "subtract" or dtype != "bool"


CASES = [(op, dtype) for op in OPERATORS for dtype in DTYPES if suits(op, dtype)]


def numpys(op, a, b):
    with np.errstate(all="ignore"):
        return getattr(np, op)(a, b).astype(a.dtype)


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_what_is_written(op, dtype, balanced):
    """The same object, the same memory; device and host arrays and numbers on the right."""
    a, b = random((7, 33), DTYPES[dtype], 1), random((7, 33), DTYPES[dtype], 2)
    for other in (gk.to_device(b), b, b[0], gk.to_device(b[:, :1]), a.dtype.type(1), True):
        d = gk.to_device(a)
        same, view, address = d, d[1:, ::-2], d.__cuda_array_interface__["data"]
        d = OPERATORS[op](d, other)
        want = numpys(op, a, np.asarray(other, a.dtype))
        assert d is same
        assert d.__cuda_array_interface__["data"] == address
        oracle.assert_same(d.to_host(), want, f"{op} {type(other)}")
        oracle.assert_same(view.to_host(), want[1:, ::-2].copy(), "a view of it")
    del d, same, view, other


def test_overlapping_operands_give_numpys_result():
    """One of d[1:] and d[:-1] is written before the other has been read."""
    for op, run in OPERATORS.items():
        for n in (2, 33, 4099):
            a = random((n,), DTYPES["float64"], n)
            for left, right in (
                (slice(1, None), slice(None, -1)),
                (slice(None, -1), slice(1, None)),
                (slice(None), slice(None, None, -1)),
                (slice(None), slice(None)),
                (slice(None), slice(0, 1)),
            ):
                d, host = gk.to_device(a), a.copy()
                part = d[left]
                assert run(part, d[right]) is part
                host[left] = numpys(op, host[left], host[right].copy())
                oracle.assert_same(d.to_host(), host, f"{op} {left} {right}")


def test_a_square_and_its_transpose():
    a = random((33, 33), DTYPES["float32"])
    d = gk.to_device(a)
    d += d.T
    oracle.assert_same(d.to_host(), a + a.T, "d += d.T")


def test_matmul():
    a, b = (np.arange(9, dtype=np.float32).reshape(3, 3) + i for i in (0, 1))
    d = same = gk.to_device(a)
    d @= gk.to_device(b)
    assert d is same
    oracle.assert_same(d.to_host(), a @ b, "@=")
    d @= d
    oracle.assert_same(d.to_host(), (a @ b) @ (a @ b), "by itself")
    with pytest.raises(ValueError, match="matmul: the array on the left has shape"):
        d @= np.ones((3, 2), np.float32)


def test_the_dtype_and_the_shape_stay_or_an_error_says_why():
    whole = gk.to_device(np.array([1, 2, 3], np.int32))
    with pytest.raises(TypeError, match=r"divide: .*int32"):
        whole /= 2
    with pytest.raises(TypeError, match=r"add: .*0\.5"):
        whole += 0.5
    with pytest.raises(TypeError, match="add: operands of different dtypes, int32 and int64"):
        whole += np.array([1, 2, 3])
    with pytest.raises(ValueError, match=r"add: the array on the left has shape \(3,\)"):
        whole += np.ones((2, 3), np.int32)
    with pytest.raises(TypeError, match=r"add: b has to be .* not <class 'str'>"):
        whole += "x"
    assert whole.tolist() == [1, 2, 3]
