"""What frameworks are told of operations, asked of NumPy's arrays: neither framework is needed."""

from __future__ import annotations

import subprocess
from typing import Any

import numpy as np
import pytest

import gpukern as gk
from gpukern.frameworks.builtin import BuiltIn
from gpukern.frameworks.operation import Shaped, broadcast, gradients

SOURCE = r"""
__global__ void rows(const float *x, float scale, float *sums, unsigned char *signs, int width) {
    float sum = 0;
    for (int i = 0; i < width; i++) sum += scale * x[blockIdx.x * width + i];
    sums[blockIdx.x] += sum;
    signs[blockIdx.x] = sum > 0;
}
"""


def some(*shape: int, seed: int = 3) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).uniform(0.2, 1.8, shape)


def called(operation: Any, *values: Any) -> list[Any]:
    """A call as a framework makes it: results of the shapes and dtypes that are told."""
    known = [Shaped(v.shape, v.dtype.name) if isinstance(v, np.ndarray) else v for v in values]
    outs = [np.empty(one.shape, one.dtype) for one in operation.shaped(known)]
    operation.run(values, outs, None)
    return outs


CASES: list[tuple[str, dict[str, Any], list[tuple[int, ...]]]] = [
    *((name, {}, [(4, 3), (3,)]) for name in ("add", "subtract", "multiply", "divide")),
    *((name, {}, [(4, 1), (4, 3)]) for name in ("maximum", "minimum")),
    *((name, {}, [(4, 3)]) for name in ("abs", "exp", "negative", "sqrt", "matrix_transpose")),
    ("scale_add", {}, [(1,), (4, 3), (3,)]),
    ("clip", {"min": 0.7, "max": 1.3}, [(5,)]),
    ("clip", {"min": 0.7}, [(5,)]),
    ("sum", {}, [(4, 3)]),
    ("sum", {"axis": 1}, [(4, 3, 2)]),
    ("mean", {"axis": (0, -1), "keepdims": True}, [(4, 3, 2)]),
    ("transpose", {}, [(4, 3, 2)]),
    ("transpose", {"axes": (1, -1, 0)}, [(4, 3, 2)]),
    ("dot", {}, [(5,), (5,)]),
    ("matmul", {}, [(3,), (3,)]),
    ("matmul", {}, [(2, 3), (3,)]),
    ("matmul", {}, [(3,), (3, 2)]),
    ("matmul", {}, [(5, 2, 3), (3, 4)]),
    ("matmul", {}, [(5, 2, 3), (3,)]),
]


def summed(gradient: Any, shape: tuple[int, ...]) -> Any:
    added = gradient.ndim - len(shape)
    gradient = gradient.sum(tuple(range(added)))
    ones = tuple(axis for axis, length in enumerate(shape) if length == 1)
    return gradient.sum(ones, keepdims=True).reshape(shape)


@pytest.mark.parametrize(("name", "given", "shapes"), CASES)
def test_shapes_and_gradients_of_built_in_operations(name, given, shapes):
    """The gradient of a weighted sum, beside what differs where one element is moved."""
    operation = BuiltIn(getattr(gk, name), (), given, None)
    arrays = [some(*shape, seed=at) for at, shape in enumerate(shapes)]
    (result,) = called(operation, *arrays)
    expected = np.asarray(getattr(gk, name)(*arrays, **given))
    np.testing.assert_array_equal(result, expected)
    weights = some(*result.shape, seed=9)
    backward = operation.differentiated(np)
    assert backward is not None
    found = gradients(operation, backward, [weights], arrays)
    step = 1e-6
    for at, array in enumerate(arrays):
        slopes = np.empty(array.shape)
        for place in np.ndindex(array.shape):
            ends = []
            for sign in (step, -step):
                moved = [one.copy() for one in arrays]
                moved[at][place] += sign
                ends.append((called(operation, *moved)[0] * weights).sum())
            slopes[place] = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(
            summed(found[at], array.shape), slopes, rtol=1e-6, atol=1e-6, err_msg=f"{name} {at}"
        )


def test_where_both_are_the_same_the_gradient_is_halved():
    same = np.ones(3)
    for function in (gk.maximum, gk.minimum):
        backward = BuiltIn(function, (), {}, None).differentiated(np)
        assert backward is not None
        np.testing.assert_array_equal(backward(same, same, same), np.full((2, 3), 0.5))


@pytest.mark.parametrize("name", ["prod", "max", "min", "norm", "argmax", "less"])
def test_there_is_no_gradient(name):
    assert BuiltIn(getattr(gk, name), (), {}, None).differentiated(np) is None


@pytest.mark.parametrize(
    ("name", "dtype", "given", "expected"),
    [
        ("add", "bfloat16", {}, "bfloat16"),
        ("less", "float32", {}, "bool"),
        ("sum", "int8", {}, "int64"),
        ("sum", "float16", {"dtype": "float64"}, "float64"),
        ("argmax", "float32", {"axis": 0}, "int64"),
        ("matmul", "int8", {"dtype": "int32"}, "int32"),
    ],
)
def test_dtypes_of_results(name, dtype, given, expected):
    operation = BuiltIn(getattr(gk, name), (), given, None)
    (told,) = operation.shaped([Shaped((3, 3), dtype)] * len(operation.arguments))
    assert told.dtype == expected


def test_shapes_that_have_no_result():
    matmul = BuiltIn(gk.matmul, (), {}, None)
    with pytest.raises(ValueError, match=r"matmul: matrices of shapes \(2, 3\) and \(2, 3\)"):
        matmul.shaped([Shaped((2, 3), "float32")] * 2)
    with pytest.raises(ValueError, match=r"matmul: .*0 axes"):
        matmul.shaped([Shaped((), "float32")] * 2)
    with pytest.raises(ValueError, match="could not be broadcast together"):
        broadcast("add", [(2, 3), (4, 3)])
    with pytest.raises(ValueError, match="sum: axis 2 is none of an array of 2 axes"):
        BuiltIn(gk.sum, (), {"axis": 2}, None).shaped([Shaped((2, 3), "float32")])
    assert broadcast("add", [(2, 1), (3,), ()]) == (2, 3)
    assert broadcast("add", [(0,), (1,)]) == (0,)


def test_a_kernel_of_an_expression():
    kernel = gk.elementwise("T a, T x, int k, T y, bool large", "y = a * x + k; large = y > 3")
    operation = kernel._described(["a"], None, None)
    assert [(one.name, one.number) for one in operation.arguments] == [
        ("a", float),
        ("x", None),
        ("k", None),
    ]
    x, k = some(4, 3), np.arange(3, dtype=np.int32)
    y, large = called(operation, 2.0, x, k)
    np.testing.assert_allclose(y, 2 * x + k)
    np.testing.assert_array_equal(large, y > 3)


def test_a_kernel_of_a_source():
    try:
        module = gk.compile(SOURCE)
    except gk.CudaError as error:
        pytest.skip(str(error))
    operation = module.rows._described(
        out={"signs": lambda x, scale: x.shape[:1], "sums": lambda x, scale: x.shape[0]},
        grid=lambda x, scale: x.shape[0],
        block=1,
        given={"width": lambda x, scale: x.shape[1]},
        zeroed=True,
    )
    assert [(one.name, one.number) for one in operation.arguments] == [
        ("x", None),
        ("scale", float),
    ]
    x = some(4, 6).astype(np.float32)
    told = operation.shaped([Shaped((4, 6), "float32"), 2.0])
    assert told == (Shaped((4,), "float32"), Shaped((4,), "uint8"))
    sums, signs = called(operation, x, -2.0)
    np.testing.assert_allclose(sums, -2 * x.sum(1), rtol=1e-6)
    assert not signs.any()


@pytest.mark.parametrize(
    ("call", "framework", "sentence"),
    [
        ("as_torch_op(gk.add, 'mine::add')", "torch", "as_torch_op needs PyTorch, which is not"),
        ("as_jax(gk.add)", "jax", "as_jax needs JAX, which is not"),
    ],
)
def test_a_framework_that_is_missing(script, call, framework, sentence):
    code = (
        f"import sys; sys.modules['{framework}'] = None\n"
        "import gpukern as gk\n"
        f"try: gk.{call}\n"
        "except ImportError as error: print(error)\n"
    )
    done: subprocess.CompletedProcess[str] = script(code)
    assert done.stdout == f"{sentence} installed: pip install {framework}\n", done.stderr
