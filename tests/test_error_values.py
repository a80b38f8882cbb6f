"""Wrong variants, axes, sizes and numbers: nothing changes, and the next call works."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import gpukern as gk
from arrays import DTYPES, random, variants
from failing import Bench, assert_fails
from gpukern import _core


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


NOTHING = [((0,), None), ((3, 0), 1), ((0, 3), 0), ((0, 0), 0), ((0, 0), -1), ((7, 0, 0, 2), 1)]


@pytest.mark.parametrize("op", ["max", "min", "argmax", "argmin"])
def test_no_elements(op):
    words = (
        "empty sequence" if op.startswith("arg") else f"operation {op}imum which has no identity"
    )
    for device in (False, True):
        for shape, axis in NOTHING:
            x = gk.empty(shape) if device else np.empty(shape, np.float32)
            assert_fails(lambda _, x=x, axis=axis: getattr(gk, op)(x, axis=axis), ValueError, words)


@pytest.mark.parametrize("op", ["max", "min", "argmax", "argmin"])
def test_no_results_of_some_elements(op):
    """An axis of no length that is kept is no mistake."""
    for shape, axis in (((0, 3), 1), ((3, 0), 0), ((0, 3, 0), 1), ((2, 3, 0), -2)):
        x = np.empty(shape, np.float32)
        want = getattr(np, op)(x, axis=axis)
        for got in (getattr(gk, op)(x, axis=axis), getattr(gk, op)(gk.to_device(x), axis=axis)):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if not op.startswith("arg"):
        assert getattr(gk, op)(np.empty((0, 3, 0), np.float32), axis=()).shape == (0, 3, 0)
        with pytest.raises(ValueError, match="no identity"):
            getattr(gk, op)(np.empty((2, 0, 0), np.float32), axis=(0, 2))


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


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32"])
def test_a_scalar_of_any_length_is_named(dtype):
    a = np.ones(3, dtype)
    with pytest.raises(OverflowError, match=rf"^add: a is an integer of 1329 bits, .* {dtype}$"):
        gk.add(10**400, a)
    with pytest.raises(OverflowError, match=r"^fill: value is an integer of 33220 bits"):
        gk.to_device(a).fill(10**10_000)


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


def test_every_operation_is_exported():
    names = {row["op"] for row in _core.rows() if hasattr(_core, row["op"])}
    taken = {
        name
        for name, function in vars(_core).items()
        if inspect.isbuiltin(function) and "variant" in inspect.signature(function).parameters
    }
    assert names | {"matrix_transpose", "greater", "greater_equal"} == taken
    assert taken <= set(gk.__all__)
    assert len(set(gk.__all__)) == len(gk.__all__)
    for name in gk.__all__:
        assert getattr(gk, name) is not None
