"""Kernels and built-in operations as functions for JAX: what they compute, traced and batched and
differentiated, and what is refused."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpukern as gk
from arrays import on_gpu
from framework_kernels import compiled
from waiting import join_all

jax = pytest.importorskip(
    "jax", reason="JAX is not installed, and is too large for the extra 'test'"
)
jnp = pytest.importorskip("jax.numpy", reason="JAX is not installed")

MORE = r"""
__global__ void wide(const float *x, double *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
"""


@pytest.fixture(autouse=True)
def _where_gpukern_is():
    """Without a GPU for gpukern, or for JAX, JAX computes on the CPU."""
    gpu = on_gpu() and jax.default_backend() == "gpu"
    with jax.default_device(jax.devices("gpu" if gpu else "cpu")[0]):
        yield


@pytest.fixture(scope="module")
def module() -> Any:
    return compiled(MORE)


@pytest.fixture
def twice(module) -> Any:
    return module.twice.as_jax(out="x", over="x", given={"n": "x"}, backward=lambda g, x: 2 * g)


@pytest.fixture
def saxpy(module) -> Any:
    kernel = gk.elementwise("float a, float x, float y, float z", "z = a * x + y")
    return kernel.as_jax(numbers=["a"], backward=lambda g, a, x, y: (a * g, g))


def some(*shape: int, dtype: Any = np.float32, seed: int = 3) -> Any:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def same(got: Any, expected: Any) -> None:
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(
        np.asarray(got, np.float64), np.asarray(expected, np.float64), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (1000,), (7, 3, 5)])
@pytest.mark.parametrize("jit", [False, True])
def test_a_kernel(twice, shape, jit):
    x = some(*shape)
    same((jax.jit(twice) if jit else twice)(x), 2 * x)


def test_within_a_program(twice, saxpy):
    @jax.jit
    def calculate(x, y):
        for _ in range(3):
            x = saxpy(2.0, jnp.sin(twice(x).T).T, y) + 1
        return x

    x, y = some(4, 5), some(5)
    expected = x
    for _ in range(3):
        expected = 2 * jnp.sin(2 * expected) + y + 1
    same(calculate(x, y), expected)
    same(calculate(x, y), expected)


def test_gradients(twice, saxpy):
    x, y = some(3, 5), some(5, seed=4)
    of_x, of_y = jax.grad(lambda x, y: saxpy(2.0, twice(x), y).sum(), (0, 1))(x, y)
    same(of_x, jnp.full_like(x, 4))
    same(of_y, jnp.full_like(y, 3))
    weights = some(3, 5, seed=5)
    jitted = jax.jit(jax.grad(lambda x: (twice(x) * weights).sum()))
    same(jitted(x), 2 * weights)
    same(jax.vmap(jax.grad(lambda row: (twice(row) ** 2).sum()))(x), 8 * x)


def test_vmap(twice, saxpy):
    x, y = some(3, 5), some(5, seed=4)
    same(jax.vmap(twice)(x), 2 * x)
    same(jax.vmap(twice, in_axes=1, out_axes=1)(x), 2 * x)
    axes = jax.vmap(lambda x, y: saxpy(2.0, x, y), in_axes=(1, 0))
    same(axes(x, some(5, 2, 3)), 2 * x.T[:, None, :] + some(5, 2, 3))
    same(jax.vmap(lambda x: saxpy(2.0, x, y))(x), 2 * x + y)
    nested = jax.vmap(jax.vmap(lambda x, y: saxpy(2.0, x, y)), in_axes=(None, 0))
    same(nested(x, some(4, 3, 5)), 2 * x + some(4, 3, 5))


def test_several_results_and_numbers(module):
    rows = module.rows.as_jax(
        out={"sums": lambda x, scale: x.shape[0], "counts": lambda x, scale: (x.shape[0],)},
        grid=lambda x, scale: x.shape[0],
        block=1,
        given={"width": lambda x, scale: x.shape[1]},
        backward=lambda g, _, x, scale: jnp.broadcast_to(scale * g[:, None], x.shape),
    )
    x = some(4, 6)
    for scale in (0.5, 2, 0.5):
        sums, counts = jax.jit(rows, static_argnums=1)(x, scale)
        same(sums, scale * x.sum(1))
        same(counts, (x > 0).sum(1).astype("int32"))
    same(jax.grad(lambda x: rows(x, 0.5)[0].sum())(x), jnp.full_like(x, 0.5))
    sums, counts = jax.vmap(lambda x: rows(x, 2.0))(some(3, 4, 6))
    same(sums, 2 * some(3, 4, 6).sum(2))


def test_reductions():
    kernel = gk.reduction("T x, T y", "(x - y) * (x - y)", "a + b", 0, name="distance")
    x, y = some(4, 6), some(6, seed=4)
    same(jax.jit(kernel.as_jax())(x, y), ((x - y) ** 2).sum())
    rows = kernel.as_jax(
        given={"axis": 1}, backward=lambda g, x, y: (2 * g[:, None] * (x - y), None)
    )
    same(rows(x, y), ((x - y) ** 2).sum(1))
    same(jax.grad(lambda x: rows(x, y).sum())(x), 2 * (x - y))
    same(jax.vmap(rows, in_axes=(0, None))(some(3, 4, 6), y)[2], rows(some(3, 4, 6)[2], y))


def test_what_is_written_may_begin_as_zeros(module):
    op = jax.jit(module.histogram.as_jax(out=256, over="x", given={"n": "x"}, zeroed=True))
    x = jnp.arange(1000).astype(jnp.uint8) % 7
    for _ in range(3):
        same(op(x), jnp.bincount(x, length=256))


BUILT_IN: dict[str, tuple[int, dict[str, Any], Any]] = {
    "abs": (1, {}, jnp.abs),
    "add": (2, {}, jnp.add),
    "clip": (1, {"min": -0.5, "max": 0.5}, lambda a: jnp.clip(a, -0.5, 0.5)),
    "divide": (2, {}, jnp.divide),
    "exp": (1, {}, jnp.exp),
    "matmul": (2, {}, jnp.matmul),
    "matrix_transpose": (1, {}, lambda a: a.mT),
    "maximum": (2, {}, jnp.maximum),
    "mean": (1, {"axis": (0, -1), "keepdims": True}, lambda a: a.mean((0, -1), keepdims=True)),
    "minimum": (2, {}, jnp.minimum),
    "multiply": (2, {}, jnp.multiply),
    "negative": (1, {}, jnp.negative),
    "scale_add": (3, {}, lambda a, x, y: a * x + y),
    "sqrt": (1, {}, lambda a: jnp.sqrt(a)),  # noqa: PLW0108 (jnp's own is compiled already)
    "subtract": (2, {}, jnp.subtract),
    "sum": (1, {"axis": 0}, lambda a: a.sum(0)),
    "transpose": (1, {"axes": (1, 2, 0)}, lambda a: a.transpose(1, 2, 0)),
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_operations(name):
    count, given, expected = BUILT_IN[name]
    function = gk.as_jax(getattr(gk, name), given=given)
    shapes = [(2, 3, 3), (3, 3), (3, 1)][:count]
    arrays = [jnp.abs(some(*shape, seed=at)) + 0.1 for at, shape in enumerate(shapes)]
    same(jax.jit(function)(*arrays), expected(*arrays))
    places = tuple(range(count))
    got = jax.grad(lambda *a: (function(*a) ** 2).sum(), places)(*arrays)
    want = jax.grad(lambda *a: (expected(*a) ** 2).sum(), places)(*arrays)
    for one, other in zip(got, want, strict=True):
        same(one, other)
    stacked = [jnp.stack([array, 2 * array]) for array in arrays]
    same(jax.vmap(function)(*stacked), jax.vmap(expected)(*stacked))


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float16", "int8", "int16", "int32", "uint8", "uint16", "uint32"]
)
def test_dtypes(dtype):
    a = jnp.arange(7).astype(dtype)
    same(jax.jit(gk.as_jax(gk.add))(a, a), a + a)
    same(gk.as_jax(gk.less)(a, a[::-1]), a < a[::-1])


def test_integers_have_no_gradient():
    mixed = gk.elementwise("float x, int k, float y", "y = x * k").as_jax(
        backward=lambda g, x, k: (g * k, None)
    )
    x, k = some(4), jnp.arange(4)
    same(jax.grad(lambda x: mixed(x, k).sum())(x), k.astype(jnp.float32))


def test_an_operand_that_is_a_number():
    function = gk.as_jax(gk.scale_add, numbers=["a"])
    x, y = some(4), some(4, seed=4)
    same(function(2, x, y), 2 * x + y)
    same(jax.grad(lambda x: function(3.0, x, y).sum())(x), jnp.full_like(x, 3))
    with pytest.raises(TypeError, match=r"scale_add: a has to be a number of Python's.*static"):
        jax.jit(function)(2.0, x, y)
    with pytest.raises(TypeError, match=r"scale_add: takes 3 arguments, \(a, x, y\), .*given 2"):
        function(x, y)


def test_what_fails_in_the_program_is_said_and_the_next_call_works(module):
    """A launch that no device has is found when XLA calls, on a thread that may be any."""
    op = module.twice.as_jax(out="x", grid=1, block=lambda x: 5000 + x.size, given={"n": "x"})
    with pytest.raises(Exception, match=r"ValueError: twice: .*block"):
        jax.jit(op)(some(3)).block_until_ready()
    same(gk.as_jax(gk.add)(some(3), some(3)), 2 * some(3))


def test_no_gradient_is_said_where_there_is_none(module):
    op = module.twice.as_jax(out="x", over="x", given={"n": "x"})
    with pytest.raises(NotImplementedError, match=r"twice: has no gradient; as_jax\(.*backward="):
        jax.grad(lambda x: op(x).sum())(some(3))


def test_what_jax_refuses_to_have_is_said(module):
    op = module.wide.as_jax(out="x", over="x", given={"n": "x"})
    with pytest.raises(TypeError, match=r"wide: gives an array of float64.*jax_enable_x64"):
        op(some(3))
    with pytest.raises(TypeError, match=r"add: operands of different dtypes"):
        gk.as_jax(gk.add)(some(3), jnp.arange(3))
    with pytest.raises(ValueError, match=r"add: operands could not be broadcast together"):
        jax.jit(gk.as_jax(gk.add))(some(3), some(4))
    with pytest.raises(TypeError, match=r"^as_jax: got an unexpected keyword argument 'dims'"):
        module.twice.as_jax(out="x", over="x", dims=3)


def test_programs_of_another_process_are_known_as_such(twice):
    from gpukern.frameworks import jax_

    with pytest.raises(LookupError, match="compiled by another process"):
        jax_.run(1, 0, (), ())


def test_many_threads(twice):
    jitted = jax.jit(twice)
    wrong = []

    def work(number):
        for turn in range(20):
            x = jnp.full((100,), number * 100 + turn, jnp.float32)
            if not (jitted(x) == 2 * x).all():
                wrong.append((number, turn))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    join_all(*threads)
    assert not wrong


def test_what_the_page_on_frameworks_shows(module):
    page = Path(__file__).parent.parent / "docs" / "frameworks.md"
    if not page.exists():
        pytest.skip("the tests stand alone, without docs")
    code = "".join(re.findall(r"```python\n(import jax\n.*?)```", page.read_text(), re.S))
    names: dict[str, Any] = {}
    exec(code, names)
    same(names["gradient"], jnp.full((3, 4), 2.0))
