"""NumPy's functions and operators on a DeviceArray: ours where there is one, else a clear error."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

import gpukern as gk
from arrays import settled

A = np.array([[1.5, -2.0, 4.0], [0.25, 9.0, 3.0]], np.float32)
B = np.array([[2.0, 5.0, 4.0], [1.0, -3.0, 0.5]], np.float32)

UNARY = ("negative", "absolute", "abs", "sqrt", "exp")
BINARY = ("add", "subtract", "multiply", "divide", "true_divide", "maximum", "minimum", "less")
BINARY += ("less_equal", "greater", "greater_equal", "equal", "not_equal")
OPERATORS = ("add", "sub", "mul", "truediv", "lt", "le", "gt", "ge", "eq", "ne")


def same(got, want):
    assert isinstance(got, gk.DeviceArray)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(got.to_host(), want, rtol=1e-6)


@pytest.mark.parametrize("name", BINARY)
def test_binary_ufuncs(name, balanced):
    ufunc, (a, b) = getattr(np, name), (gk.to_device(A), gk.to_device(B))
    want = ufunc(A, B)
    for got in (ufunc(a, b), ufunc(A, b), ufunc(a, B)):
        same(got, want)
    same(ufunc(a, 2), ufunc(A, np.float32(2)))
    same(ufunc(np.float32(2), a), ufunc(np.float32(2), A))
    out = gk.empty(A.shape, want.dtype)
    assert ufunc(a, b, out=out) is out
    same(out, want)
    host = np.empty(A.shape, want.dtype)
    assert ufunc(a, b, out=host) is host
    np.testing.assert_array_equal(host, want)
    del a, b, got, out


@pytest.mark.parametrize("name", UNARY)
def test_unary_ufuncs(name):
    with np.errstate(invalid="ignore"):
        same(getattr(np, name)(gk.to_device(A)), getattr(np, name)(A))


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_numpys_arrays_and_scalars(name):
    run, (a, b) = getattr(operator, name), (gk.to_device(A), gk.to_device(B))
    same(run(A, b), run(A, B))
    same(run(a, B), run(A, B))
    same(run(np.float32(2), b), run(np.float32(2), B))
    same(run(b, np.float32(2)), run(B, np.float32(2)))


def test_matrices():
    same(A @ gk.to_device(B.T.copy()), A @ B.T)
    same(np.matmul(gk.to_device(A), B.T), A @ B.T)
    same(np.dot(gk.to_device(A), B.T), A @ B.T)
    same(np.dot(gk.to_device(A), B[0]), A @ B[0])
    same(np.dot(gk.to_device(A)[0], B[0]), np.dot(A[0], B[0])[...])


DOTS = [((2, 3, 4), (2, 4, 6)), ((3, 4), (5, 4, 6)), ((4,), (5, 4, 6)), ((2, 2, 4), (3, 2, 4, 5))]
DOTS += [((2, 3, 4), (4, 6)), ((2, 3, 4), (4,)), ((4,), (4, 6)), ((4,), (4,)), ((2, 1), (3, 1, 1))]
DOTS += [((0, 4), (2, 4, 3)), ((2, 0), (3, 0, 4)), ((2, 4), (0, 4, 3)), ((), (2, 3)), ((2, 3), ())]


@pytest.mark.parametrize("shapes", DOTS)
def test_dot_of_any_axes_is_numpys(shapes, balanced):
    """Where matmul pairs the matrices of two stacks, dot multiplies each by each."""
    a, b = (np.arange(1, 1 + math.prod(shape), dtype="i4").reshape(shape) for shape in shapes)
    want = np.asarray(np.dot(a, b))
    for left, right in ((gk.to_device(a), gk.to_device(b)), (a, gk.to_device(b))):
        same(np.dot(left, right), want)
    same(np.dot(b=b, a=gk.to_device(a)), want)
    turned = gk.to_device(b.T.copy()).T
    same(np.dot(a, turned), want)
    del left, right, turned


def test_dot_of_a_number_multiplies():
    d = gk.to_device(A)
    same(np.dot(d, 2.0), A * 2)
    same(np.dot(2, d), A * 2)
    out = gk.empty(A.shape)
    assert np.dot(d, np.float32(3), out=out) is out
    same(out, A * 3)


def test_dot_of_an_array_that_does_not_tell_its_axes():
    class Foreign:
        def __init__(self, array):
            self.array = array
            self.__cuda_array_interface__ = array.__cuda_array_interface__

    same(np.dot(gk.to_device(A), Foreign(gk.to_device(B.T.copy()))), A @ B.T)


def test_dot_says_what_does_not_fit():
    d, stack = gk.to_device(A), gk.ones((2, 3, 4))
    with pytest.raises(
        ValueError, match=r"^dot: shapes \(2, 3\) and \(2, 3\) not aligned: 3 \(dim 1"
    ):
        np.dot(d, d)
    with pytest.raises(
        ValueError, match=r"^dot: shapes \(2, 3, 4\) and \(2, 3, 4\) .*!= 3 \(dim 1\)$"
    ):
        np.dot(stack, stack)
    with pytest.raises(ValueError, match=r"^dot: shapes \(3,\) and \(2,\) not aligned"):
        np.dot(d[0], d[:, 0])
    with pytest.raises(TypeError, match=r"^dot: operands of different dtypes"):
        np.dot(d, np.ones((3, 2)))
    with pytest.raises(TypeError, match=r"^dot: b is the .*complex"):
        np.dot(d, 1j)
    with pytest.raises(TypeError, match=r"^dot: b has to be a NumPy array, .*numpy\.array"):
        np.dot(d, [1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match=r"^dot: out is not offered"):
        np.dot(d, stack, out=gk.empty((2, 2, 4)))


def test_clip_takes_bounds_by_one_kind_of_name():
    with pytest.raises(ValueError, match=r"^clip: the bounds are a_min and a_max, or min and max"):
        np.clip(gk.to_device(A), 0, 1, min=3)
    with pytest.raises(TypeError, match=r"^clip: min has to be a number or None"):
        np.clip(gk.ones(3), np.ones(3), 2)


def test_a_host_array_on_the_left_of_an_in_place_operator_stays_one():
    a, d = A.copy(), gk.to_device(B)
    whole = a
    a += d
    assert a is whole
    np.testing.assert_array_equal(a, A + B)


CALLS = {
    "sum": np.sum,
    "sum along": lambda x: np.sum(x, 0, keepdims=True),
    "sum by name": lambda x: np.sum(a=x, axis=-1, dtype="float64"),
    "mean": lambda x: np.mean(x, axis=1),
    "prod": lambda x: np.prod(x, axis=(0, 1)),
    "max": lambda x: np.max(x, 0),
    "amin": lambda x: np.amin(x, axis=1),
    "argmax": np.argmax,
    "argmin": lambda x: np.argmin(x, 0, keepdims=True),
    "clip": lambda x: np.clip(x, 0, 2),
    "clip by name": lambda x: np.clip(x, max=2),
    "clip from 0 by name": lambda x: np.clip(x, min=0),
    "norm": lambda x: np.linalg.norm(x, axis=1),
    "norm by name": lambda x: np.linalg.norm(x=x),
    "transpose": lambda x: np.transpose(x, (1, 0)),
    "transpose of all": np.transpose,
    "transpose of three axes": lambda x: np.transpose(x[None], (1, 0, 2)),
    "matrix_transpose": np.matrix_transpose,
    "reshape": lambda x: np.reshape(x, (3, -1)),
    "ravel": np.ravel,
    "copy": np.copy,
    "zeros_like": np.zeros_like,
    "ones_like": lambda x: np.ones_like(x, "int8"),
    "full_like": lambda x: np.full_like(x, 3),
}


@pytest.mark.parametrize("case", CALLS)
def test_functions(case, balanced):
    same(CALLS[case](gk.to_device(A)), np.asarray(CALLS[case](A)))


def test_functions_of_the_shape():
    d = gk.to_device(A)
    assert (np.shape(d), np.ndim(d), np.size(d)) == ((2, 3), 2, 6)
    assert np.empty_like(d).shape == (2, 3)
    out = gk.empty(3)
    assert np.sum(d, axis=0, out=out) is out
    assert np.sum(A, axis=0, out=out) is out


REFUSED = {
    "a ufunc that there is none of": (np.log, r"numpy\.log: does not take"),
    "a method of a ufunc": (np.add.reduce, r"numpy\.add\.reduce: does not take"),
    "where=": (lambda d: np.add(d, d, where=True), r"numpy\.add: with these arguments .*'where'"),
    "several outs": (lambda d: np.divmod(d, d), r"numpy\.divmod: does not take"),
    "%": (lambda d: A % d, r"numpy\.remainder: does not take"),
    "% of ours": (lambda d: d % A, r"numpy\.remainder: does not take"),
    "a function": (np.median, r"numpy\.median: does not take"),
    "of a module": (np.linalg.inv, r"numpy\.linalg\.inv: does not take"),
    "initial=": (lambda d: np.sum(d, initial=3), r"numpy\.sum: with these arguments .*'initial'"),
    "order=": (lambda d: np.reshape(d, 6, order="F"), r"numpy\.reshape: with these .*'order'"),
    "in a list": (lambda d: np.concatenate([d, d]), r"numpy\.concatenate: does not take"),
    "copyto": (lambda d: np.copyto(A.copy(), d), r"numpy\.copyto: does not take"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_offered_names_the_ways_out(case):
    call, said = REFUSED[case]
    d, before = gk.to_device(A), settled()
    with pytest.raises(
        TypeError, match=rf"^{said}.* a DeviceArray; copy it .*\.to_host\(\).*gpukern"
    ):
        call(d)
    assert settled() == before


def test_errors_of_ours_come_through():
    d = gk.to_device(A)
    with pytest.raises(TypeError, match=r"^add: operands of different dtypes, float64 and float32"):
        A.astype(np.float64) + d
    with pytest.raises(TypeError, match=r"^sum: dtype int8 is not offered"):
        np.sum(d, dtype="int8")
    with pytest.raises(TypeError, match=r"^norm: ord 1 is not offered"):
        np.linalg.norm(d, 1)
    with pytest.raises(ValueError, match="could not be broadcast"):
        np.add(d, A.T)


def test_others_may_know_more():
    class Other:
        def __array_ufunc__(self, *given, **named):
            return "theirs"

        def __array_function__(self, *given):
            return "theirs"

    d = gk.to_device(A)
    assert np.log(d, Other()) == "theirs"
    assert np.add(d, Other()) == "theirs"
    assert np.add(d, d, out=Other()) == "theirs"
    assert np.concatenate([d, Other()]) == "theirs"
