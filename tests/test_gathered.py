"""Reductions of arrays that are no run in memory: without a copy of them, and with the bits of a
contiguous array of the same shape."""

from __future__ import annotations

import numpy as np
import pytest

import gpukern as gk
from arrays import DTYPES, REDUCTIONS, random, same_bits
from fakes import NEEDS_FAKE

# Where elements lie: beginning anywhere, apart, backwards, turned, in lines of any length.
VIEWS = {
    "from column 1 on": lambda a: a[:, 1:],
    "without the last column": lambda a: a[:, :-1],
    "every second column": lambda a: a[:, ::2],
    "every third row": lambda a: a[::3],
    "columns backwards": lambda a: a[:, ::-1],
    "rows backwards": lambda a: a[::-2],
    "transposed": lambda a: a.T,
    "a row for all": lambda a: a[:1].T[:, :1].T,
    "three axes": lambda a: a[:66].reshape(6, 11, -1)[:, 1:, :-2],
    "three axes turned": lambda a: a[:66].reshape(6, 11, -1).transpose(2, 0, 1),
    "three axes that alternate": lambda a: a[:66].reshape(11, 6, -1)[:, ::2],
    "four axes": lambda a: a[:60].reshape(5, 4, 3, -1)[:, 1:, :, :-3],
}
SIZES = ((67, 70), (70, 1031), (517, 64), (300, 9))


def over(ndim: int, one: bool) -> list:
    """Axes to reduce: all that there are of one, and pairs that lie apart."""
    axes: list = [*range(ndim), None]
    return axes if one or ndim < 3 else [*axes, (0, 2), (ndim - 1, 0)]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_the_bits_are_those_of_a_contiguous_array(op, view):
    for size, name in zip(SIZES, ("float32", "float16", "int32", "uint8"), strict=True):
        if op in ("mean", "norm") and name in ("int32", "uint8"):
            name = "float64"  # noqa: PLW2901
        a = random(size, DTYPES[name], 3)
        there = VIEWS[view](gk.to_device(a))
        packed = gk.to_device(np.ascontiguousarray(VIEWS[view](a)))
        assert there.shape == packed.shape
        for axis in over(there.ndim, op.startswith("arg")):
            got, want = (getattr(gk, op)(x, axis) for x in (there, packed))
            same_bits(got.to_host(), want.to_host(), f"{op} {view} {size} {name} axis {axis}")


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "uint8", "bool"])
@pytest.mark.parametrize("shift", [0, 1, 3])
def test_wherever_the_memory_begins_and_steps(name, shift):
    dtype = DTYPES[name]
    for pitch in (64, 65, 80):
        a = random((90 * pitch + 16,), dtype, 4)
        host = a[shift : shift + 90 * pitch].reshape(90, pitch)[:, :48]
        there = gk.to_device(a)[shift : shift + 90 * pitch].reshape(90, pitch)[:, :48]
        for axis in (0, 1, None):
            want = gk.sum(gk.to_device(np.ascontiguousarray(host)), axis).to_host()
            same_bits(gk.sum(there, axis).to_host(), want, f"{name} {shift} {pitch} {axis}")


def test_elements_that_are_not_aligned_to_their_size():
    packed = np.zeros(50, np.dtype([("tag", "u1"), ("x", "<f4")]))
    packed["x"] = np.arange(50)
    assert packed["x"].strides == (5,)
    assert gk.sum(packed["x"]) == 1225
    assert gk.argmax(packed["x"]) == 49


def test_more_axes_than_a_kernel_finds_its_way_in():
    a = random((2, 3) * 5, DTYPES["float32"], 5)
    view = np.s_[(slice(None, None, -1), slice(0, 2)) * 5]
    there = gk.to_device(a)[view]
    want = gk.sum(gk.to_device(np.ascontiguousarray(a[view])), (0, 3, 6)).to_host()
    same_bits(gk.sum(there, (0, 3, 6)).to_host(), want, "ten axes")


def test_a_result_that_lies_among_the_elements():
    a = random((40, 50), DTYPES["float32"], 6)
    for axis, where in ((1, np.s_[:, 1]), (0, np.s_[3, ::2])):
        there = gk.to_device(a)
        want = gk.sum(gk.to_device(np.ascontiguousarray(a[:, ::2])), axis).to_host()
        gk.sum(there[:, ::2], axis, out=there[where])
        same_bits(there[where].to_host(), want, f"{axis}")
        a_after = there.to_host()
        a_after[where] = a[where]
        same_bits(a_after, a, "nothing else was written")


def test_nothing_and_one():
    there = gk.zeros((5, 0, 6))
    assert gk.sum(there[::2, :, 1:], 1).to_host().tolist() == np.zeros((3, 5)).tolist()
    assert gk.max(gk.zeros((4, 4))[1:2, ::-4], 0).shape == (1,)


LAUNCHES = """
def taken(call):
    call()
    return [step[0] for step in steps(call)]
a = gk.empty((70, 1000, 300))
"""


@NEEDS_FAKE
def test_they_are_one_launch(right):
    right(
        LAUNCHES
        + """
for view, axis in ((a[:, :, 1:], 2), (a[:, :, :-1], 0), (a, (0, 2)), (a[::2], (1, 2)),
                   (a[:, 1:], 1), (a[:2, :, ::2], 2), (a[0, :, ::-1], 0), (a[:2].T, 1)):
    assert taken(lambda: gk.sum(view, axis)) in (["l"], ["l", "f"]), (view.shape, axis)
assert taken(lambda: gk.sum(a.transpose((2, 1, 0)), 1)).count("l") == 2, "too scattered and large"
assert taken(lambda: gk.sum(a[0, :, ::2], variant="vectorized")).count("l") == 3, "a run is needed"
assert _core.live_bytes() == 70 * 300_000 * 4
""",
        FAKE_KERNELS=0,
    )
