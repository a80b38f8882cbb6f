"""Kernels and built-in operations as operations of PyTorch: what they compute, their gradients and
batches, compiled and not, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import gpukern as gk
from arrays import on_gpu
from framework_kernels import compiled

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed, and is too large for the extra 'test'"
)

MORE = r"""
__global__ void in_place(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
struct pair { float a, b; };
__global__ void weighed(const float *x, float *y, pair weights, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = weights.a * x[i] + weights.b;
}
"""


def where() -> str:
    return "cuda" if on_gpu() and torch.cuda.is_available() else "cpu"


def some(*shape: int, dtype: Any = None, grad: bool = False, seed: int = 3) -> Any:
    generator = torch.Generator().manual_seed(seed)
    made = torch.randn(shape, generator=generator, dtype=dtype or torch.float32)
    return made.to(where()).requires_grad_(grad)


def same(got: Any, expected: Any) -> None:
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    assert got.device == expected.device
    torch.testing.assert_close(got, expected)


@pytest.fixture(scope="module")
def module() -> Any:
    return compiled(MORE)


@pytest.fixture
def twice(module) -> Any:
    return module.twice.as_torch_op(
        "gktest::twice", out="x", over="x", given={"n": "x"}, backward=lambda g, x: 2 * g
    )


@pytest.fixture
def saxpy(module) -> Any:
    kernel = gk.elementwise("float a, float x, float y, float z", "z = a * x + y")
    return kernel.as_torch_op(
        "gktest::saxpy", numbers=["a"], backward=lambda g, a, x, y: (a * g, g)
    )


# kernels ------------------------------------------------------------------------------------------


def test_a_kernel_is_found_by_its_name(twice):
    x = some(3, 5)
    same(torch.ops.gktest.twice(x), 2 * x)
    same(twice(x), 2 * x)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (1000,), (7, 3, 5)])
def test_shapes(twice, shape):
    x = some(*shape)
    same(twice(x), 2 * x)


def test_tensors_that_lie_otherwise(twice, saxpy):
    x, y = some(6, 8), some(8)
    for view in (x.t(), x[::2, 1::3], x[:1].expand(4, 8), x[1:]):
        same(twice(view), 2 * view.contiguous())
        same(saxpy(3.0, view, view), 4 * view.contiguous())
    same(saxpy(2.0, x, y.expand(6, 8)), 2 * x + y)


def test_no_argument_is_changed(twice, saxpy):
    x = some(3, 5)
    kept = x.clone()
    twice(x), saxpy(2.0, x, x)
    same(x, kept)


@pytest.mark.parametrize("grad", [True, False])
def test_opcheck(twice, saxpy, grad):
    torch.library.opcheck(twice, (some(3, 5, grad=grad),))
    torch.library.opcheck(twice, (some(5, 3, grad=grad).t(),))
    torch.library.opcheck(saxpy, (2.5, some(3, 5, grad=grad), some(5, grad=grad)))


def test_gradients_of_a_kernel(twice):
    x = some(3, 5, grad=True)
    twice(x).sum().backward()  # the gradient that comes in is one number, expanded
    same(x.grad, torch.full_like(x, 2))
    x.grad = None
    weights = some(5, 3, seed=4).t()
    (twice(twice(x)) * weights).sum().backward()
    same(x.grad, 4 * weights.contiguous())


def test_gradients_are_summed_up_where_a_tensor_was_broadcast(saxpy):
    x, y = some(3, 5, grad=True), some(5, grad=True)
    saxpy(2.0, x, y).sum().backward()
    same(x.grad, torch.full_like(x, 2))
    same(y.grad, torch.full_like(y, 3))


def test_a_kernel_is_the_gradient_of_another(module, twice):
    again = module.twice.as_torch_op(
        "gktest::by_itself", out="x", over="y", given={"n": "y"}, backward=lambda g, x: twice(g)
    )
    x = some(4, grad=True)
    again(x).sum().backward()
    same(x.grad, torch.full_like(x, 2))


def test_no_gradient_is_said_where_there_is_none(module):
    op = module.twice.as_torch_op("gktest::flat", out="x", over="x", given={"n": "x"})
    x = some(4, grad=True)
    result = op(x)
    same(result.detach(), 2 * x.detach())
    with pytest.raises(NotImplementedError, match=r"gktest::flat: has no gradient; .*backward="):
        result.sum().backward()


def test_a_gradient_too_many(module):
    op = module.twice.as_torch_op(
        "gktest::many", out="x", over="x", given={"n": "x"}, backward=lambda g, x: (g, g)
    )
    with pytest.raises(ValueError, match=r"twice: backward has to give 1 gradient, of x, .*gave 2"):
        op(some(4, grad=True)).sum().backward()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_as_one_graph(twice, saxpy, backend):
    torch.compiler.reset()

    def calculate(x, y):
        return saxpy(2.0, twice(x).sin(), y) + 1

    compiled = torch.compile(calculate, fullgraph=True, backend=backend)
    for columns in (5, 6, 7):  # the second one makes it a graph of any shape
        x, y = some(3, columns, grad=True), some(columns)
        same(compiled(x, y), 2 * (2 * x).sin() + y + 1)
        compiled(x, y).sum().backward()
        torch.testing.assert_close(x.grad, 4 * (2 * x.detach()).cos())


def test_vmap(twice, saxpy):
    x, y = some(3, 5), some(5, seed=4)
    same(torch.vmap(twice)(x), 2 * x)
    same(torch.vmap(twice, in_dims=1, out_dims=1)(x), 2 * x)
    same(torch.vmap(saxpy, in_dims=(None, 0, None))(2.0, x, y), 2 * x + y)
    same(torch.vmap(saxpy, in_dims=(None, 1, 0))(2.0, x, y), 2 * x.t() + y[:, None])
    deep = some(4, 2, 3, 5)
    got = torch.vmap(saxpy, in_dims=(None, 0, 1))(2.0, deep, some(3, 4, 5))
    same(got[:, :, :, :], torch.stack([2 * deep[i] + some(3, 4, 5)[:, i] for i in range(4)]))
    nested = torch.vmap(torch.vmap(saxpy, in_dims=(None, 0, 0)), in_dims=(None, None, 0))
    same(nested(2.0, x, deep[0, :, :, :]), 2 * x + deep[0])


@pytest.fixture
def rows(module) -> Any:
    return module.rows.as_torch_op(
        "gktest::rows",
        out={"sums": lambda x, scale: x.shape[0], "counts": lambda x, scale: (x.shape[0],)},
        grid=lambda x, scale: x.shape[0],
        block=1,
        given={"width": lambda x, scale: x.shape[1]},
        backward=lambda of_sums, of_counts, x, scale: scale * of_sums[:, None].expand(x.shape),
    )


def test_several_results_and_numbers(rows):
    x = some(4, 6, grad=True)
    sums, counts = rows(x, 0.5)
    same(sums, 0.5 * x.sum(1))
    same(counts, (x > 0).sum(1).int())
    torch.library.opcheck(rows, (x, 0.5))
    sums.sum().backward()
    same(x.grad, torch.full_like(x, 0.5))
    stacked = some(3, 4, 6)
    sums, counts = torch.vmap(rows, in_dims=(0, None))(stacked, 2.0)
    same(sums, 2 * stacked.sum(2))
    same(counts, (stacked > 0).sum(2).int())
    assert "float scale" in str(rows._schema)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, lambda d: d.sum()),
        ({"axis": 1}, lambda d: d.sum(1)),
        ({"axis": (0, -1), "keepdims": True}, lambda d: d.sum((0, 1), keepdim=True)),
    ],
)
def test_reductions(given, expected):
    kernel = gk.reduction("T x, T y", "(x - y) * (x - y)", "a + b", 0, name="distance")
    op = kernel.as_torch_op("gktest::distance", given=given)
    x, y = some(4, 6), some(6, seed=4)
    same(op(x, y), expected((x - y) ** 2))
    torch.library.opcheck(op, (x, y))
    same(torch.vmap(op, in_dims=(0, None))(some(3, 4, 6), y)[1], op(some(3, 4, 6)[1], y))


def test_what_is_written_may_begin_as_zeros(module):
    op = module.histogram.as_torch_op(
        "gktest::histogram", out=256, over="x", given={"n": "x"}, zeroed=True
    )
    x = torch.arange(1000).remainder(7).to(torch.uint8).to(where())
    for _ in range(3):
        same(op(x), torch.bincount(x.int(), minlength=256).int())


def test_a_structure_is_given(module):
    import numpy as np

    weights = np.array((3, 4), [("a", np.float32), ("b", np.float32)])
    op = module.weighed.as_torch_op(
        "gktest::weighed", out="x", over="x", given={"n": "x", "weights": weights}, block=32
    )
    x = some(100)
    same(op(x), 3 * x + 4)


def test_made_again_it_takes_the_place_of_the_one_before(module):
    x = some(4)
    for factor in (2, 3):
        kernel = gk.elementwise("float x, float y", f"y = {factor} * x")
        op = kernel.as_torch_op("gktest::again")
        same(op(x), factor * x)
        same(torch.ops.gktest.again(x), factor * x)


def test_operations_of_others_are_left_alone():
    with pytest.raises(ValueError, match=r"as_torch_op: name has to be .*'aten::add' is an op"):
        gk.as_torch_op(gk.subtract, "aten::add")
    assert torch.add(some(3), some(3))[0] == 2 * some(3)[0]


def test_a_current_stream_is_worked_on(twice):
    if where() == "cpu":
        pytest.skip("no GPU, whose streams these are")
    side = torch.cuda.Stream()
    x = torch.zeros(1 << 20, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for value in range(5):
            torch.cuda._sleep(2_000_000)
            x.fill_(value)
            result = twice(x)
            x.fill_(-1)
            assert (result == 2 * value).all()


# built-in operations ------------------------------------------------------------------------------

BUILT_IN = {
    "abs": (1, torch.abs),
    "add": (2, torch.add),
    "divide": (2, torch.div),
    "exp": (1, torch.exp),
    "maximum": (2, torch.maximum),
    "minimum": (2, torch.minimum),
    "multiply": (2, torch.mul),
    "negative": (1, torch.neg),
    "scale_add": (3, lambda a, x, y: a * x + y),
    "sqrt": (1, torch.sqrt),
    "subtract": (2, torch.sub),
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_elementwise_operations(name):
    count, expected = BUILT_IN[name]
    op = gk.as_torch_op(getattr(gk, name), f"gktest::{name}")
    shapes = [(4, 3), (3,), (4, 1)][:count]
    tensors = [
        (some(*shape, dtype=torch.float64, seed=at).abs() + 0.1).requires_grad_()
        for at, shape in enumerate(shapes)
    ]
    same(op(*tensors), expected(*tensors))
    torch.library.opcheck(op, tuple(tensors))
    assert torch.autograd.gradcheck(op, tuple(tensors))
    batched = torch.vmap(op)(*(torch.stack([one, one]) for one in tensors))
    same(batched, torch.stack([expected(*tensors)] * 2))


OTHERS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "clip": ("clip", {"min": -0.5, "max": 0.5}, lambda a: a.clamp(-0.5, 0.5)),
    "sum": ("sum", {}, torch.sum),
    "sum of an axis": ("sum", {"axis": 1}, lambda a: a.sum(1)),
    "mean": ("mean", {"axis": (0, -1), "keepdims": True}, lambda a: a.mean((0, 2), True)),
    "transpose": ("transpose", {}, lambda a: a.permute(2, 1, 0)),
    "axes": ("transpose", {"axes": (1, -1, 0)}, lambda a: a.permute(1, 2, 0)),
    "matrices": ("matrix_transpose", {}, lambda a: a.mT),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_operations(case):
    name, fixed, expected = OTHERS[case]
    op = gk.as_torch_op(getattr(gk, name), "gktest::other", given=fixed)
    a = some(4, 3, 2, dtype=torch.float64, grad=True)
    same(op(a), expected(a))
    torch.library.opcheck(op, (a,))
    assert torch.autograd.gradcheck(op, (a,))
    same(torch.vmap(op)(torch.stack([a, -a])), torch.stack([expected(a), expected(-a)]))


@pytest.mark.parametrize(
    ("a", "b"),
    [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((5, 2, 3), (3, 4)), ((2, 0), (0, 3))],
)
def test_matmul(a, b):
    op = gk.as_torch_op(gk.matmul, "gktest::matmul")
    pair = some(*a, dtype=torch.float64, grad=True), some(*b, dtype=torch.float64, grad=True)
    same(op(*pair), torch.matmul(*pair))
    torch.library.opcheck(op, pair)
    assert torch.autograd.gradcheck(op, pair)


def test_operations_without_a_gradient_of_their_own():
    largest = gk.as_torch_op(gk.max, "gktest::largest", given={"axis": 0})
    a = some(4, 3, grad=True)
    same(largest(a), a.detach().amax(0))
    with pytest.raises(NotImplementedError, match="has no gradient"):
        largest(a).sum().backward()
    given = gk.as_torch_op(
        gk.max,
        "gktest::largest",
        given={"axis": 0},
        backward=lambda g, a: g * (a == a.amax(0)),
    )
    given(a).sum().backward()
    same(a.grad, (a == a.amax(0)).float())
    same(gk.as_torch_op(gk.argmax, "gktest::place", given={"axis": 1})(a), a.argmax(1))
    same(gk.as_torch_op(gk.less, "gktest::less")(a, -a), a < -a)


def test_an_operand_that_is_a_number():
    op = gk.as_torch_op(gk.scale_add, "gktest::numbered", numbers=["a"])
    x, y = some(4, grad=True), some(4, grad=True, seed=4)
    same(op(2.0, x, y), 2 * x + y)
    op(2.0, x, y).sum().backward()
    same(x.grad, torch.full_like(x, 2))


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float16", "float64", "int8", "int64", "uint8", "uint16", "uint64"]
)
def test_dtypes(dtype):
    op = gk.as_torch_op(gk.add, "gktest::add")
    a = torch.arange(7).to(getattr(torch, dtype)).to(where())
    same(op(a, a), (2 * torch.arange(7)).to(a.dtype).to(where()))


# what is refused ----------------------------------------------------------------------------------


def refused(module, **how: Any) -> None:
    name = how.pop("kernel", "twice")
    usual = {"out": "x", "over": "x", "given": {"n": "x"}}
    module[name].as_torch_op("gktest::refused", **{**usual, **how})


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no threads": ({"over": None}, TypeError, "either over=.* or grid= and block="),
    "threads twice": ({"grid": 1, "block": 1}, TypeError, "either over="),
    "a grid alone": ({"over": None, "grid": 1}, TypeError, "grid= needs block="),
    "a strange word": ({"dims": 3}, TypeError, "unexpected keyword argument 'dims'"),
    "out of no array": ({"out": "z"}, ValueError, "out says 'z', and the arrays are x"),
    "over no array": ({"over": "z"}, ValueError, "over says 'z', and the arrays are x, y"),
    "given a stranger": ({"given": {"m": 1}}, ValueError, "given may say x, n, not 'm'"),
    "given a result": ({"given": {"y": 1}}, ValueError, "given may say x, n, not 'y'"),
    "given no array": ({"given": {"n": "z"}}, ValueError, "given says 'z'"),
    "out is read": ({"out": {"x": "x"}}, ValueError, "'x', which is no pointer that is written"),
    "two are written": ({"kernel": "rows"}, ValueError, "rows: out has to name what is written"),
    "one is forgotten": (
        {"kernel": "rows", "out": {"sums": 1}},
        ValueError,
        r"int \*counts may be written.*declare it const, or name it in out",
    ),
    "nothing is taken": ({"kernel": "in_place"}, ValueError, "in_place: .*takes none"),
    "a structure": ({"kernel": "weighed"}, TypeError, "pair weights is no number.*given="),
    "no function": ({"backward": 3}, TypeError, "backward has to be a function, not 3"),
    "no flag": ({"zeroed": 3}, TypeError, "zeroed has to be True or False"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_the_kernel_is_refused(module, case):
    how, exception, sentence = WRONG[case]
    with pytest.raises(exception, match=rf"^as_torch_op: .*{sentence}"):
        refused(module, **how)
    refused(module)


@pytest.mark.parametrize("name", ["double", "a::b::c", "::x", "mine::", 3, "mine::not a name"])
def test_names_that_are_none(name):
    right = r"as_torch_op: name has to be .*'mine::double', not "
    with pytest.raises((TypeError, ValueError), match=right):
        gk.as_torch_op(gk.add, name)


def test_built_in_operations_that_are_none():
    with pytest.raises(TypeError, match=r"as_torch_op: operation has to be .*add"):
        gk.as_torch_op(print, "gktest::print")
    with pytest.raises(TypeError, match=r"add: numbers have to be among a, b, and 'c' is none"):
        gk.as_torch_op(gk.add, "gktest::add", numbers=["c"])
    with pytest.raises(ValueError, match="has to be an array"):
        gk.as_torch_op(gk.abs, "gktest::abs", numbers=["a"])
    with pytest.raises(
        TypeError, match=r"sum: what is given has to be among axis.*and 'out' is none"
    ):
        gk.as_torch_op(gk.sum, "gktest::sum", given={"out": 3})


def test_expressions_that_are_refused():
    raw = gk.ElementwiseKernel("raw float x", "float y", "y = x[i]")
    with pytest.raises(ValueError, match="raw float x is raw"):
        raw.as_torch_op("gktest::raw")
    updated = gk.elementwise("float x, float y", "y += x")
    with pytest.raises(TypeError, match="y is made of what it was"):
        updated.as_torch_op("gktest::updated")
    fine = gk.elementwise("float x, float y", "y = x")
    with pytest.raises(TypeError, match="numbers have to be among x, and 'y' is none"):
        fine.as_torch_op("gktest::fine", numbers=["y"])
    with pytest.raises(TypeError, match="what is given has to be nothing, and 'axis' is none"):
        fine.as_torch_op("gktest::fine", given={"axis": 1})
    total = gk.reduction("T x", "x", "a + b", 0)
    with pytest.raises(TypeError, match="given has to be among axis, keepdims, and 'out' is none"):
        total.as_torch_op("gktest::fine", given={"out": 1})
    with pytest.raises(ValueError, match="axis 2 is none of an array of 1 axes"):
        total.as_torch_op("gktest::fine", given={"axis": 2})(some(3))


def test_wrong_tensors(twice):
    with pytest.raises(TypeError, match=r"twice: const float \*x takes an array of float32"):
        twice(some(3).double())
    with pytest.raises(TypeError, match=r"gktest::twice: takes no tensors of torch.complex64"):
        twice(some(3).to(torch.complex64))
    add = gk.as_torch_op(gk.add, "gktest::add")
    with pytest.raises(ValueError, match=r"add: operands could not be broadcast together"):
        add(some(3), some(4))
    with pytest.raises(TypeError, match=r"add: operands of different dtypes"):
        add(some(3), some(3).double())
    same(twice(some(3)), 2 * some(3))


def test_what_the_page_on_frameworks_shows(module):
    page = Path(__file__).parent.parent / "docs" / "frameworks.md"
    if not page.exists():
        pytest.skip("the tests stand alone, without docs")
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n((?!import jax).*?)```", page.read_text(), re.S):
        exec(code, names)
    x, y = names["x"].detach(), names["y"].detach()
    same(names["z"], 2 * x + y)
    same(names["y"].grad, torch.full_like(y, 6))
    same(names["twice"](x), 2 * x)
    same(names["row_sums"](x, 0.5), 0.5 * x.sum(1))
